/* SPDX-License-Identifier: MIT */
/* Houses, then records, then the scenes. */
#include "tests/support/scenes.h"

#include <stdio.h>
#include <string.h>

#define CODER "agent_coder"
#define REVIEWER "agent_reviewer"
#define AGENT_SCOPES                                                                               \
	"[\"leases:write\",\"handoffs:read\",\"handoffs:write\",\"checkpoints:read\","             \
	"\"checkpoints:write\",\"events:read\",\"keys:manage\"]"
#define POOR_SCOPES "[\"mcp:call\"]"

/* A step that a scene needs: it must succeed. FIELD of the answer goes to ID. */
static void
step(struct caller *who, const char *method, const char *request, const char *field,
    char id[SCENE_ID_BYTES])
{
	struct answer a = caller_ask(who, NNG, method, request, NULL);
	const char *text = json_string_value(json_object_get(a.data, field));

	if (text == NULL)
		fail_msg("%s %s: %s %s", method, request, a.code, a.message);
	snprintf(id, SCENE_ID_BYTES, "%s", text);
	caller_forget(&a);
}

/* --- houses --- */

void
scenes_join(struct house *h, struct caller *who, const char *principal, const char *scopes)
{
	char request[SCENE_REQUEST_BYTES], key[SCENE_ID_BYTES];

	snprintf(request, sizeof request,
	    "{\"label\":\"test\",\"principal_id\":\"%s\",\"scopes\":%s}", principal, scopes);
	step(&h->owner, "KeyService/Create", request, "api_key", key);
	caller_meet(h->owner.doors, who, key);
}

void
scenes_found(const struct doors *d, struct house *h)
{
	static int founded;
	char request[SCENE_REQUEST_BYTES], key[SCENE_ID_BYTES];
	struct caller local;

	caller_meet(d, &local, "");
	local.url = d->local;
	snprintf(request, sizeof request, "{\"name\":\"organization %d\"}", ++founded);
	step(&local, "KeyService/Bootstrap", request, "api_key", key);
	caller_leave(&local);
	caller_meet(d, &h->owner, key);
	scenes_join(h, &h->coder, CODER, AGENT_SCOPES);
	scenes_join(h, &h->poor, CODER, POOR_SCOPES);
	scenes_join(h, &h->reviewer, REVIEWER, AGENT_SCOPES);
}

void
scenes_leave(struct house *h)
{
	caller_leave(&h->owner);
	caller_leave(&h->coder);
	caller_leave(&h->poor);
	caller_leave(&h->reviewer);
}

/* --- records --- */

#define LEASE                                                                                      \
	"{\"resource_type\":\"repo\",\"resource_id\":\"main\",\"purpose\":\"merge\","              \
	"\"ttl_seconds\":60}"
#define CHECKPOINT                                                                                 \
	"{\"subject_id\":\"task-1\",\"kind\":\"task_state\",\"run_id\":\"run-1\","                 \
	"\"state\":{\"b\":[1,2.5,\"\\u00fc\",null],\"a\":{\"9\":true}},\"ttl_seconds\":3600}"

static struct caller *
person(struct house *h, bool rival)
{
	return rival ? &h->reviewer : &h->coder;
}

static void
make_lease(struct house *h, bool rival, char id[SCENE_ID_BYTES])
{
	step(person(h, rival), "LeaseService/Acquire", LEASE, "lease_id", id);
}

static void
make_checkpoint(struct house *h, bool rival, char id[SCENE_ID_BYTES])
{
	step(person(h, rival), "CheckpointService/Save", CHECKPOINT, "checkpoint_id", id);
}

/* In the person's inbox: the other one sends it. */
static void
make_handoff(struct house *h, bool rival, char id[SCENE_ID_BYTES])
{
	char request[SCENE_REQUEST_BYTES];

	snprintf(request, sizeof request, "{\"to_principal\":\"%s\",\"subject_id\":\"task-2\"}",
	    rival ? REVIEWER : CODER);
	step(person(h, !rival), "HandoffService/Create", request, "handoff_id", id);
}

