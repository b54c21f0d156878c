/* SPDX-License-Identifier: MIT */
/* Figures are rounded only here. The table and the object say the same. */
#include "cmd/bench_report.h"

#include <math.h>

#include "core/json_write.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof(a)[0])

static const struct percentile {
	const char *name;  /* of the member */
	const char *label; /* of the column */
	int permille;
} percentiles[] = {
	{ "p50_us", "p50 us", 500 },
	{ "p90_us", "p90 us", 900 },
	{ "p99_us", "p99 us", 990 },
	{ "p99_9_us", "p99.9 us", 999 },
};

/* Names of members, not sentences. */
static const char *const outcomes[BENCH_OUTCOMES] = {
	[TITEN_ANSWERED] = "answered",
	[TITEN_TIMED_OUT] = "timed_out",
	[TITEN_LOST] = "lost",
	[TITEN_GARBLED] = "garbled",
	[TITEN_TOO_LARGE] = "too_large",
};

static double
ratio(const struct bench_result *result)
{
	double baseline = bench_load_rate(&result->baseline);

	return baseline > 0 ? bench_load_rate(&result->measured) / baseline : 0;
}

/* NAN when nothing was answered. */
static double
percentile_us(const struct bench_side *side, int permille)
{
	if (side->latency.count == 0)
		return NAN;
	return (double)histogram_at(&side->latency, permille) / 1000;
}

static double
us(int64_t ns)
{
	return (double)ns / 1000;
}

static double
us_per_call(int64_t ns, const struct bench_side *side)
{
	return side->calls == 0 ? 0 : us(ns) / (double)side->calls;
}

/* --- the object */

static void
real_member(struct json_writer *w, const char *name, double value, int decimals)
{
	double scale = pow(10, decimals);

	json_write_name(w, name);
	if (isfinite(value))
		json_write_real(w, round(value * scale) / scale);
	else
		json_write_null(w);
}

static void
refused_members(struct json_writer *w, const struct bench_side *side)
{
	json_write_name(w, "refused");
	json_write_open(w, '{');
	for (int st = 0; st < STATUS_COUNT; st++)
		if (side->refused[st] > 0)
			json_write_int_member(
			    w, status_reason((enum status)st), (int64_t)side->refused[st]);
	json_write_close(w, '}');
}

static void
failed_members(struct json_writer *w, const struct bench_side *side)
{
	json_write_name(w, "failed");
	json_write_open(w, '{');
	for (int outcome = 0; outcome < BENCH_OUTCOMES; outcome++)
		if (side->failed[outcome] > 0)
			json_write_int_member(w, outcomes[outcome], (int64_t)side->failed[outcome]);
	json_write_close(w, '}');
}

static void
latency_members(struct json_writer *w, const struct bench_side *side)
{
	for (size_t i = 0; i < ARRAY_LEN(percentiles); i++)
		real_member(
		    w, percentiles[i].name, percentile_us(side, percentiles[i].permille), 1);
	real_member(w, "max_us", percentile_us(side, 1000), 1);
	real_member(w, "longest_stall_us", us(side->stall_ns), 1);
}

static void
side_object(
    struct json_writer *w, const char *name, const struct bench_side *side, bool server_known)
{
	json_write_name(w, name);
	json_write_open(w, '{');
	json_write_int_member(w, "calls", (int64_t)side->calls);
	json_write_int_member(w, "answered", (int64_t)side->answered);
	refused_members(w, side);
	failed_members(w, side);
	real_member(w, "elapsed_seconds", (double)side->elapsed_ns / 1e9, 3);
	real_member(w, "calls_per_second", bench_load_rate(side), 1);
	latency_members(w, side);
	real_member(w, "client_cpu_us_per_call", us_per_call(side->client_cpu_ns, side), 2);
	real_member(w, "server_cpu_us_per_call",
	    server_known ? us_per_call(side->server_cpu_ns, side) : NAN, 2);
	json_write_int_member(w, "request_bytes", (int64_t)side->request_bytes);
	json_write_int_member(w, "reply_bytes", (int64_t)side->reply_bytes);
	json_write_close(w, '}');
}

