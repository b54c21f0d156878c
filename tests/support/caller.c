/* SPDX-License-Identifier: MIT */
/* Callers, then what comes back, then a call at either door. */
#include "tests/support/caller.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/json_rpc.h"

#define PACKAGE "titen.v1."
#define PATIENCE_S 60 /* more than any call takes on a busy machine under a sanitizer */
#define HTTP_CREATED 201

/* --- callers --- */

void
caller_meet(const struct doors *d, struct caller *who, const char *key)
{
	*who = (struct caller){ .doors = d, .url = d->tcp };
	snprintf(who->key, sizeof who->key, "%s", key);
}

void
caller_leave(struct caller *who)
{
	if (who->client != NULL)
		titen_close(&who->client);
	curl_easy_cleanup(who->curl);
	who->curl = NULL;
}

/* --- answers --- */

__attribute__((format(printf, 2, 3))) static struct answer
broken(struct answer a, const char *format, ...)
{
	va_list args;

	json_decref(a.data);
	a.data = NULL;
	snprintf(a.code, sizeof a.code, BROKEN);
	va_start(args, format);
	vsnprintf(a.message, sizeof a.message, format, args);
	va_end(args);
	return a;
}

void
caller_forget(struct answer *a)
{
	json_decref(a->data);
	a->data = NULL;
}

static const char *
text_in(const json_t *object, const char *outer, const char *inner)
{
	const char *text =
	    json_string_value(json_object_get(json_object_get(object, outer), inner));

	return text == NULL ? "" : text;
}

/* The envelope of JSON into A: exactly one of data and error, and a request id. */
static struct answer
envelope_read(struct answer a, const char *text, size_t bytes)
{
	json_t *json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
	json_t *data = json_object_get(json, "data");
	const char *code = text_in(json, "error", "code");

	a.replayed = json_is_true(json_object_get(json_object_get(json, "meta"), "replayed"));
	snprintf(a.code, sizeof a.code, "%s", data != NULL ? "OK" : code);
	snprintf(a.message, sizeof a.message, "%s", text_in(json, "error", "message"));
	if (strncmp(text_in(json, "meta", "request_id"), "req_", 4) != 0 ||
	    (data == NULL) == (code[0] == '\0') || (data == NULL && a.message[0] == '\0'))
		a = broken(a, "envelope: %.*s", (int)(bytes < 200 ? bytes : 200), text);
	else
		a.data = json_incref(data);
	json_decref(json);
	return a;
}

/* --- nng --- */

static bool
client_open(struct caller *who, char error[static 200])
{
	if (who->client == NULL)
		who->client = titen_connect(&(struct titen_options){ .url = who->url,
						.key = who->key[0] == '\0' ? NULL : who->key },
		    error, 200);
	return who->client != NULL;
}

/* What the reply says, through the same rendering as the command's. */
static struct answer
reply_read(const struct method *m, const PB(Reply) *reply)
{
	struct answer a = { .created = reply->created };
	ProtobufCMessage *response = NULL;
	struct arena arena;
	const char *text;

	if (reply->code != 0 && (reply->reason == NULL || reply->message == NULL ||
				    reply->code != status_grpc(status_find(reply->reason))))
		return broken(a, "code %d with reason %s", reply->code, reply->reason);
	arena_init(&arena);
	if (reply->code == 0 && m != NULL)
		response = json_rpc_response(&arena, m, reply);
	if ((reply->code == 0) == (response == NULL)) {
		a = broken(a, "code %d and the response do not fit", reply->code);
	} else {
		text = json_rpc_answer(&arena, reply, response);
		a = envelope_read(a, text, strlen(text));
	}
	arena_free(&arena);
	return a;
}

struct answer
caller_send(
    struct caller *who, const char *method, const char *key, const uint8_t *bytes, size_t length)
{
	char name[100], error[200];
	const struct titen_call call = {
		.method = name, .idempotency_key = key, .timeout_ms = PATIENCE_S * 1000
	};
	struct answer a = { .created = false };
	Titen__V1__Reply *reply;
	enum titen_outcome outcome;

	snprintf(name, sizeof name, PACKAGE "%s", method);
	if (!client_open(who, error))
		return broken(a, "%s", error);
	outcome = titen_call_packed(who->client, &call, bytes, length, &reply);
	if (outcome != TITEN_ANSWERED)
		return broken(a, "%s", titen_outcome_text(outcome));
	a = reply_read(method_find(name), reply);
	titen_reply_free(reply);
	return a;
}

