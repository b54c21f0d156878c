/* SPDX-License-Identifier: MIT */
/*
 * The manners of the program: what it refuses and how it says so, who may touch its files, how it
 * stops, and what the commands answer. Each test has a fresh directory (program.h).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <curl/curl.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/support/load.h"
#include "tests/support/peer.h"
#include "tests/support/program.h"
#include "tests/support/proof.h"

#define ROW_COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define IDLE_STOP_MS 8000 /* below the drain limit: an idle server waits for nobody */
#define DRAIN_MS 10000    /* of cmd/stop.c: calls under way have so long */
#define DEAD_CLIENTS 60
#define UNTAKEN_BYTES (64 << 10) /* the kernel takes more for a local socket, but not all */
#define UNDER_WAY 300            /* less than a connection may have */
#define FILE_BYTES_MAX ((size_t)1 << 20)

/* --- what is said */

/* Refused, in one line that has TEXT. */
static void
expect_refusal(const struct program_output *said, int code, const char *text)
{
	const char *end = strchr(said->err, '\n');

	if (said->code != code || strstr(said->err, text) == NULL)
		fail_msg("exit %d: %s", said->code, said->err);
	assert_int_equal(strncmp(said->err, "titen: error: ", 14), 0);
	assert_true(end != NULL && end[1] == '\0');
	assert_string_equal(said->out, "");
}

static void
expect_answer(const struct program_output *said, const char *text)
{
	if (said->code != 0 || strstr(said->out, text) == NULL)
		fail_msg("exit %d: %s%s", said->code, said->out, said->err);
}

static void
log_in(const char *key)
{
	setenv("TITEN_API_KEY", key, 1);
}

static void
stop(struct program *p)
{
	int64_t ms;

	program_signal(p, SIGTERM);
	assert_int_equal(program_await(p, &ms), 0);
	assert_in_range(ms, 0, IDLE_STOP_MS);
}

/* --- databases */

static void
a_missing_database_names_the_way_out(void **state)
{
	struct program *p = *state;
	struct program_output said = RUN("serve", "--db", p->db);

	expect_refusal(&said, 1, "titen bootstrap");
	assert_int_not_equal(access(p->db, F_OK), 0);
}

static size_t
file_read(const char *path, char *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, bytes, FILE_BYTES_MAX);

	close(fd);
	assert_in_range(n, 1, FILE_BYTES_MAX - 1);
	return (size_t)n;
}

static void
file_script(const char *path, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* Neither the server nor bootstrap takes the file, and neither changes it. */
static void
expect_left_alone(const struct program *p, const char *text)
{
	char *before = malloc(FILE_BYTES_MAX), *after = malloc(FILE_BYTES_MAX);
	size_t bytes = file_read(p->db, before);
	struct program_output said;

	said = RUN("serve", "--db", p->db, "--http", "off", "--rpc", "off");
	expect_refusal(&said, 1, text);
	said = RUN("bootstrap", "--db", p->db, "--org", "other");
	expect_refusal(&said, 1, text);
	assert_int_equal(file_read(p->db, after), bytes);
	assert_memory_equal(before, after, bytes);
	free(before);
	free(after);
}

static void
another_programs_database_is_left_alone(void **state)
{
	const struct program *p = *state;

	file_script(p->db, "CREATE TABLE recipes (name TEXT); INSERT INTO recipes VALUES ('soup')");
	expect_left_alone(p, "is not a Titen database");
}

static void
a_newer_database_is_left_alone(void **state)
{
	struct program *p = *state;

	program_bootstrap(p);
	file_script(p->db, "PRAGMA journal_mode = DELETE; PRAGMA user_version = 99");
	expect_left_alone(p, "schema version 99");
}

static void
a_database_has_one_server(void **state)
{
	struct program *p = *state;
	struct program_output said;

	program_bootstrap(p);
	program_serve(p);
	said = RUN("serve", "--db", p->db, "--http", "off", "--rpc", "off");
	expect_refusal(&said, 1, "in use");
	said = RUN("rpc", "call", "health.check", "--url", p->local);
	expect_answer(&said, "\"status\":\"ok\"");
	stop(p);
}

static void
bootstrap_works_with_and_without_a_server(void **state)
{
	struct program *p = *state;
	struct program_output said;

	program_bootstrap(p);
	program_serve(p);
	said = RUN("bootstrap", "--db", p->db, "--org", "second");
	expect_answer(&said, "\"api_key\":\"titen_sk_");
	stop(p);
	said = RUN("bootstrap", "--db", p->db, "--org", "third");
	expect_answer(&said, "\"principal_id\":\"owner\"");
	assert_int_equal(proof_number(p->db, "SELECT count(*) FROM organizations"), 3);
}

/* --- addresses */

/* A listener of our own on a free port. */
static int
occupy(int *port_r)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, bytes), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
	*port_r = ntohs(address.sin_port);
	return fd;
}

