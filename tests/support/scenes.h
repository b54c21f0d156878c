/* SPDX-License-Identifier: MIT */
/*
 * People and situations for tests that walk proto/methods.def: for every row a request that
 * succeeds, the record it is about, and what the row answers when the record is somebody else's.
 */
#ifndef TITEN_TESTS_SCENES_H
#define TITEN_TESTS_SCENES_H

#include <stdbool.h>

#include "tests/support/caller.h"

#define SCENE_ID_BYTES 64
#define SCENE_REQUEST_BYTES 512

/* One organization. The people of all houses have the same names. */
struct house {
	struct caller owner;    /* everything */
	struct caller coder;    /* "agent_coder": what agents do, and keys:manage */
	struct caller poor;     /* another key of agent_coder, that may do next to nothing */
	struct caller reviewer; /* "agent_reviewer": the same as the coder */
};

struct scene {
	const char *method;
	const char *request; /* JSON; "%s" where the id of the record goes */
	/* Make the record the request is about, for the coder or for its rival, the reviewer. NULL:
	 * there is none. */
	void (*make)(struct house *h, bool rival, char id[SCENE_ID_BYTES]);
	const char
	    *missing;      /* the answer to the coder where there is no record, or a foreign one */
	const char *rival; /* and where it is the reviewer's */
};

/* NULL: the row has no scene. */
const struct scene *scenes_find(const struct method *m);
/* The request about the record ID. */
void scenes_request(const struct scene *scene, const char *id, char request[SCENE_REQUEST_BYTES]);

/* Found an organization of a new name, and let its people in. Main thread. */
void scenes_found(const struct doors *d, struct house *h);
/* A new key for a principal of H with SCOPES (JSON), as a caller. */
void scenes_join(struct house *h, struct caller *who, const char *principal, const char *scopes);
void scenes_leave(struct house *h);

#endif
