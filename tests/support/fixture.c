/* SPDX-License-Identifier: MIT */
/* Opening and closing, then calls, then the race. The verbs stand in verbs.c, the looks into the
 * file in look.c. */
#include "tests/support/fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sodium.h>

#include "core/json_read.h"

/* --- time */

static int64_t
hands_wall_ms(void *arg)
{
	return atomic_load(&((struct hands *)arg)->wall_ms);
}

static int64_t
hands_boot_ms(void *arg)
{
	return atomic_load(&((struct hands *)arg)->boot_ms);
}

void
advance_ms(struct fixture *f, int64_t ms)
{
	/* The wall first: a call between the two sees a wall clock that ran ahead a little. */
	atomic_fetch_add(&f->hands->wall_ms, ms);
	atomic_fetch_add(&f->hands->boot_ms, ms);
}

void
advance_seconds(struct fixture *f, int64_t seconds)
{
	advance_ms(f, seconds * 1000);
}

void
set_wall(struct fixture *f, int64_t step_ms)
{
	atomic_fetch_add(&f->hands->wall_ms, step_ms);
}

/* --- opening and closing */

static void
process_init(void)
{
	static bool done;
	const char *error;

	if (done)
		return;
	done = true;
	assert_true(sodium_init() >= 0);
	json_init();
	if (!methods_init(&error))
		fail_msg("the table of methods: %s", error);
}

void
start(struct fixture *f)
{
	struct clock_source source = { hands_wall_ms, hands_boot_ms, f->hands };
	struct core_options options = { f->path, &source, true, "test" };
	char error[256] = "";

	f->core = core_open(&options, error, sizeof error);
	if (f->core == NULL)
		fail_msg("%s", error);
}

void
stop(struct fixture *f)
{
	core_close(&f->core);
}

void
restart(struct fixture *f)
{
	stop(f);
	start(f);
}

static void
people(struct fixture *f)
{
	static const char *const scopes[] = { AGENT_SCOPES, NULL };

	expect(f, OK, bootstrap(f, "acme"));
	f->owner = agent_made(f);
	f->alice = agent_join(f, f->owner, "alice", scopes);
	f->bob = agent_join(f, f->owner, "bob", scopes);
	f->tom = agent_join(f, f->owner, "tom", scopes);
	expect(f, OK, bootstrap(f, "zenith"));
	f->zed = agent_made(f);
	f->dora = agent_join(f, f->zed, "dora", scopes);
}

int
fixture_open(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	const char *scratch = secure_getenv("TMPDIR");

	process_init();
	assert_non_null(f);
	f->hands = calloc(1, sizeof *f->hands);
	assert_non_null(f->hands);
	atomic_store(&f->hands->wall_ms, START_MS);
	snprintf(f->directory, sizeof f->directory, "%.40s/titen-XXXXXX",
	    scratch == NULL ? "/tmp" : scratch);
	assert_non_null(mkdtemp(f->directory));
	snprintf(f->path, sizeof f->path, "%s/titen.db", f->directory);
	start(f);
	people(f);
	*state = f;
	return 0;
}

static void
remove_directory(const char *path)
{
	struct dirent **entries;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int n = scandir(path, &entries, NULL, NULL);

	assert_true(fd >= 0 && n >= 0);
	while (n-- > 0) {
		unlinkat(fd, entries[n]->d_name, 0);
		free(entries[n]);
	}
	free(entries);
	close(fd);
	assert_int_equal(rmdir(path), 0);
}

int
fixture_close(void **state)
{
	struct fixture *f = *state;
	struct answer *a, *next;

	stop(f);
	for (a = f->answers; a != NULL; a = next) {
		next = a->next;
		arena_free(&a->arena);
		sem_destroy(&a->done);
		free(a);
	}
	remove_directory(f->directory);
	free(f->hands);
	free(f);
	return 0;
}

/* --- calls */

static void
on_done(struct call *c)
{
	sem_post(&((struct answer *)c->owner)->done);
}

static struct answer *
answer_make(struct fixture *f)
{
	struct answer *a = calloc(1, sizeof *a);

	if (a == NULL)
		abort();
	arena_init(&a->arena);
	call_init(&a->call, &a->arena, on_done, a);
	sem_init(&a->done, 0, 0);
	a->next = f->answers;
	f->answers = a;
	return a;
}

