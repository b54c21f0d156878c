/* SPDX-License-Identifier: MIT */
/* Start and stop, then a look into the database. */
#include "tests/support/doors.h"

#include <signal.h>
#include <curl/curl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/json_read.h"
#include "core/rpc.h"
#include "gateway/gateway.h"
#include "transport/server.h"

#define PATIENCE_MS 60000 /* more than anything takes on a busy machine under a sanitizer */

/* --- the server --- */

static int64_t
hands_ms(void *arg)
{
	struct doors *d = arg;

	return d->hands_ms;
}

void
doors_advance(struct doors *d, int64_t ms)
{
	d->hands_ms += ms;
}

static void
process_init(void)
{
	static bool done;
	const char *error;

	if (done)
		return;
	signal(SIGPIPE, SIG_IGN);
	assert_true(sodium_init() >= 0);
	json_init();
	assert_true(methods_init(&error));
	assert_int_equal(curl_global_init(CURL_GLOBAL_DEFAULT), 0);
	done = true;
}

static void
names_make(struct doors *d)
{
	strcpy(d->directory, "/tmp/titen-doors-XXXXXX");
	assert_non_null(mkdtemp(d->directory));
	snprintf(d->path, sizeof d->path, "%s/db", d->directory);
	snprintf(d->ipc, sizeof d->ipc, "ipc://%s/all", d->directory);
	snprintf(d->local, sizeof d->local, "ipc://%s/own", d->directory);
}

static void
server_open(struct doors *d, const struct clock_source *clock)
{
	char error[256] = "";

	d->core = core_open(
	    &(struct core_options){
		.path = d->path, .clock = clock, .create = true, .revision = "test" },
	    error, sizeof error);
	assert_string_equal(error, "");
	d->server = server_start(&(struct server_options){ .core = d->core,
				     .urls = (const char *[]){ "tcp://127.0.0.1:0", d->ipc, NULL },
				     .local_url = d->local },
	    error, sizeof error);
	assert_string_equal(error, "");
	d->gateway =
	    gateway_start(&(struct gateway_options){ .core = d->core, .listen = "127.0.0.1:0" },
		error, sizeof error);
	assert_string_equal(error, "");
	snprintf(d->tcp, sizeof d->tcp, "tcp://127.0.0.1:%d", server_port(d->server));
	snprintf(d->web, sizeof d->web, "http://127.0.0.1:%d", gateway_port(d->gateway));
}

static int
open_on(void **state, bool real_time)
{
	struct doors *d = calloc(1, sizeof *d);
	const struct clock_source hands = { hands_ms, hands_ms, d };

	assert_non_null(d);
	process_init();
	d->hands_ms = DOORS_START_MS;
	names_make(d);
	server_open(d, real_time ? NULL : &hands);
	assert_int_equal(sqlite3_open_v2(d->path, &d->look, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	sqlite3_busy_timeout(d->look, PATIENCE_MS);
	*state = d;
	return 0;
}

int
doors_open(void **state)
{
	return open_on(state, false);
}

int
doors_open_in_real_time(void **state)
{
	return open_on(state, true);
}

static void
remove_files(const struct doors *d)
{
	static const char *const suffixes[] = { "", "-wal", "-shm", ".lock" };
	char path[80];

	for (size_t i = 0; i < LENGTH(suffixes); i++) {
		snprintf(path, sizeof path, "%s%s", d->path, suffixes[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(d->directory), 0);
}

/* In the order of the program: the web door gives calls, the nng door takes the last answers. */
int
doors_close(void **state)
{
	struct doors *d = *state;

	sqlite3_close(d->look);
	gateway_stop(&d->gateway);
	core_close(&d->core);
	server_stop(&d->server);
	remove_files(d);
	free(d);
	return 0;
}

/* --- a look into the database --- */

static sqlite3_stmt *
look_start(const struct doors *d, const char *sql)
{
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v2(d->look, sql, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(d->look));
	return stmt;
}

int64_t
doors_count(const struct doors *d, const char *sql, const char *text)
{
	sqlite3_stmt *stmt = look_start(d, sql);
	int64_t n;

	sqlite3_bind_text(stmt, 1, text, -1, SQLITE_TRANSIENT);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	n = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return n;
}

static void
print_row(FILE *out, sqlite3_stmt *row)
{
	for (int i = 0; i < sqlite3_column_count(row); i++) {
		int type = sqlite3_column_type(row, i); /* before it is read as bytes */
		const unsigned char *bytes = sqlite3_column_blob(row, i);
		int n = sqlite3_column_bytes(row, i);

		fprintf(out, "|%d:", type);
		for (int b = 0; b < n; b++)
			fprintf(out, "%02x", bytes[b]);
	}
	fputc('\n', out);
}

static void
print_table(FILE *out, const struct doors *d, const char *table)
{
	char *sql = sqlite3_mprintf("SELECT * FROM \"%w\"", table);
	sqlite3_stmt *stmt = look_start(d, sql);

	fprintf(out, "%s\n", table);
	while (sqlite3_step(stmt) == SQLITE_ROW)
		print_row(out, stmt);
	sqlite3_finalize(stmt);
	sqlite3_free(sql);
}

char *
doors_dump(const struct doors *d)
{
	sqlite3_stmt *tables = look_start(d,
	    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'titen' ORDER BY 1");
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	while (sqlite3_step(tables) == SQLITE_ROW)
		print_table(out, d, (const char *)sqlite3_column_text(tables, 0));
	fclose(out);
	sqlite3_finalize(tables);
	return text;
}
