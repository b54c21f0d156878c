/* SPDX-License-Identifier: MIT */
/*
 * Whether something keeps growing, from samples taken at equal intervals. The first quarter is
 * warming up: caches fill, threads start. After that the medians of the second and of the last
 * quarter are compared, which single spikes cannot move; what is lost with every call moves them by
 * half of what is lost in the whole run.
 */
#ifndef TITEN_TESTS_TREND_H
#define TITEN_TESTS_TREND_H

#include <stdbool.h>
#include <stddef.h>

struct trend {
	double early; /* the median of the second quarter */
	double late;  /* the median of the last quarter */
	double
	    slope; /* of the least squares over the second half, in units of the samples an hour */
};

/* Of N samples, at least eight, INTERVAL_S seconds apart. */
struct trend trend_of(const double *samples, size_t n, double interval_s);

/* Whether it has grown by more than ALLOWANCE. */
bool trend_grows(const struct trend *trend, double allowance);

#endif
