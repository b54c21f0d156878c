/* SPDX-License-Identifier: MIT */
/*
 * soak [SECONDS [PROGRAM]]: the server for a long time under a fleet that comes and goes, looked at
 * every second. At the end everything that could grow is printed with its slope, and what must not
 * grow has not (soak.h says by how much it may). PROGRAM is the environment's TITEN when it is not
 * given.
 */
#include "tests/soak.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <curl/curl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "tests/support/churn.h"
#include "tests/support/gauge.h"
#include "tests/support/process.h"
#include "tests/support/program.h"
#include "tests/support/proof.h"
#include "tests/support/trend.h"

#define SECONDS_SHORT 10
#define SECONDS_MIN 8 /* a trend needs so many samples */
#define SECONDS_MAX 86400
#define ROWS_PRINTED 20
#define MIB (1024.0 * 1024)

/* What is measured: one series each. */
enum series { RESIDENT, DESCRIPTORS, THREADS, LOG, DATABASE, P50, P99, SERIES };

static const struct {
	const char *name;
	double unit; /* the samples are in bytes, pieces or nanoseconds */
} columns[SERIES] = {
	[RESIDENT] = { "RSS MiB", MIB },
	[DESCRIPTORS] = { "fds", 1 },
	[THREADS] = { "threads", 1 },
	[LOG] = { "WAL MiB", MIB },
	[DATABASE] = { "db MiB", MIB },
	[P50] = { "p50 ms", 1e6 },
	[P99] = { "p99 ms", 1e6 },
};

static int seconds = SECONDS_SHORT;
static double *samples[SERIES];

/* --- looking */

static void
sample(int i, const struct program *p, const struct histogram *took)
{
	char log[128];

	snprintf(log, sizeof log, "%s-wal", p->db);
	samples[RESIDENT][i] = (double)process_rss_kib(p->pid) * 1024;
	samples[DESCRIPTORS][i] = process_descriptors(p->pid);
	samples[THREADS][i] = gauge_threads(p->pid);
	samples[LOG][i] = (double)gauge_file(log);
	samples[DATABASE][i] = (double)gauge_file(p->db);
	samples[P50][i] = (double)histogram_at(took, 500);
	samples[P99][i] = (double)histogram_at(took, 990);
}

/* For all the seconds. What went wrong with the service into MESSAGE, empty when nothing did. */
static void
watch(const struct program *p, char message[static 200])
{
	const struct titen_options options = { .url = p->rpc, .key = p->owner_key };
	struct agent owner = { .principal = "owner" };
	int64_t begin_ms = clock_monotonic_ms();
	struct titen_client *client = titen_connect(&options, message, 200);
	static struct histogram took;

	if (client == NULL)
		return;
	message[0] = '\0';
	for (int i = 0; i < seconds && message[0] == '\0'; i++) {
		memset(&took, 0, sizeof took);
		gauge_service(client, &owner, begin_ms + (i + 1) * INT64_C(1000), &took, message);
		if (message[0] == '\0')
			sample(i, p, &took);
	}
	titen_close(&client);
}

/* --- the report */

static void
print_values(const char *what, const double values[SERIES])
{
	print_message("%12s", what);
	for (int s = 0; s < SERIES; s++)
		print_message(" %10.2f", values[s] / columns[s].unit);
	print_message("\n");
}

static void
print_samples(void)
{
	int step = (seconds + ROWS_PRINTED - 1) / ROWS_PRINTED;

	print_message("%12s", "second");
	for (int s = 0; s < SERIES; s++)
		print_message(" %10s", columns[s].name);
	print_message("\n");
	for (int i = 0; i < seconds; i += step) {
		double values[SERIES];
		char second[16];

		for (int s = 0; s < SERIES; s++)
			values[s] = samples[s][i];
		snprintf(second, sizeof second, "%d", i + 1);
		print_values(second, values);
	}
}

static void
print_trends(const struct trend trends[SERIES])
{
	double early[SERIES], late[SERIES], slopes[SERIES];

	for (int s = 0; s < SERIES; s++) {
		early[s] = trends[s].early;
		late[s] = trends[s].late;
		slopes[s] = trends[s].slope;
	}
	print_values("2nd quarter", early);
	print_values("4th quarter", late);
	print_values("slope/h", slopes);
}

static void
check_flat(const struct trend trends[SERIES])
{
	double caches = SOAK_CACHES_BYTES - trends[DATABASE].early;
	const struct {
		enum series series;
		double allowance;
	} bounds[] = {
		{ RESIDENT, SOAK_RSS_BYTES + (caches > 0 ? caches : 0) },
		{ DESCRIPTORS, SOAK_DESCRIPTORS },
		{ LOG, SOAK_LOG_BYTES },
	};

	for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
		const struct trend *trend = &trends[bounds[i].series];

		if (trend_grows(trend, bounds[i].allowance))
			fail_msg("%s: from %.0f to %.0f, which is more than %.0f",
			    columns[bounds[i].series].name, trend->early, trend->late,
			    bounds[i].allowance);
	}
}

/* --- the soak */

static void
nothing_grows_under_a_fleet_that_comes_and_goes(void **state)
{
	struct program *p = *state;
	struct trend trends[SERIES];
	struct churn_result result;
	struct churn *churn;
	char error[256], message[200];

	program_bootstrap(p);
	program_serve(p);
	churn = churn_start(
	    &(struct churn_options){
		.rpc = p->rpc, .http = p->http, .key = p->owner_key, .seed = 1 },
	    error, sizeof error);
	if (churn == NULL)
		fail_msg("%s", error);
	watch(p, message);
	result = churn_stop(&churn);
	assert_string_equal(message, "");
	for (int s = 0; s < SERIES; s++)
		trends[s] = trend_of(samples[s], (size_t)seconds, 1);
	print_samples();
	print_trends(trends);
	program_signal(p, SIGTERM);
	assert_int_equal(program_await(p, NULL), 0);
	print_message("%lld crews left, %lld were killed; %lld events\n", (long long)result.left,
	    (long long)result.killed,
	    (long long)proof_number(p->db, "SELECT sum(seq) FROM organizations"));
	assert_string_equal(result.fault, "");
	proof_of_store(p->db);
	check_flat(trends);
}

int
main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(
	    nothing_grows_under_a_fleet_that_comes_and_goes, program_open, program_close) };

	signal(SIGPIPE, SIG_IGN);
	if (argc > 1 && strcmp(argv[1], CHURN_CREW) == 0)
		return churn_crew(argc, argv);
	if (argc > 1)
		seconds = atoi(argv[1]);
	if (argc > 2)
		setenv("TITEN", argv[2], 1); /* NOLINT(concurrency-mt-unsafe) */
	if (argc > 3 || seconds < SECONDS_MIN || seconds > SECONDS_MAX) {
		fprintf(stderr, "usage: soak [SECONDS [PROGRAM]]\n");
		return EXIT_FAILURE;
	}
	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_ALL) != 0)
		return EXIT_FAILURE;
	for (int s = 0; s < SERIES; s++)
		if ((samples[s] = calloc((size_t)seconds, sizeof *samples[s])) == NULL)
			return EXIT_FAILURE;
	return cmocka_run_group_tests_name("soak", tests, NULL, NULL);
}
