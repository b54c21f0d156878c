/* SPDX-License-Identifier: MIT */
/* The kinds of act over REST: route and body of each, then reading the answer, then the exchange.
 * Names in here need no escapes. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <curl/curl.h>
#include <jansson.h>

#include "tests/support/act.h"

#define TEXT_BYTES 768 /* of a route or a body */

struct rest {
	CURL *curl;
	const char *base;
	char *body;
	size_t bytes;
};

/* --- requests */

/* Verb, route and body; an empty body is none. */
struct rest_request {
	const char *verb;
	char route[TEXT_BYTES];
	char body[TEXT_BYTES];
};

__attribute__((format(printf, 3, 4))) static void
request_route(struct rest_request *r, const char *verb, const char *format, ...)
{
	va_list args;

	r->verb = verb;
	va_start(args, format);
	vsnprintf(r->route, sizeof r->route, format, args);
	va_end(args);
}

__attribute__((format(printf, 2, 3))) static void
request_body(struct rest_request *r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(r->body, sizeof r->body, format, args);
	va_end(args);
}

static void
request_hand_off(struct rest_request *r, const struct act *act)
{
	request_route(r, "POST", "/v1/handoffs");
	if (act->target[0] == '\0')
		request_body(r, "{\"to_principal\":\"%s\",\"subject_id\":\"%s\"}",
		    act->peer->principal, act->name);
	else
		request_body(r,
		    "{\"to_principal\":\"%s\",\"subject_id\":\"%s\",\"checkpoint_id\":\"%s\"}",
		    act->peer->principal, act->name, act->target);
}

static void
request_save(struct rest_request *r, const struct act *act)
{
	char state[STATE_BYTES];

	act_state(act, state);
	request_route(r, "POST", "/v1/checkpoints");
	request_body(r,
	    "{\"subject_id\":\"%s\",\"kind\":\"task_state\",\"state\":%s,\"ttl_seconds\":%d}",
	    act->name, state, ACT_TTL_SECONDS);
}

static void
request_make_key(struct rest_request *r, const struct act *act)
{
	request_route(r, "POST", "/v1/keys");
	request_body(r,
	    "{\"label\":\"%s\",\"scopes\":[\"leases:write\",\"handoffs:read\",\"handoffs:write\","
	    "\"checkpoints:read\",\"checkpoints:write\",\"events:read\",\"keys:manage\"]}",
	    act->name);
}

static void
request_fill(struct rest_request *r, const struct act *act)
{
	switch (act->kind) {
	case ACT_ACQUIRE:
		request_route(r, "POST", "/v1/leases");
		request_body(r,
		    "{\"resource_type\":\"load\",\"resource_id\":\"%s\",\"purpose\":\"load\","
		    "\"ttl_seconds\":%d}",
		    act->name, ACT_TTL_SECONDS);
		break;
	case ACT_RELEASE:
		request_route(r, "DELETE", "/v1/leases/%s", act->target);
		break;
	case ACT_HAND_OFF:
		request_hand_off(r, act);
		break;
	case ACT_RESOLVE:
		request_route(r, "POST", "/v1/handoffs/%s/resolve", act->target);
		request_body(r, "{\"status\":\"%s\"}", act->accept ? "accepted" : "rejected");
		break;
	case ACT_SAVE:
		request_save(r, act);
		break;
	case ACT_MAKE_KEY:
		request_make_key(r, act);
		break;
	case ACT_FIND:
		request_route(r, "GET", "/v1/checkpoints?subject_id=%s&kind=task_state", act->name);
		break;
	case ACT_INBOX:
		request_route(r, "GET", "/v1/handoffs");
		break;
	case ACT_EVENTS:
		request_route(r, "GET", "/v1/events?kind=*%s%s",
		    act->target[0] == '\0' ? "" : "&after=", act->target);
		break;
	case ACT_KINDS:
		assert(false);
	}
}

/* --- answers */

static const char *
text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text == NULL ? "" : text;
}

/* A time as 2026-07-30T10:58:13.829Z; 0 when there is none. */
static int64_t
time_of(const json_t *object, const char *name)
{
	const char *text = text_of(object, name);
	struct tm tm = { .tm_year = 0 };
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S.", &tm);

	return rest == NULL ? 0 : (int64_t)timegm(&tm) * 1000 + strtol(rest, NULL, 10);
}

static void
take_page(struct answer *a, const json_t *data, const json_t *meta, enum act_kind kind)
{
	const json_t *row, *before = NULL;
	size_t i;

	a->number = (int64_t)json_array_size(data);
	if (kind == ACT_INBOX)
		snprintf(a->id, sizeof a->id, "%s", text_of(json_array_get(data, 0), "handoff_id"));
	else
		snprintf(a->id, sizeof a->id, "%s", text_of(meta, "cursor"));
	json_array_foreach (data, i, row) {
		if (kind == ACT_EVENTS && before != NULL &&
		    strcmp(text_of(before, "id"), text_of(row, "id")) >= 0)
			a->disordered = true;
		before = row;
	}
}