static void
a_busy_port_is_named(void **state)
{
	struct program *p = *state;
	char http[64], rpc[64], number[16];
	struct program_output said;
	int port, fd = occupy(&port);

	program_bootstrap(p);
	snprintf(http, sizeof(http), "127.0.0.1:%d", port);
	snprintf(rpc, sizeof(rpc), "tcp://127.0.0.1:%d", port);
	snprintf(number, sizeof(number), ":%d", port);
	said = RUN("serve", "--db", p->db, "--http", http, "--rpc", "off");
	expect_refusal(&said, 1, number);
	said = RUN("serve", "--db", p->db, "--http", "off", "--rpc", rpc);
	expect_refusal(&said, 1, number);
	close(fd);
}

static void
a_socket_path_that_is_too_long_is_refused(void **state)
{
	struct program *p = *state;
	char name[121] = "", db[256], url[300];
	struct program_output said;

	memset(name, 'x', sizeof(name) - 1);
	snprintf(db, sizeof(db), "%s/%s", p->directory, name);
	said = RUN("bootstrap", "--db", db, "--org", "acme");
	assert_int_equal(said.code, 0);
	said = RUN("serve", "--db", db, "--http", "off", "--rpc", "off");
	expect_refusal(&said, 1, "107");
	program_bootstrap(p);
	snprintf(url, sizeof(url), "ipc://%s/%s", p->directory, name);
	said = RUN("serve", "--db", p->db, "--http", "off", "--rpc", url);
	expect_refusal(&said, said.code == 2 ? 2 : 1, "107");
}

static void
files_are_the_owners_alone(void **state)
{
	static const struct {
		const char *suffix;
		mode_t mode;
	} rows[] = { { "", 0600 }, { "-wal", 0600 }, { "-shm", 0600 }, { ".lock", 0600 },
		{ ".run", 0700 }, { ".run/rpc.sock", 0600 } };
	struct program *p = *state;
	mode_t before = umask(0);
	struct stat file;
	char name[128];

	program_bootstrap(p);
	program_serve(p);
	umask(before);
	for (size_t i = 0; i < ROW_COUNT(rows); i++) {
		snprintf(name, sizeof(name), "%s%s", p->db, rows[i].suffix);
		if (stat(name, &file) != 0 || (file.st_mode & 07777) != rows[i].mode)
			fail_msg("row %zu: mode %o", i, (unsigned)file.st_mode & 07777);
	}
	stop(p);
}

static void
a_socket_left_by_a_killed_server_is_taken_over(void **state)
{
	struct program *p = *state;
	struct program_output said;

	program_bootstrap(p);
	program_serve(p);
	program_signal(p, SIGKILL);
	assert_int_equal(program_await(p, NULL), -SIGKILL);
	assert_int_equal(access(p->local + strlen("ipc://"), F_OK), 0);
	program_serve(p);
	said = RUN("rpc", "call", "health.check", "--url", p->local);
	expect_answer(&said, "\"status\":\"ok\"");
	stop(p);
}

/* --- stopping */

/* Until the server's log says so. */
static void
await_log(const struct program *p, const char *text)
{
	int64_t end_ms = clock_monotonic_ms() + PROGRAM_PATIENCE_MS;
	char *log = calloc(1, FILE_BYTES_MAX);
	bool said = false;

	while (!said && clock_monotonic_ms() < end_ms) {
		int fd = open(p->err, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, log, FILE_BYTES_MAX - 1);

		close(fd);
		log[n > 0 ? n : 0] = '\0';
		said = strstr(log, text) != NULL;
		poll(NULL, 0, said ? 0 : 5);
	}
	free(log);
	assert_true(said);
}

static struct peer
dial_http(const struct program *p)
{
	return peer_dial_tcp(atoi(strrchr(p->http, ':') + 1));
}

static const char lease_body[] = "{\"resource_type\":\"deploy\",\"resource_id\":\"checkout\","
				 "\"purpose\":\"smoke\",\"ttl_seconds\":600}";

/* Ask for the I-th lease of the owner. */
static void
ask_for_lease(const struct program *p, struct peer *peer, int i)
{
	struct act act = { .kind = ACT_ACQUIRE };
	Titen__V1__Request request = TITEN__V1__REQUEST__INIT;
	uint8_t payload[ACT_REQUEST_BYTES], body[2 * ACT_REQUEST_BYTES];
	char authorization[80];

	snprintf(act.name, sizeof(act.name), "lease-%d", i);
	snprintf(authorization, sizeof(authorization), "Bearer %s", p->owner_key);
	request.method = (char *)act_method(&act);
	request.authorization = authorization;
	request.has_payload = true;
	request.payload = (ProtobufCBinaryData){ act_pack(&act, payload), payload };
	peer_send(peer, body, titen__v1__request__pack(&request, body));
}

