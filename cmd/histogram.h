/* SPDX-License-Identifier: MIT */
/*
 * How long things took, in fixed memory: counts in buckets that grow with the value, as in
 * HdrHistogram. Up to 256 every value has its own bucket; above, each power of two has 128, so a
 * value is known to 0.8 %, and a percentile, which is the middle of its bucket, is right to 0.4 %.
 *
 * Zeroed memory is an empty histogram. One thread at a time.
 */
#ifndef TITEN_CMD_HISTOGRAM_H
#define TITEN_CMD_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_SHIFTS 33 /* so the last bucket ends at 2^40: in nanoseconds, 18 minutes */
#define HISTOGRAM_BUCKETS ((HISTOGRAM_SHIFTS + 1) * 128)

struct histogram {
	uint64_t buckets[HISTOGRAM_BUCKETS];
	uint64_t count;
	int64_t max; /* exact */
};

/* Negative values count as 0, those from 2^40 on as just below it, but for max. */
void histogram_add(struct histogram *h, int64_t value);

/* The value that PERMILLE of all values do not exceed (nearest rank; 500 is the median, 999 the
 * 99.9th percentile), 1000 the exact maximum), or 0 when there is none. PERMILLE from 1 to 1000. */
int64_t histogram_at(const struct histogram *h, int permille);

#endif