const char *
bench_report_json(const struct bench_report *report, struct arena *arena)
{
	const struct bench_result *result = report->result;
	const struct histogram *sync = report->sync;
	struct json_writer w;

	json_write_begin(&w, arena);
	json_write_open(&w, '{');
	json_write_text_member(&w, "work", report->work);
	json_write_text_member(&w, "baseline_work", report->baseline);
	json_write_text_member(&w, "url", report->url);
	json_write_int_member(&w, "outstanding", report->outstanding);
	json_write_int_member(&w, "connections", report->connections);
	json_write_int_member(&w, "seconds", report->seconds);
	json_write_int_member(&w, "live_leases", (int64_t)report->live);
	side_object(&w, "measured", &result->measured, report->server_known);
	side_object(&w, "baseline", &result->baseline, report->server_known);
	json_write_name(&w, "echo_ratio");
	json_write_real(&w, round(ratio(result) * 1e4) / 1e4);
	real_member(&w, "echo_ratio_min", result->ratio_min, 4);
	real_member(&w, "echo_ratio_max", result->ratio_max, 4);
	real_member(&w, "fsync_p50_us", sync == NULL ? NAN : us(histogram_at(sync, 500)), 1);
	real_member(&w, "fsync_p99_us", sync == NULL ? NAN : us(histogram_at(sync, 990)), 1);
	json_write_close(&w, '}');
	return w.text;
}

/* --- the table */

static void
side_row(FILE *out, const char *name, const struct bench_side *side, bool server_known)
{
	fprintf(out, "%-10s %9.0f", name, bench_load_rate(side));
	for (size_t i = 0; i < ARRAY_LEN(percentiles); i++)
		fprintf(out, " %9.0f", percentile_us(side, percentiles[i].permille));
	fprintf(out, " %9.0f %9.0f %9.1f", percentile_us(side, 1000), us(side->stall_ns),
	    us_per_call(side->client_cpu_ns, side));
	if (server_known)
		fprintf(out, " %9.1f\n", us_per_call(side->server_cpu_ns, side));
	else
		fprintf(out, " %9s\n", "-");
}

static void
side_faults(FILE *out, const char *name, const struct bench_side *side)
{
	for (int st = 0; st < STATUS_COUNT; st++)
		if (side->refused[st] > 0)
			fprintf(out, "%s: refused with %s: %ju of %ju calls\n", name,
			    status_reason((enum status)st), (uintmax_t)side->refused[st],
			    (uintmax_t)side->calls);
	for (int outcome = 0; outcome < BENCH_OUTCOMES; outcome++)
		if (side->failed[outcome] > 0)
			fprintf(out, "%s: failed, %s: %ju of %ju calls\n", name,
			    titen_outcome_text((enum titen_outcome)outcome),
			    (uintmax_t)side->failed[outcome], (uintmax_t)side->calls);
}

void
bench_report_table(const struct bench_report *report, FILE *out)
{
	const struct bench_result *result = report->result;

	fprintf(out, "%s at %s: %d outstanding on %d connections, %d s, %ju live leases before\n\n",
	    report->work, report->url, report->outstanding, report->connections, report->seconds,
	    (uintmax_t)report->live);
	fprintf(out, "%-10s %9s", "", "calls/s");
	for (size_t i = 0; i < ARRAY_LEN(percentiles); i++)
		fprintf(out, " %9s", percentiles[i].label);
	fprintf(out, " %9s %9s %9s %9s\n", "max us", "stall us", "client us", "server us");
	side_row(out, report->work, &result->measured, report->server_known);
	side_row(out, report->baseline, &result->baseline, report->server_known);
	fprintf(out, "\n%s / %s: %.3f (slices: %.3f to %.3f)\n", report->work, report->baseline,
	    ratio(result), result->ratio_min, result->ratio_max);
	if (report->sync != NULL)
		fprintf(out, "fdatasync of 4 KiB: p50 %.0f us, p99 %.0f us\n",
		    us(histogram_at(report->sync, 500)), us(histogram_at(report->sync, 990)));
	side_faults(out, report->work, &result->measured);
	side_faults(out, report->baseline, &result->baseline);
}