static void
make_event(struct house *h, bool rival, char id[SCENE_ID_BYTES])
{
	step(person(h, rival), "LeaseService/Acquire", LEASE, "lease_id", id);
	step(person(h, rival), "EventService/List", "{\"limit\":200}", "cursor", id);
}

static void
make_key(struct house *h, bool rival, char id[SCENE_ID_BYTES])
{
	step(person(h, rival), "KeyService/Create",
	    "{\"label\":\"spare\",\"scopes\":[\"events:read\"]}", "key_id", id);
}

/* --- scenes --- */

/* clang-format off */
static const struct scene scenes[] = {
	{ "LeaseService/Acquire", LEASE, make_lease, "OK", "CONFLICT" },
	{ "LeaseService/Release", "{\"lease_id\":\"%s\"}", make_lease, "NOT_FOUND", "NOT_FOUND" },
	{ "HandoffService/Create",
	    "{\"to_principal\":\"" REVIEWER "\",\"subject_id\":\"task-1\",\"checkpoint_id\":\"%s\","
	    "\"message\":\"go on\"}", make_checkpoint, "NOT_FOUND", "NOT_FOUND" },
	{ "HandoffService/List", "{\"after\":\"%s\"}", make_handoff, "VALIDATION_ERROR", "VALIDATION_ERROR" },
	{ "HandoffService/Resolve", "{\"handoff_id\":\"%s\",\"status\":\"accepted\"}", make_handoff,
	    "NOT_FOUND", "VALIDATION_ERROR" },
	{ "CheckpointService/Save", CHECKPOINT, make_checkpoint, "OK", "OK" },
	{ "CheckpointService/Get", "{\"checkpoint_id\":\"%s\"}", make_checkpoint, "NOT_FOUND", "NOT_FOUND" },
	{ "CheckpointService/Find", "{\"subject_id\":\"task-1\",\"kind\":\"task_state\"}", make_checkpoint,
	    "NOT_FOUND", "NOT_FOUND" },
	{ "CheckpointService/Delete", "{\"checkpoint_id\":\"%s\"}", make_checkpoint, "NOT_FOUND", "NOT_FOUND" },
	{ "EventService/List", "{\"after\":\"%s\",\"limit\":5,\"kind\":[\"lease.*\",\"handoff.created\"]}",
	    make_event, "VALIDATION_ERROR", "VALIDATION_ERROR" },
	{ "EventService/Get", "{\"event_id\":\"%s\"}", make_event, "NOT_FOUND", "NOT_FOUND" },
	{ "KeyService/Create",
	    "{\"label\":\"build\",\"scopes\":[\"leases:write\",\"events:read\"],\"max_trust\":\"unverified\","
	    "\"principal_kind\":\"service\"}", NULL, "OK", "OK" },
	{ "KeyService/List", "{\"after\":\"%s\",\"limit\":5}", make_key, "VALIDATION_ERROR", "OK" },
	{ "KeyService/Revoke", "{\"key_id\":\"%s\"}", make_key, "NOT_FOUND", "OK" },
	{ "KeyService/Bootstrap", "{\"name\":\"elsewhere\"}", NULL, "FORBIDDEN", "FORBIDDEN" },
	{ "PrincipalService/Get", "{}", NULL, "OK", "OK" },
	{ "HealthService/Check", "{}", NULL, "OK", "OK" },
	{ "HealthService/Ready", "{}", NULL, "OK", "OK" },
	{ "HealthService/Echo", "{\"payload\":\"aGVsbG8=\"}", NULL, "OK", "OK" },
	{ "ReflectionService/Describe", "{}", NULL, "OK", "OK" },
};
/* clang-format on */

const struct scene *
scenes_find(const struct method *m)
{
	for (size_t i = 0; i < LENGTH(scenes); i++)
		if (caller_method(scenes[i].method) == m)
			return &scenes[i];
	return NULL;
}

void
scenes_request(const struct scene *scene, const char *id, char request[SCENE_REQUEST_BYTES])
{
	const char *place = strstr(scene->request, "%s");

	if (place == NULL)
		snprintf(request, SCENE_REQUEST_BYTES, "%s", scene->request);
	else
		snprintf(request, SCENE_REQUEST_BYTES, "%.*s%s%s", (int)(place - scene->request),
		    scene->request, id, place + 2);
}