/* How many of the answers that still come say that it was done; the others say "not now". */
static int64_t
count_done(const struct peer *peer)
{
	int64_t done = 0;
	char byte;

	while (recv(peer->fd, &byte, 1, MSG_PEEK) == 1) {
		Titen__V1__Reply *reply = peer_receive(peer);

		if (reply->code != 0)
			assert_string_equal(reply->reason, "UNAVAILABLE");
		done += reply->code == 0;
		titen__v1__reply__free_unpacked(reply, NULL);
	}
	return done;
}

static void
what_is_under_way_is_answered(void **state)
{
	struct program *p = *state;
	struct peer peer;
	int64_t done;

	program_bootstrap(p);
	program_serve(p);
	peer = peer_tcp(p->rpc_port);
	for (int i = 0; i < UNDER_WAY; i++)
		ask_for_lease(p, &peer, i);
	peer_expect(&peer, 0);
	program_signal(p, SIGTERM);
	done = 1 + count_done(&peer);
	assert_int_equal(program_await(p, NULL), 0);
	peer_close(&peer);
	assert_int_equal(proof_number(p->db, "SELECT count(*) FROM leases"), done);
}

/* A client with calls under way for as long as a stop waits for it: two seconds. */
static struct peer
answers_not_taken(const struct program *p)
{
	struct peer peer = peer_ipc(p->local);
	int bytes = 0;

	for (int i = 0; i < UNDER_WAY; i++)
		peer_ask(&peer, "titen.v1.ReflectionService/Describe", 0);
	while (bytes < UNTAKEN_BYTES && ioctl(peer.fd, FIONREAD, &bytes) == 0)
		poll(NULL, 0, 1);
	return peer;
}

static void
a_second_signal_stops_at_once(void **state)
{
	struct program *p = *state;
	struct peer peer;
	int64_t ms;

	program_bootstrap(p);
	program_serve(p);
	peer = answers_not_taken(p);
	program_signal(p, SIGTERM);
	await_log(p, "Stopping");
	program_signal(p, SIGINT);
	assert_int_equal(program_await(p, &ms), 130);
	assert_in_range(ms, 0, IDLE_STOP_MS);
	peer_close(&peer);
	proof_of_store(p->db);
}

