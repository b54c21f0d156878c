/* SPDX-License-Identifier: MIT */
/*
 * How much may be more at the end of a soak than at its beginning, in medians of quarters
 * (trend.h). A hundred bytes lost in every call, a descriptor with every connection or a page of the
 * log with every commit are far above it in ten minutes; what comes and goes by itself is below.
 */
#ifndef TITEN_TESTS_SOAK_H
#define TITEN_TESTS_SOAK_H

/* Of resident memory: what the allocator keeps of a busier moment. */
#define SOAK_RSS_BYTES ((double)(8 << 20))
/* The page caches of the writer and both readers may fill up as far as the database has pages. */
#define SOAK_CACHES_BYTES ((double)(80 << 20))
/* Of descriptors: the crews of a moment differ by as many connections. */
#define SOAK_DESCRIPTORS 16.0
/* Of the write-ahead log: where the writer folds it even when it is busy. */
#define SOAK_LOG_BYTES ((double)(16 << 20))

#endif
