/* SPDX-License-Identifier: MIT */
/*
 * Cursors, limits and kinds on a real core with two organizations. What the file holds is read
 * once, past the core; every page must be exactly what follows from it: the reader's events behind
 * the cursor, in order, and nobody else's.
 */
#include "tests/fuzz.h"
#include "tests/support/fixture.h"

#include <sqlite3.h>

#include "core/event.h"

#define STORIES 30 /* enough for a page of 50 to end before the events do */
#define EVENTS_MAX 1024
#define KINDS_MAX 24 /* more than a request may name */
#define LIMIT_STANDARD 50
#define LIMIT_MOST 200

struct row {
	char id[ID_TEXT_BYTES];
	int64_t organization;
	int64_t kind;
	int64_t viewers[EVENT_VIEWERS_MAX];
};

/* One request, as the bytes made it. */
struct question {
	PB(EventListRequest) list;
	char *kinds[KINDS_MAX];
	const struct agent *who;
	bool after_raw;
};

static struct fixture *people;
static const struct agent *readers[5];
static struct row rows[EVENTS_MAX];
static size_t rows_n;
static struct arena arena;

/* --- what there is */

static void
story(int i)
{
	char name[24];
	struct fixture *f = people;

	snprintf(name, sizeof name, "r%d", i);
	expect(f, OK, acquire(f, f->alice, "deploy", name, 600));
	expect(f, OK, release(f, f->alice, GOT(f, LeaseAcquireResponse)->lease_id));
	expect(f, OK, hand_off(f, f->alice, "bob", name));
	expect(f, OK, resolve(f, f->bob, GOT(f, HandoffCreateResponse)->handoff_id, ACCEPTED));
	expect(f, OK, acquire(f, f->bob, "deploy", name, 600));
	expect(f, OK, hand_off(f, f->zed, "dora", name));
	expect(f, OK, acquire(f, f->dora, "deploy", name, 600));
}

static void
row_take(sqlite3_stmt *stmt)
{
	struct row *row = &rows[rows_n++];
	struct id id;

	fuzz_hold(rows_n < EVENTS_MAX, "room for the events");
	memcpy(id.bytes, sqlite3_column_blob(stmt, 0), sizeof id.bytes);
	id_write(row->id, "evt", &id);
	row->organization = sqlite3_column_int64(stmt, 1);
	row->kind = sqlite3_column_int64(stmt, 2);
	row->viewers[0] = sqlite3_column_int64(stmt, 3);
	row->viewers[1] = sqlite3_column_int64(stmt, 4);
}

