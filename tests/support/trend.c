/* SPDX-License-Identifier: MIT */
/* Medians, then the line through the points. */
#include "tests/support/trend.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_S 3600.0

static int
by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(const double *samples, size_t n)
{
	double *sorted = malloc(n * sizeof *sorted), middle;

	if (sorted == NULL)
		abort();
	memcpy(sorted, samples, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, by_size);
	middle = n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
	free(sorted);
	return middle;
}

/* Of the line with the least squares, in units a sample. */
static double
slope(const double *samples, size_t n)
{
	double x_mean = (double)(n - 1) / 2, y_mean = 0, xy = 0, xx = 0;

	for (size_t i = 0; i < n; i++)
		y_mean += samples[i] / (double)n;
	for (size_t i = 0; i < n; i++) {
		double x = (double)i - x_mean;

		xy += x * (samples[i] - y_mean);
		xx += x * x;
	}
	return xy / xx;
}

struct trend
trend_of(const double *samples, size_t n, double interval_s)
{
	size_t quarter = n / 4, half = n / 2;

	assert(n >= 8);
	return (struct trend){
		.early = median(samples + quarter, quarter),
		.late = median(samples + n - quarter, quarter),
		.slope = slope(samples + half, n - half) * HOUR_S / interval_s,
	};
}

bool
trend_grows(const struct trend *trend, double allowance)
{
	return trend->late - trend->early > allowance;
}