struct answer *
draft(struct fixture *f, const struct agent *who, const char *method, const void *request)
{
	struct answer *a = answer_make(f);
	size_t bytes = protobuf_c_message_get_packed_size(request);
	uint8_t *packed = arena_alloc(&a->arena, bytes + 1);

	protobuf_c_message_pack(request, packed);
	a->call.local = who == NULL;
	a->call.authorization = who == NULL ? NULL : who->authorization;
	a->call.idempotency_key = f->idempotency_key;
	f->idempotency_key = NULL;
	a->refused = rpc_find(&a->call, arena_printf(&a->arena, "titen.v1.%s", method));
	if (a->refused == STATUS_OK)
		a->refused = rpc_decode(&a->call, packed, bytes);
	return a;
}

struct answer *
draft_own(struct fixture *f, enum access access, enum status (*run)(struct call *c), void *arg)
{
	PB(HealthCheckRequest) req = TITEN__V1__HEALTH_CHECK_REQUEST__INIT;
	struct answer *a = draft(f, NULL, "HealthService/Check", &req);
	struct method *method = arena_alloc(&a->arena, sizeof *method);

	*method = *a->call.method;
	method->access = access;
	method->run = run;
	a->call.method = method;
	a->arg = arg;
	return a;
}

void *
own_arg(const struct call *c)
{
	return ((const struct answer *)c->owner)->arg;
}

void
submit(struct fixture *f, struct answer *a)
{
	if (a->refused != STATUS_OK)
		rpc_refuse(&a->call, a->refused);
	else
		rpc_submit(f->core, &a->call);
}

enum status
await(struct answer *a)
{
	while (sem_wait(&a->done) != 0 && errno == EINTR)
		;
	return a->call.status;
}

enum status
ask(struct fixture *f, const struct agent *who, const char *method, const void *request)
{
	f->last = draft(f, who, method, request);
	submit(f, f->last);
	return await(f->last);
}

void
retry_as(struct fixture *f, const char *idempotency_key)
{
	f->idempotency_key = idempotency_key;
}

const void *
last_response(const struct fixture *f)
{
	assert_non_null(f->last->call.response);
	return f->last->call.response;
}

const char *
last_message(const struct fixture *f)
{
	return f->last->call.message == NULL ? "" : f->last->call.message;
}

void
expect_at(const struct fixture *f, enum status wanted, enum status came, const char *file, int line)
{
	if (wanted == came)
		return;
	print_error("expected %s, came %s: %s\n", status_reason(wanted), status_reason(came),
	    last_message(f));
	_fail(file, line);
}

int64_t
time_of(const Google__Protobuf__Timestamp *time)
{
	assert_non_null(time);
	return time->seconds * 1000 + time->nanos / 1000000;
}

/* --- many at once */

struct racer {
	struct fixture f;
	pthread_t thread;
	pthread_barrier_t *start;
	enum status (*run)(struct fixture *f, int racer);
	int number;
	enum status result;
};

static void *
racer_main(void *arg)
{
	struct racer *r = arg;

	pthread_barrier_wait(r->start);
	r->result = r->run(&r->f, r->number);
	return NULL;
}

static void
keep_answers(struct fixture *f, struct answer *answers)
{
	while (answers != NULL) {
		struct answer *next = answers->next;

		answers->next = f->answers;
		f->answers = answers;
		answers = next;
	}
}

void
race(struct fixture *f, enum status (*run)(struct fixture *f, int racer),
    enum status results_r[RACERS])
{
	struct racer racers[RACERS];
	pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, RACERS);
	for (int i = 0; i < RACERS; i++) {
		racers[i] = (struct racer){ .f = *f, .start = &start, .run = run, .number = i };
		racers[i].f.answers = NULL;
		assert_int_equal(
		    pthread_create(&racers[i].thread, NULL, racer_main, &racers[i]), 0);
	}
	for (int i = 0; i < RACERS; i++) {
		pthread_join(racers[i].thread, NULL);
		results_r[i] = racers[i].result;
		keep_answers(f, racers[i].f.answers);
	}
	pthread_barrier_destroy(&start);
}

int
how_many(const enum status results[RACERS], enum status wanted)
{
	int n = 0;

	for (int i = 0; i < RACERS; i++)
		n += results[i] == wanted;
	return n;
}