static void
rows_read(const char *path)
{
	/* Numbers of principals are the whole file's, and a viewer belongs to one organization. */
	static const char sql[] =
	    "SELECT e.public_id, e.organization, e.kind, min(p.id), max(p.id) FROM events e"
	    " JOIN audience a ON a.event = e.public_id JOIN principals p ON p.id = a.viewer"
	    " AND p.organization = e.organization GROUP BY 1, 2, 3 ORDER BY e.organization, e.seq";
	sqlite3 *handle = NULL;
	sqlite3_stmt *stmt = NULL;

	fuzz_hold(sqlite3_open_v2(path, &handle, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
		      sqlite3_prepare_v2(handle, sql, -1, &stmt, NULL) == SQLITE_OK,
	    "the file can be read");
	while (sqlite3_step(stmt) == SQLITE_ROW)
		row_take(stmt);
	sqlite3_finalize(stmt);
	sqlite3_close(handle);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	void *state = NULL;

	(void)argc;
	(void)argv;
	fuzz_process_init();
	fuzz_hold(fixture_open(&state) == 0, "a core");
	people = state;
	for (int i = 0; i < STORIES; i++)
		story(i);
	rows_read(people->path);
	readers[0] = people->owner;
	readers[1] = people->alice;
	readers[2] = people->bob;
	readers[3] = people->zed;
	readers[4] = people->dora;
	arena_init(&arena);
	return 0;
}

/* --- what must come */

static bool
visible(const struct row *row, const struct identity *who)
{
	if (row->organization != who->organization)
		return false;
	return scope_granted(who->scopes, RIGHT_EVENTS_ALL) || row->viewers[0] == who->principal ||
	       row->viewers[1] == who->principal;
}

static const char *
kind_text(int64_t kind)
{
#define KIND(name, number, text, resource, prefix, reach)                                          \
	if (kind == (number))                                                                      \
		return text;
#include "kinds.def"
	return "";
}

static bool
wanted(const struct question *q, int64_t kind)
{
	const char *text = kind_text(kind);
	bool match = q->list.n_kind == 0 && kind != EVENT_LEASE_RELEASED;

	for (size_t i = 0; i < q->list.n_kind; i++) {
		size_t bytes = strlen(q->kinds[i]);

		match = match || strcmp(q->kinds[i], text) == 0 || strcmp(q->kinds[i], "*") == 0;
		match = match || (bytes >= 2 && strcmp(q->kinds[i] + bytes - 2, ".*") == 0 &&
				     strncmp(q->kinds[i], text, bytes - 1) == 0);
	}
	return match;
}

/* The row of event ID; none: rows_n. */
static size_t
row_find(const char *id)
{
	size_t i = 0;

	while (i < rows_n && strcmp(rows[i].id, id) != 0)
		i++;
	return i;
}

static void
page_holds(const struct question *q, const struct identity *who, const PB(EventListResponse) *page)
{
	size_t first = q->list.after == NULL ? 0 : row_find(q->list.after) + 1, n = 0;
	size_t most = q->list.has_limit ? (size_t)q->list.limit : LIMIT_STANDARD;

	fuzz_hold(first <= rows_n, "a cursor that was taken is an event");
	most = most > LIMIT_MOST ? LIMIT_MOST : most;
	for (size_t i = first; i < rows_n && n < most; i++) {
		if (!visible(&rows[i], who) || !wanted(q, rows[i].kind))
			continue;
		fuzz_hold(n < page->n_events, "no event is missing");
		fuzz_hold(strcmp(page->events[n++]->id, rows[i].id) == 0, "the events, in order");
	}
	fuzz_hold(n == page->n_events, "and no others");
	if (n > 0)
		fuzz_hold(strcmp(page->cursor, page->events[n - 1]->id) == 0, "the last one's id");
}

/* --- asking */

static void
on_done(struct call *c)
{
	sem_post(c->owner);
}

static enum status
run(struct call *call, const struct agent *who, const char *method, ProtobufCMessage *request)
{
	sem_t done;

	sem_init(&done, 0, 0);
	call_init(call, &arena, on_done, &done);
	call->authorization = who->authorization;
	fuzz_hold(rpc_find(call, method) == STATUS_OK, "the method");
	call->request = request;
	rpc_submit(people->core, call);
	while (sem_wait(&done) != 0)
		;
	sem_destroy(&done);
	fuzz_hold(call->status != STATUS_INTERNAL && call->status != STATUS_UNAVAILABLE,
	    "no question breaks anything");
	return call->status;
}

static void
list_holds(struct question *q)
{
	struct call call;
	enum status st = run(&call, q->who, "titen.v1.EventService/List", &q->list.base);
	size_t after = q->list.after == NULL ? rows_n : row_find(q->list.after);
	bool plain = q->list.n_kind == 0 && (!q->list.has_limit || q->list.limit > 0);
	bool known = after < rows_n && visible(&rows[after], &call.who);

	if (st == STATUS_OK) {
		fuzz_hold(q->list.after == NULL || known, "a cursor of one's own");
		page_holds(q, &call.who, (PB(EventListResponse) *)call.response);
	} else {
		fuzz_hold(st == STATUS_VALIDATION_ERROR, "a refusal is the asker's fault");
		fuzz_hold(!plain || (q->list.after != NULL && !known), "and there is one");
	}
}

/* The same id where one record is asked for, and as the cursor of the other lists. */
static void
elsewhere_holds(struct question *q)
{
	PB(EventGetRequest) get = TITEN__V1__EVENT_GET_REQUEST__INIT;
	PB(HandoffListRequest) inbox_of = TITEN__V1__HANDOFF_LIST_REQUEST__INIT;
	PB(KeyListRequest) keys = TITEN__V1__KEY_LIST_REQUEST__INIT;
	size_t after = row_find(q->list.after);
	struct call call;
	enum status st;

	get.event_id = inbox_of.after = keys.after = q->list.after;
	keys.has_limit = q->list.has_limit;
	keys.limit = q->list.limit;
	st = run(&call, q->who, "titen.v1.EventService/Get", &get.base);
	fuzz_hold(st == STATUS_OK || st == STATUS_NOT_FOUND, "an event or none");
	fuzz_hold((st == STATUS_OK) == (after < rows_n && visible(&rows[after], &call.who)),
	    "and only one's own");
	run(&call, q->who, "titen.v1.HandoffService/List", &inbox_of.base);
	run(&call, people->owner, "titen.v1.KeyService/List", &keys.base);
}

static void
question_take(struct question *q, struct fuzz_bytes *bytes)
{
	uint8_t shape = fuzz_byte(bytes);

	titen__v1__event_list_request__init(&q->list);
	q->who = readers[fuzz_byte(bytes) % 5];
	q->after_raw = (shape & 3) == 2;
	if ((shape & 3) == 1)
		q->list.after = rows[(size_t)fuzz_byte(bytes) * 2 % rows_n].id;
	q->list.has_limit = (shape & 4) != 0;
	for (int i = 0; q->list.has_limit && i < ((shape & 8) != 0 ? 8 : 1); i++)
		q->list.limit = (int64_t)((uint64_t)q->list.limit << 8 | fuzz_byte(bytes));
	if (q->after_raw)
		q->list.after = fuzz_line(bytes);
	q->after_raw = q->after_raw && q->list.after != NULL;
	q->list.kind = q->kinds;
	while (q->list.n_kind < KINDS_MAX && (q->kinds[q->list.n_kind] = fuzz_line(bytes)) != NULL)
		q->list.n_kind++;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes bytes = { data, size };
	struct question q = { .who = NULL };

	arena_reset(&arena);
	question_take(&q, &bytes);
	list_holds(&q);
	if (q.list.after != NULL)
		elsewhere_holds(&q);
	for (size_t i = 0; i < q.list.n_kind; i++)
		free(q.kinds[i]);
	if (q.after_raw)
		free(q.list.after);
	return 0;
}