/* NULL: JSON is no request of M. */
static uint8_t *
pack(const struct method *m, const char *json, size_t *length_r)
{
	ProtobufCMessage *request;
	uint8_t *bytes = NULL;
	struct arena arena;
	const char *error;

	arena_init(&arena);
	request = json_rpc_request(&arena, m, json, strlen(json), &error);
	if (request != NULL) {
		*length_r = protobuf_c_message_get_packed_size(request);
		bytes = malloc(*length_r + 1);
		protobuf_c_message_pack(request, bytes);
	}
	arena_free(&arena);
	return bytes;
}

static struct answer
ask_nng(struct caller *who, const char *method, const char *json, const char *key)
{
	struct answer a = { .created = false };
	size_t length;
	uint8_t *bytes = pack(caller_method(method), json, &length);

	if (bytes == NULL)
		return broken(a, "cannot be sent: %s", json);
	a = caller_send(who, method, key, bytes, length);
	free(bytes);
	return a;
}

/* --- REST --- */

struct page {
	char *text;
	size_t bytes;
	struct answer *answer;
};

static size_t
page_take(char *bytes, size_t size, size_t n, void *arg)
{
	struct page *page = arg;

	page->text = realloc(page->text, page->bytes + n + 1);
	memcpy(page->text + page->bytes, bytes, n);
	page->bytes += n;
	return size * n;
}

static void
header_keep(char *out, size_t room, const char *name, const char *line, size_t n)
{
	size_t skip = strlen(name);

	if (n > skip + 2 && strncasecmp(line, name, skip) == 0)
		snprintf(out, room, "%.*s", (int)(n - skip - 2), line + skip);
}

static size_t
header_take(char *line, size_t size, size_t n, void *arg)
{
	struct page *page = arg;
	struct answer *a = page->answer;

	header_keep(a->etag, sizeof a->etag, "ETag: ", line, n);
	header_keep(a->allow, sizeof a->allow, "Allow: ", line, n);
	return size * n;
}

static struct curl_slist *
headers_make(const struct caller *who, const char *header)
{
	struct curl_slist *list = curl_slist_append(NULL, "Expect:");
	char line[100];

	if (who->key[0] != '\0') {
		snprintf(line, sizeof line, "Authorization: Bearer %s", who->key);
		list = curl_slist_append(list, line);
	}
	return header == NULL ? list : curl_slist_append(list, header);
}

