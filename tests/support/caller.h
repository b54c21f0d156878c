/* SPDX-License-Identifier: MIT */
/*
 * Those who knock on the doors of doors.h, on either one:
 *
 *	caller_meet(d, &coder, key);
 *	struct answer a = caller_ask(&coder, REST, "LeaseService/Acquire", "{...}", NULL);
 *	assert_string_equal(a.code, "OK");
 *	caller_forget(&a);
 *	caller_leave(&coder);
 *
 * Requests and answers are the JSON of REST at both doors. Calls never fail a test by themselves,
 * so any thread may make them; one caller is one thread's at a time.
 */
#ifndef TITEN_TESTS_CALLER_H
#define TITEN_TESTS_CALLER_H

#include <curl/curl.h>
#include <jansson.h>

#include "client/client.h"
#include "core/methods.h"
#include "tests/support/doors.h"

enum door { NNG, REST, DOORS };

struct caller {
	const struct doors *doors;
	const char *url; /* of nng; d->tcp, unless it is changed before the first call */
	char key[64];    /* "": none */
	struct titen_client *client;
	CURL *curl;
};

struct answer {
	char code[24]; /* "OK", the code word, or BROKEN: no answer, or one that makes no sense */
	char message[256]; /* of a failure */
	json_t *data;      /* of a success */
	bool created;      /* 201, or what nng says instead */
	bool replayed;
	bool kept;     /* REST: the connection of the call before still stood */
	int http;      /* REST */
	char etag[80]; /* REST: headers, and how long the body was */
	char allow[80];
	size_t body_bytes;
};

#define BROKEN "BROKEN"

/* KEY may be "". Connections are made when they are needed. */
void caller_meet(const struct doors *d, struct caller *who, const char *key);
void caller_leave(struct caller *who);

/* METHOD ("LeaseService/Acquire") at DOOR; its row says where REST finds it. KEY is the idempotency
 * key, or NULL. */
struct answer caller_ask(
    struct caller *who, enum door door, const char *method, const char *json, const char *key);
/* Any packed request. */
struct answer caller_send(
    struct caller *who, const char *method, const char *key, const uint8_t *bytes, size_t length);
/* Any request of HTTP. HEADER is one line more, or NULL; BODY NULL: none. */
struct answer caller_http(struct caller *who, const char *verb, const char *path,
    const char *header, const char *body, size_t length);
void caller_forget(struct answer *a);

/* The row of a method, which is there. */
const struct method *caller_method(const char *method);
/* The packed request of METHOD from JSON; free() it. Fails the test when it cannot be. */
uint8_t *caller_pack(const char *method, const json_t *json, size_t *length_r);
/* The path and query of a row, with fields that are taken out of JSON; free() it. */
char *caller_path(const struct method *m, json_t *json);

#endif
