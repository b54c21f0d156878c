/* SPDX-License-Identifier: MIT */
/* How long texts may be, in code points: the same for a field of the same kind in every call. */
#ifndef TITEN_CORE_LIMITS_H
#define TITEN_CORE_LIMITS_H

#define LABEL_MAX 120      /* types, purposes, labels: a word or a short sentence */
#define IDENTIFIER_MAX 200 /* names that callers choose: those of other systems fit */
#define STATEMENT_MAX 4000 /* what one agent tells another: a page of text */

#endif