static void
connections_kept_alive_do_not_delay_the_stop(void **state)
{
	static const char request[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
	struct program *p = *state;
	struct peer peers[20];
	char answer[1024];
	int64_t ms;

	program_bootstrap(p);
	program_serve(p);
	for (size_t i = 0; i < ROW_COUNT(peers); i++) {
		peers[i] = dial_http(p);
		peer_write(&peers[i], request, strlen(request));
		assert_true(recv(peers[i].fd, answer, sizeof(answer), 0) > 0);
	}
	program_signal(p, SIGTERM);
	assert_int_equal(program_await(p, &ms), 0);
	assert_in_range(ms, 0, DRAIN_MS);
	for (size_t i = 0; i < ROW_COUNT(peers); i++)
		peer_close(&peers[i]);
}

/* The fleet runs into the stop; what it was told before holds. */
static void
a_stop_under_load_loses_nothing_that_was_acknowledged(void **state)
{
	struct program *p = *state;
	char error[256] = "";
	struct load *load;
	int64_t ms;

	program_bootstrap(p);
	program_serve(p);
	load = load_start(&(struct load_options){ .rpc = p->rpc,
			      .http = p->http,
			      .key = p->owner_key,
			      .rpc_agents = 2,
			      .rpc_strands = 16,
			      .rest_agents = 4 },
	    error, sizeof(error));
	assert_non_null(load);
	poll(NULL, 0, 200);
	program_signal(p, SIGTERM);
	assert_int_equal(program_await(p, &ms), 0);
	assert_in_range(ms, 0, DRAIN_MS + IDLE_STOP_MS);
	load_halt(load, true);
	proof_of_store(p->db);
	proof_of_acts(p->db, load_result(load));
	load_free(&load);
}

/* --- clients that die */

static int
descriptors(const struct program *p)
{
	char name[64];
	DIR *directory;
	int n = 0;

	snprintf(name, sizeof(name), "/proc/%d/fd", (int)p->pid);
	directory = opendir(name);
	assert_non_null(directory);
	while (readdir(directory) != NULL) /* NOLINT(concurrency-mt-unsafe) */
		n++;
	closedir(directory);
	return n;
}

/* With requests under way, by closing and by resetting in turn. */
static void
client_dies(const struct program *p, int i)
{
	struct peer peer = i % 2 == 0 ? peer_tcp(p->rpc_port) : peer_ipc(p->local);

	for (int request = 0; request < 20; request++)
		peer_ask(&peer, "titen.v1.HealthService/Echo", 1000);
	if (i % 4 < 2)
		peer_close(&peer);
	else
		peer_reset(&peer);
}

static void
killed_clients_leave_nothing_behind(void **state)
{
	struct program *p = *state;
	int64_t end_ms = clock_monotonic_ms() + PROGRAM_PATIENCE_MS;
	struct program_output said;
	int before;

	program_bootstrap(p);
	program_serve(p);
	said = RUN("rpc", "call", "health.check");
	assert_int_equal(said.code, 0);
	before = descriptors(p);
	for (int i = 0; i < DEAD_CLIENTS; i++)
		client_dies(p, i);
	while (descriptors(p) > before && clock_monotonic_ms() < end_ms)
		poll(NULL, 0, 10);
	assert_in_range(descriptors(p), 0, before);
	said = RUN("rpc", "call", "health.check");
	expect_answer(&said, "\"status\":\"ok\"");
	said = RUN("rpc", "call", "health.check", "--url", p->local);
	expect_answer(&said, "\"status\":\"ok\"");
	stop(p);
}

/* --- commands */

static void
keys_are_made_listed_and_revoked(void **state)
{
	struct program *p = *state;
	struct program_output said;
	char id[64], key[64];

	program_bootstrap(p);
	program_serve(p);
	log_in(p->owner_key);
	said = RUN("key", "create", "--label", "coder", "--principal", "agent_coder", "--scope",
	    "leases:write", "-o", "json");
	expect_answer(&said, "\"principal_id\":\"agent_coder\"");
	program_member(said.out, "key_id", id, sizeof(id));
	program_member(said.out, "api_key", key, sizeof(key));
	said = RUN("key", "list", "-o", "json");
	expect_answer(&said, id);
	assert_null(strstr(said.out, key));
	said = RUN("key", "revoke", id, "-o", "json");
	expect_answer(&said, "\"revoked\":true");
	log_in(key);
	said = RUN("rpc", "call", "principal.get");
	assert_int_equal(said.code, 4);
	stop(p);
}

static void
exit_codes_say_what_happened(void **state)
{
	struct program *p = *state;
	struct program_output said;
	char key[64];

	program_bootstrap(p);
	program_serve(p);
	assert_int_equal(RUN("rpc", "call", "event.list").code, 4);
	log_in(p->owner_key);
	said = RUN("rpc", "call", "lease.acquire", "-d", lease_body);
	expect_answer(&said, "\"fence\":1");
	said = RUN("rpc", "call", "checkpoint.get", "-d", "{\"checkpoint_id\":\"ckpt_1\"}");
	assert_int_equal(said.code, 5);
	said = RUN("key", "create", "--label", "other", "--scope", "leases:write", "-o", "json");
	program_member(said.out, "api_key", key, sizeof(key));
	log_in(key);
	said = RUN("rpc", "call", "lease.acquire", "-d", lease_body);
	assert_int_equal(said.code, 6);
	assert_non_null(strstr(said.err, "CONFLICT"));
	assert_int_equal(RUN("rpc", "call", "event.list").code, 4);
	stop(p);
	assert_int_equal(RUN("rpc", "call", "health.check").code, 8);
}

#define MANNERS(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		MANNERS(a_missing_database_names_the_way_out),
		MANNERS(another_programs_database_is_left_alone),
		MANNERS(a_newer_database_is_left_alone),
		MANNERS(a_database_has_one_server),
		MANNERS(bootstrap_works_with_and_without_a_server),
		MANNERS(a_busy_port_is_named),
		MANNERS(a_socket_path_that_is_too_long_is_refused),
		MANNERS(files_are_the_owners_alone),
		MANNERS(a_socket_left_by_a_killed_server_is_taken_over),
		MANNERS(what_is_under_way_is_answered),
		MANNERS(a_second_signal_stops_at_once),
		MANNERS(connections_kept_alive_do_not_delay_the_stop),
		MANNERS(a_stop_under_load_loses_nothing_that_was_acknowledged),
		MANNERS(killed_clients_leave_nothing_behind),
		MANNERS(keys_are_made_listed_and_revoked),
		MANNERS(exit_codes_say_what_happened),
	};

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_ALL) != 0)
		return EXIT_FAILURE;
	return cmocka_run_group_tests_name("serve", tests, NULL, NULL);
}
