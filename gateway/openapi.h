/* SPDX-License-Identifier: MIT */
/* The document of the REST routes: OpenAPI 3.1 (spec.openapis.org/oas/v3.1.0). */
#ifndef TITEN_GATEWAY_OPENAPI_H
#define TITEN_GATEWAY_OPENAPI_H

/* JSON, indented to be read, one newline at its end; always the same. Made at the first call, kept
 * for ever. After methods_init(). Any thread. */
const char *openapi_text(void);

#endif