static void
request_set(struct caller *who, const char *verb, const char *path, struct page *page)
{
	char url[16 << 10];

	if (who->curl == NULL)
		who->curl = curl_easy_init();
	else
		curl_easy_reset(who->curl); /* keeps the connection */
	snprintf(url, sizeof url, "%s%s", who->doors->web, path);
	curl_easy_setopt(who->curl, CURLOPT_URL, url);
	curl_easy_setopt(who->curl, CURLOPT_CUSTOMREQUEST, verb);
	curl_easy_setopt(who->curl, CURLOPT_NOBODY, (long)(strcmp(verb, "HEAD") == 0));
	curl_easy_setopt(who->curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(who->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(who->curl, CURLOPT_TIMEOUT, (long)PATIENCE_S);
	curl_easy_setopt(who->curl, CURLOPT_WRITEFUNCTION, page_take);
	curl_easy_setopt(who->curl, CURLOPT_WRITEDATA, page);
	curl_easy_setopt(who->curl, CURLOPT_HEADERFUNCTION, header_take);
	curl_easy_setopt(who->curl, CURLOPT_HEADERDATA, page);
}

/* What came, when something came. The code word and the status of HTTP say the same. */
static struct answer
page_read(struct caller *who, struct answer a, const struct page *page)
{
	long status = 0, connects = 0;

	curl_easy_getinfo(who->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(who->curl, CURLINFO_NUM_CONNECTS, &connects);
	a.http = (int)status;
	a.kept = connects == 0;
	a.created = a.http == HTTP_CREATED;
	a.body_bytes = page->bytes;
	if (page->bytes == 0) {
		snprintf(a.code, sizeof a.code, "%s", status < 300 ? "OK" : "");
		return a;
	}
	a = envelope_read(a, page->text, page->bytes);
	if (strcmp(a.code, "OK") == 0 ? status != 200 && status != HTTP_CREATED
				      : status != status_http(status_find(a.code)))
		return broken(a, "HTTP %ld with %s", status, a.code);
	return a;
}

struct answer
caller_http(struct caller *who, const char *verb, const char *path, const char *header,
    const char *body, size_t length)
{
	struct curl_slist *headers = headers_make(who, header);
	struct answer a = { .created = false };
	struct page page = { NULL, 0, &a };
	CURLcode outcome;

	request_set(who, verb, path, &page);
	curl_easy_setopt(who->curl, CURLOPT_HTTPHEADER, headers);
	if (body != NULL) {
		curl_easy_setopt(who->curl, CURLOPT_POSTFIELDS, body);
		curl_easy_setopt(who->curl, CURLOPT_POSTFIELDSIZE, (long)length);
	}
	outcome = curl_easy_perform(who->curl);
	if (outcome == CURLE_OK)
		a = page_read(who, a, &page);
	else
		a = broken(a, "%s", curl_easy_strerror(outcome));
	free(page.text);
	curl_slist_free_all(headers);
	return a;
}

/* --- from a row to REST --- */

static void
print_escaped(FILE *out, const char *text)
{
	char *escaped = curl_easy_escape(NULL, text, (int)strlen(text));

	fputs(escaped, out);
	curl_free(escaped);
}

static void
print_pair(FILE *out, char before, const char *name, const json_t *value)
{
	fprintf(out, "%c%s=", before, name);
	if (json_is_string(value))
		print_escaped(out, json_string_value(value));
	else
		fprintf(out, "%.0f", json_number_value(value));
}

static void
print_query(FILE *out, json_t *json)
{
	char before = '?';
	const char *name;
	json_t *value, *item;
	size_t i;

	json_object_foreach (json, name, value) {
		if (!json_is_array(value)) {
			print_pair(out, before, name, value);
			before = '&';
			continue;
		}
		json_array_foreach (value, i, item) {
			print_pair(out, before, name, item);
			before = '&';
		}
	}
	json_object_clear(json);
}

char *
caller_path(const struct method *m, json_t *json)
{
	const char *at = m->path, *brace;
	char *text, name[64];
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	while ((brace = strchr(at, '{')) != NULL) {
		fprintf(out, "%.*s", (int)(brace - at), at);
		at = strchr(brace, '}') + 1;
		snprintf(name, sizeof name, "%.*s", (int)(at - brace - 2), brace + 1);
		print_escaped(out, json_string_value(json_object_get(json, name)));
		json_object_del(json, name);
	}
	fputs(at, out);
	if (m->verb == VERB_GET)
		print_query(out, json);
	fclose(out);
	return text;
}

static struct answer
ask_rest(struct caller *who, const char *method, const char *json, const char *key)
{
	static const char *const verbs[] = { "", "GET", "POST", "DELETE" };
	const struct method *m = caller_method(method);
	json_t *fields = json_loads(json, 0, NULL);
	char *path = caller_path(m, fields);
	char *body = m->verb == VERB_POST ? json_dumps(fields, JSON_COMPACT) : NULL;
	char header[256];
	struct answer a;

	snprintf(header, sizeof header, "Idempotency-Key: %s", key == NULL ? "" : key);
	a = caller_http(who, verbs[m->verb], path, key == NULL ? NULL : header, body,
	    body == NULL ? 0 : strlen(body));
	free(body);
	free(path);
	json_decref(fields);
	return a;
}

struct answer
caller_ask(
    struct caller *who, enum door door, const char *method, const char *json, const char *key)
{
	return door == NNG ? ask_nng(who, method, json, key) : ask_rest(who, method, json, key);
}

const struct method *
caller_method(const char *method)
{
	char name[100];

	snprintf(name, sizeof name, PACKAGE "%s", method);
	return method_find(name);
}

uint8_t *
caller_pack(const char *method, const json_t *json, size_t *length_r)
{
	char *text = json_dumps(json, JSON_COMPACT);
	uint8_t *bytes = pack(caller_method(method), text, length_r);

	if (bytes == NULL)
		fail_msg("%s cannot be packed: %s", method, text);
	free(text);
	return bytes;
}
