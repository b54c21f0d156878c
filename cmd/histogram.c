/* SPDX-License-Identifier: MIT */
/*
 * A bucket is named by the eight leading bits of its values and how far they were shifted right to
 * get them: shift 0 has the buckets 0 to 255, and each further shift 128 more, because the first of
 * the eight bits is then always set.
 */
#include "cmd/histogram.h"

#include <assert.h>
#include <stddef.h>

#define LEADING_BITS 8
#define BUCKETS_PER_SHIFT (1 << (LEADING_BITS - 1))
#define VALUE_MAX (((int64_t)1 << (LEADING_BITS + HISTOGRAM_SHIFTS - 1)) - 1)

static int
value_shift(int64_t value)
{
	int bits = 64 - __builtin_clzll((unsigned long long)value | 1);

	return bits <= LEADING_BITS ? 0 : bits - LEADING_BITS;
}

void
histogram_add(struct histogram *h, int64_t value)
{
	int64_t kept = value < 0 ? 0 : value > VALUE_MAX ? VALUE_MAX : value;
	int shift = value_shift(kept);
	int64_t bucket = (int64_t)shift * BUCKETS_PER_SHIFT + (kept >> shift);

	assert((size_t)bucket < sizeof(h->buckets) / sizeof(h->buckets[0]));
	h->buckets[bucket]++;
	h->count++;
	if (value > h->max)
		h->max = value;
}

static int64_t
bucket_middle(int bucket)
{
	int shift = bucket < 2 * BUCKETS_PER_SHIFT ? 0 : bucket / BUCKETS_PER_SHIFT - 1;
	int64_t low = (int64_t)(bucket - shift * BUCKETS_PER_SHIFT) << shift;

	return low + (((int64_t)1 << shift) - 1) / 2;
}

int64_t
histogram_at(const struct histogram *h, int permille)
{
	uint64_t rank = (h->count * (uint64_t)permille + 999) / 1000, seen = 0;
	int64_t middle = 0;

	assert(permille >= 1 && permille <= 1000);
	if (h->count == 0)
		return 0;
	if (permille == 1000)
		return h->max;
	for (int bucket = 0; seen < rank; bucket++) {
		seen += h->buckets[bucket];
		middle = bucket_middle(bucket);
	}
	return middle < h->max ? middle : h->max;
}
