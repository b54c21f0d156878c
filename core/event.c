/* SPDX-License-Identifier: MIT */
/* Kinds, then appending, then reading: a cursor, a page, one event. */
#include "core/event.h"

#include <string.h>

#include "core/db.h"
#include "core/handlers.h"
#include "core/page.h"
#include "core/tally.h"

#define EVENTS_LIMIT_DEFAULT 50
#define EVENTS_LIMIT_MAX 200
#define KIND_FILTERS_MAX 20 /* more than there are kinds to name */
#define KIND_TEXT_MAX 120

enum reach { DOCUMENTED, OPT_IN };

static const struct {
	enum event_kind kind;
	const char *text;
	const char *resource;
	const char *prefix;
	enum reach reach;
} kinds[] = {
#define KIND(name, number, text, resource, prefix, reach)                                          \
	{ EVENT_##name, text, resource, prefix, reach },
#include "kinds.def"
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

typedef uint64_t kind_set; /* bit 1 << number */

#define LEASE_KINDS ((kind_set)1 << EVENT_LEASE_ACQUIRED | (kind_set)1 << EVENT_LEASE_RELEASED)

static bool
kind_matches(size_t i, const char *pattern)
{
	size_t length = strlen(pattern);

	if (length >= 2 && strcmp(pattern + length - 2, ".*") == 0)
		return strncmp(kinds[i].text, pattern, length - 1) == 0;
	return strcmp(pattern, "*") == 0 || strcmp(pattern, kinds[i].text) == 0;
}

/* What the reader asked for; without a question, what is documented. */
static kind_set
kinds_wanted(char *const *patterns, size_t patterns_n)
{
	kind_set set = 0;

	for (size_t i = 0; i < KINDS; i++) {
		bool wanted = patterns_n == 0 && kinds[i].reach == DOCUMENTED;

		for (size_t p = 0; p < patterns_n && !wanted; p++)
			wanted = kind_matches(i, patterns[p]);
		if (wanted)
			set |= (kind_set)1 << kinds[i].kind;
	}
	return set;
}

static size_t
kind_index(int64_t number)
{
	for (size_t i = 0; i < KINDS; i++)
		if ((int64_t)kinds[i].kind == number)
			return i;
	return KINDS;
}

/* --- appending */

static enum status
audience_add(struct call *c, int64_t viewer, const struct id *id, enum event_kind kind)
{
	return db_run(c->db, "INSERT INTO audience (viewer, event, kind) VALUES ($1, $2, $3)",
	    VALUES(as_int(viewer), as_id(id), as_int(kind)));
}

enum status
event_append(struct call *c, const struct event *event)
{
	struct id id = call_id(c);
	int64_t seq = 0;
	enum status st = tally_seq(c->tally, c->who.organization, &seq);

	if (st == STATUS_OK)
		st = db_run(c->db,
		    "INSERT INTO events (organization, public_id, seq, kind, actor, resource, "
		    "payload,"
		    " created_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
		    VALUES(as_int(c->who.organization), as_id(&id), as_int(seq),
			as_int(event->kind), as_int(c->who.principal), as_id(&event->resource),
			as_text(event->payload), as_int(c->now_ms)));
	for (int i = 0; i < EVENT_VIEWERS_MAX && st == STATUS_OK; i++)
		if (event->viewers[i] != 0 && (i == 0 || event->viewers[i] != event->viewers[0]))
			st = audience_add(c, event->viewers[i], &id, event->kind);
	return st;
}

/* --- reading */

static bool
sees_all(const struct call *c)
{
	return scope_granted(c->who.scopes, RIGHT_EVENTS_ALL);
}

/* Whether EVENT_ID names an event that the caller may see now or could when it was written. */
static enum status
event_visible(struct call *c, const char *event_id, struct id *id, bool *visible_r)
{
	struct query *q;

	*visible_r = false;
	if (!id_parse(id, "evt", event_id))
		return STATUS_OK;
	q = query_start(c->db,
	    "SELECT 1 FROM events e WHERE e.organization = $1 AND e.public_id = $2 AND ($3 = 1 OR"
	    " EXISTS (SELECT 1 FROM audience a WHERE a.viewer = $4 AND a.event = e.public_id))",
	    VALUES(as_int(c->who.organization), as_id(id), as_int(sees_all(c)),
		as_int(c->who.principal)));
	*visible_r = query_row(q);
	return query_finish(q);
}

/* Columns: public_id, kind, actor's name, resource, payload, created_ms. */
static size_t
event_fill(struct call *c, struct query *q, PB(Event) *event)
{
	struct id id = query_id(q, 0), resource = query_id(q, 3);
	size_t kind = kind_index(query_int(q, 1));

	titen__v1__event__init(event);
	event->id = id_text(c->arena, "evt", &id);
	event->actor_id = query_text(q, 2, c->arena);
	if (kind < KINDS) {
		event->kind = arena_text(c->arena, kinds[kind].text);
		event->resource_type = arena_text(c->arena, kinds[kind].resource);
		event->resource_id = id_text(c->arena, kinds[kind].prefix, &resource);
	}
	event->payload = arena_alloc(c->arena, sizeof(*event->payload));
	titen__v1__json__init(event->payload);
	event->payload->text = query_text(q, 4, c->arena);
	event->created_at = call_time(c, query_int(q, 5));
	return strlen(event->payload->text) + PAGE_ROW_BYTES;
}

#define EVENT_COLUMNS " e.public_id, e.kind, p.name, e.resource, e.payload, e.created_ms"

#define MINE                                                                                       \
	"SELECT" EVENT_COLUMNS " FROM audience a JOIN events e ON e.organization = $1"             \
	" AND e.public_id = a.event JOIN principals p ON p.id = e.actor"                           \
	" WHERE a.viewer = $4 AND a.event > $2 AND ($3 >> a.kind) & 1 = 1"
#define ALL                                                                                        \
	"SELECT" EVENT_COLUMNS " FROM events e JOIN principals p ON p.id = e.actor"                \
	" WHERE e.organization = $1 AND e.public_id > $2 AND ($3 >> e.kind) & 1 = 1"

/* Readers that want nothing of leases go by the indexes that leave the leases out. */
static struct query *
events_after(struct call *c, const struct id *after, kind_set set)
{
	static const char mine[] = MINE " ORDER BY a.event";
	static const char mine_others[] = MINE " AND a.kind > 2 ORDER BY a.event";
	static const char all[] = ALL " ORDER BY e.public_id";
	static const char all_others[] = ALL " AND e.kind > 2 ORDER BY e.public_id";
	bool others = (set & LEASE_KINDS) == 0;
	const char *sql = others ? mine_others : mine;

	if (sees_all(c))
		sql = others ? all_others : all;
	return query_start(c->db, sql,
	    VALUES(as_int(c->who.organization), as_id(after), as_int((int64_t)set),
		as_int(c->who.principal)));
}

const struct rule event_list_rules[] = {
	ID_OPTIONAL("after"),
	INT_OPTIONAL("limit", 1, INT64_MAX),
	TEXTS("kind", 0, KIND_FILTERS_MAX, KIND_TEXT_MAX),
	RULES_END,
};

enum status
event_list(struct call *c, const PB(EventListRequest) *req, PB(EventListResponse) *resp)
{
	int64_t limit =
	    page_limit(req->has_limit, req->limit, EVENTS_LIMIT_DEFAULT, EVENTS_LIMIT_MAX);
	struct id after = { { 0 } }; /* before every event */
	struct page page;
	struct query *q;
	bool visible;
	enum status st;

	if (req->after != NULL) {
		if ((st = event_visible(c, req->after, &after, &visible)) != STATUS_OK)
			return st;
		if (!visible)
			return call_fail(c, STATUS_VALIDATION_ERROR,
			    "after must be the id of an event that you can read.");
	}
	page_begin(&page, c->arena, limit);
	q = events_after(c, &after, kinds_wanted(req->kind, req->n_kind));
	while (page_more(&page, q)) {
		PB(Event) *event = arena_alloc(c->arena, sizeof(*event));

		page_add(&page, event, event_fill(c, q, event));
	}
	resp->events = (PB(Event) **)page.rows;
	resp->n_events = page.rows_n;
	resp->cursor = page.rows_n > 0 ? resp->events[page.rows_n - 1]->id : req->after;
	return query_finish(q);
}

const struct rule event_get_rules[] = {
	ID("event_id"),
	RULES_END,
};

enum status
event_get(struct call *c, const PB(EventGetRequest) *req, PB(Event) *resp)
{
	struct query *q;
	struct id id;
	bool visible;
	enum status st = event_visible(c, req->event_id, &id, &visible);

	if (st != STATUS_OK)
		return st;
	if (!visible)
		return call_fail(c, STATUS_NOT_FOUND, "There is no such event.");
	q = query_start(c->db,
	    "SELECT" EVENT_COLUMNS " FROM events e JOIN principals p ON p.id = e.actor"
	    " WHERE e.organization = $1 AND e.public_id = $2",
	    VALUES(as_int(c->who.organization), as_id(&id)));
	if (query_row(q))
		event_fill(c, q, resp);
	return query_finish(q);
}
