/* SPDX-License-Identifier: MIT */
/*
 * A core on a fresh database, with hands on its clock and people who use it. Verbs read like the
 * domain and go through the whole pipeline:
 *
 *	expect(f, OK, acquire(f, f->alice, "deploy", "checkout", 30));
 *	expect(f, CONFLICT, acquire(f, f->bob, "deploy", "checkout", 30));
 *	advance_seconds(f, 30);
 *	expect(f, OK, acquire(f, f->bob, "deploy", "checkout", 30));
 *
 * Every answer stays until the fixture closes, so ids may be kept as they come.
 */
#ifndef TITEN_TESTS_FIXTURE_H
#define TITEN_TESTS_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "core/call.h"
#include "core/handlers.h"
#include "core/rpc.h"

#define RACERS 8
#define HOUR_MS INT64_C(3600000)
#define START_MS INT64_C(1785409093829) /* where the hands stand at first */

/* The time, moved by the test alone. */
struct hands {
	_Atomic int64_t wall_ms;
	_Atomic int64_t boot_ms;
};

struct agent {
	const char *name;
	const char *key_id;
	const char *authorization; /* NULL: none */
};

/* One call and the memory of its answer. */
struct answer {
	struct call call;
	struct arena arena;
	sem_t done;
	enum status refused; /* before it could be submitted */
	void *arg;           /* of a handler of the test's own */
	struct answer *next;
};

struct fixture {
	char directory[64];
	char path[96];
	struct hands *hands;
	struct core *core;
	struct answer *answers;
	struct answer *last;
	const char *idempotency_key; /* of the next call */
	/* Of the organization "acme", the owner with the scope *, the others with what agents need;
	 */
	const struct agent *owner, *alice, *bob, *tom;
	/* and of the organization "zenith": its owner and an agent. */
	const struct agent *zed, *dora;
};

/* What agents may do. */
#define AGENT_SCOPES                                                                               \
	"leases:write", "handoffs:read", "handoffs:write", "checkpoints:read",                     \
	    "checkpoints:write", "events:read"

int fixture_open(void **state);
int fixture_close(void **state);

#define STORY(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)

/* Close the core; open one on the same file; both. */
void stop(struct fixture *f);
void start(struct fixture *f);
void restart(struct fixture *f);
void advance_ms(struct fixture *f, int64_t ms);
void advance_seconds(struct fixture *f, int64_t seconds);
/* Somebody sets the wall clock; no time passes. */
void set_wall(struct fixture *f, int64_t step_ms);

/* --- calls: METHOD is "LeaseService/Acquire", WHO NULL the owner's local socket */

struct answer *draft(
    struct fixture *f, const struct agent *who, const char *method, const void *request);
void submit(struct fixture *f, struct answer *a);
enum status await(struct answer *a);
/* All three; the answer is the last one then. */
enum status ask(
    struct fixture *f, const struct agent *who, const char *method, const void *request);
/* A public call with a handler of the test's own, which finds ARG by own_arg(). */
struct answer *draft_own(
    struct fixture *f, enum access access, enum status (*run)(struct call *c), void *arg);
void *own_arg(const struct call *c);
/* The next call carries this idempotency key. */
void retry_as(struct fixture *f, const char *idempotency_key);

/* The last answer as the message it is. */
#define GOT(f, name) ((const PB(name) *)last_response(f))
const void *last_response(const struct fixture *f);
const char *last_message(const struct fixture *f);

#define expect(f, reason, call) expect_at(f, STATUS_##reason, call, __FILE__, __LINE__)
void expect_at(
    const struct fixture *f, enum status wanted, enum status came, const char *file, int line);

int64_t time_of(const Google__Protobuf__Timestamp *time);

/* --- verbs */

enum status acquire(struct fixture *f, const struct agent *who, const char *type, const char *id,
    int64_t ttl_seconds);
enum status acquire_for(struct fixture *f, const struct agent *who, const char *id,
    int64_t ttl_seconds, const char *purpose);
enum status release(struct fixture *f, const struct agent *who, const char *lease_id);

enum status hand_off(
    struct fixture *f, const struct agent *who, const char *to_principal, const char *subject_id);
enum status hand_over(struct fixture *f, const struct agent *who, const char *to_principal,
    const char *subject_id, const char *checkpoint_id, const char *message);
enum status inbox(struct fixture *f, const struct agent *who, const char *after);
size_t inbox_size(struct fixture *f, const struct agent *who);
enum status resolve(struct fixture *f, const struct agent *who, const char *handoff_id, int status);
#define ACCEPTED TITEN__V1__HANDOFF_RESOLVE_REQUEST__DECISION__ACCEPTED
#define REJECTED TITEN__V1__HANDOFF_RESOLVE_REQUEST__DECISION__REJECTED

/* Of the kind TASK_STATE, for ten minutes. */
enum status save(
    struct fixture *f, const struct agent *who, const char *subject_id, const char *state);
enum status load(struct fixture *f, const struct agent *who, const char *checkpoint_id);
enum status find(struct fixture *f, const struct agent *who, const char *subject_id);
enum status discard(struct fixture *f, const struct agent *who, const char *checkpoint_id);

/* KIND NULL: what is documented. LIMIT 0: none given. */
enum status events_after(
    struct fixture *f, const struct agent *who, const char *after, int64_t limit, const char *kind);
enum status events_of(struct fixture *f, const struct agent *who, const char *kind);
/* How many of that kind. */
size_t event_count(struct fixture *f, const struct agent *who, const char *kind);

/* SCOPES end with NULL; PRINCIPAL NULL: a new one. */
enum status make_key(
    struct fixture *f, const struct agent *who, const char *principal, const char *const *scopes);
enum status revoke_key(struct fixture *f, const struct agent *who, const char *key_id);
enum status bootstrap(struct fixture *f, const char *name);
/* Whom the last answer of make_key() or bootstrap() lets in. */
const struct agent *agent_made(struct fixture *f);
/* A new principal of WHO's organization, or another key for one that is there. */
const struct agent *agent_join(
    struct fixture *f, const struct agent *who, const char *name, const char *const *scopes);

/* --- many at once */

/* RUN on eight threads at once, each with its number and a copy of the fixture. */
void race(struct fixture *f, enum status (*run)(struct fixture *f, int racer),
    enum status results_r[RACERS]);
int how_many(const enum status results[RACERS], enum status wanted);

/* --- looking into the file */

/* The number a query gives. */
int64_t count(const struct fixture *f, const char *sql);
/* What the store would do for a query; free() it. */
char *plan(const struct fixture *f, const char *sql);
/* Every row of every table but what the clock says; free() it. */
char *dump(const struct fixture *f);

#endif