static void
take_data(struct answer *a, const json_t *data, enum act_kind kind)
{
	static const char *const id[ACT_KINDS] = { [ACT_ACQUIRE] = "lease_id",
		[ACT_RELEASE] = "lease_id",
		[ACT_HAND_OFF] = "handoff_id",
		[ACT_RESOLVE] = "handoff_id",
		[ACT_SAVE] = "checkpoint_id",
		[ACT_MAKE_KEY] = "key_id",
		[ACT_FIND] = "checkpoint_id" };
	static const char *const time[ACT_KINDS] = { [ACT_ACQUIRE] = "expires_at",
		[ACT_RELEASE] = "released_at",
		[ACT_RESOLVE] = "resolved_at",
		[ACT_SAVE] = "expires_at",
		[ACT_FIND] = "expires_at" };
	bool makes_key = kind == ACT_MAKE_KEY;

	snprintf(a->id, sizeof a->id, "%s", text_of(data, id[kind]));
	snprintf(
	    a->text, sizeof a->text, "%s", text_of(data, makes_key ? "api_key" : "state_hash"));
	if (makes_key)
		snprintf(a->principal, sizeof a->principal, "%s", text_of(data, "principal_id"));
	a->time_ms = time[kind] == NULL ? 0 : time_of(data, time[kind]);
	a->number =
	    json_integer_value(json_object_get(data, kind == ACT_ACQUIRE ? "fence" : "version"));
}

static void
take_answer(struct act *act, const json_t *root)
{
	const json_t *error = json_object_get(root, "error");
	const json_t *data = json_object_get(root, "data");
	const json_t *meta = json_object_get(root, "meta");

	act->replayed = json_is_true(json_object_get(meta, "replayed"));
	act->answer = (struct answer){ .number = 0 };
	snprintf(act->reason, sizeof act->reason, "%s", text_of(error, "code"));
	snprintf(act->message, sizeof act->message, "%s", text_of(error, "message"));
	if (data == NULL && error == NULL)
		snprintf(act->reason, sizeof act->reason, "GARBLED");
	else if (act->kind == ACT_INBOX || act->kind == ACT_EVENTS)
		take_page(&act->answer, data, meta, act->kind);
	else
		take_data(&act->answer, data, act->kind);
}

/* --- the exchange */

static size_t
body_add(char *bytes, size_t one, size_t n, void *arg)
{
	struct rest *rest = arg;
	char *body = realloc(rest->body, rest->bytes + one * n + 1);

	if (body == NULL)
		return 0;
	memcpy(body + rest->bytes, bytes, one * n);
	rest->body = body;
	rest->bytes += one * n;
	return one * n;
}

struct rest *
rest_open(const char *base)
{
	struct rest *rest = calloc(1, sizeof *rest);

	rest->base = base;
	rest->curl = curl_easy_init();
	curl_easy_setopt(rest->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(rest->curl, CURLOPT_TIMEOUT_MS, (long)ACT_TIMEOUT_MS);
	curl_easy_setopt(rest->curl, CURLOPT_WRITEFUNCTION, body_add);
	curl_easy_setopt(rest->curl, CURLOPT_WRITEDATA, rest);
	return rest;
}

void
rest_close(struct rest **rest)
{
	curl_easy_cleanup((*rest)->curl);
	free((*rest)->body);
	free(*rest);
	*rest = NULL;
}

static struct curl_slist *
headers_of(const struct act *act)
{
	struct curl_slist *list = NULL;
	char line[2 * NAME_BYTES];

	snprintf(line, sizeof line, "Authorization: Bearer %s", act->agent->key);
	list = curl_slist_append(list, line);
	if (act->key[0] == '\0')
		return list;
	snprintf(line, sizeof line, "Idempotency-Key: %s", act->key);
	return curl_slist_append(list, line);
}

static bool
rest_exchange(struct rest *rest, const struct act *act)
{
	struct rest_request request = { .verb = NULL };
	struct curl_slist *headers = headers_of(act);
	char url[TEXT_BYTES + NAME_BYTES];
	CURLcode code;

	request_fill(&request, act);
	snprintf(url, sizeof url, "%s%s", rest->base, request.route);
	rest->bytes = 0;
	curl_easy_setopt(rest->curl, CURLOPT_HTTPGET, 1L);
	if (request.body[0] != '\0')
		curl_easy_setopt(rest->curl, CURLOPT_COPYPOSTFIELDS, request.body);
	curl_easy_setopt(rest->curl, CURLOPT_CUSTOMREQUEST, request.verb);
	curl_easy_setopt(rest->curl, CURLOPT_URL, url);
	curl_easy_setopt(rest->curl, CURLOPT_HTTPHEADER, headers);
	code = curl_easy_perform(rest->curl);
	curl_slist_free_all(headers);
	return code == CURLE_OK;
}

void
act_by_rest(struct act *act, struct rest *rest)
{
	json_t *root;

	act->reason[0] = act->message[0] = '\0';
	act->answered = rest_exchange(rest, act);
	if (!act->answered)
		return;
	root = json_loadb(rest->body, rest->bytes, 0, NULL);
	take_answer(act, root);
	json_decref(root);
}
