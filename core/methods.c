/* SPDX-License-Identifier: MIT */
/* proto/methods.def, expanded three times: thunks, rows, services. Then the check that all agree.
 */
#include "core/methods.h"

#include <assert.h>
#include <string.h>

#include "core/handlers.h"

#define RPC(service, method, handler, response_, access, right, result, verb, path, summary)       \
	static enum status handler##_run(struct call *c)                                           \
	{                                                                                          \
		return handler(c, (const PB(service##method##Request) *)c->request,                \
		    (PB(response_) *)c->response);                                                 \
	}
#include "methods.def"

static struct method methods[] = {
#define RPC(                                                                                       \
    service_, method_, handler, response_, access_, right_, result_, verb_, path_, summary_)       \
	{ .name = "titen.v1." #service_ "Service/" #method_,                                       \
		.service = "titen.v1." #service_ "Service",                                        \
		.rpc = #method_,                                                                   \
		.access = ACCESS_##access_,                                                        \
		.right = RIGHT_##right_,                                                           \
		.result = RESULT_##result_,                                                        \
		.verb = VERB_##verb_,                                                              \
		.path = (path_),                                                                   \
		.summary = (summary_),                                                             \
		.rules = handler##_rules,                                                          \
		.run = handler##_run,                                                              \
		.response_name = #response_,                                                       \
		.request_bytes = sizeof(PB(service_##method_##Request)),                           \
		.response_bytes = sizeof(PB(response_)) },
#include "methods.def"
};

#define METHODS (sizeof(methods) / sizeof(methods[0]))

static const ProtobufCServiceDescriptor *const services[] = {
#define SERVICE(service, snake) &titen__v1__##snake##_service__descriptor,
#include "methods.def"
};

size_t
methods_count(void)
{
	return METHODS;
}

const struct method *
method_at(size_t i)
{
	assert(i < METHODS);
	return &methods[i];
}

const struct method *
method_find(const char *name)
{
	for (size_t i = 0; i < METHODS; i++)
		if (strcmp(methods[i].name, name) == 0)
			return &methods[i];
	return NULL;
}

static const ProtobufCServiceDescriptor *
service_find(const char *name)
{
	for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++)
		if (strcmp(services[i]->name, name) == 0)
			return services[i];
	return NULL;
}

/* Whether the descriptor is the struct that the row was compiled with. */
static bool
method_types_fit(const struct method *m)
{
	return m->request->sizeof_message == m->request_bytes &&
	       m->response->sizeof_message == m->response_bytes &&
	       strcmp(m->response->short_name, m->response_name) == 0;
}

static bool
method_bind(struct method *m, const char **error_r)
{
	const ProtobufCServiceDescriptor *service = service_find(m->service);
	const ProtobufCMethodDescriptor *method = NULL;

	if (service != NULL)
		method = protobuf_c_service_descriptor_get_method_by_name(service, m->rpc);
	*error_r = m->name;
	if (method == NULL)
		return false;
	m->request = method->input;
	m->response = method->output;
	return method_types_fit(m) && rules_fit(m->rules, m->request, error_r);
}

/* How many rows a service has. */
static size_t
service_rows(const ProtobufCServiceDescriptor *service)
{
	size_t rows = 0;

	for (size_t i = 0; i < METHODS; i++)
		rows += strcmp(methods[i].service, service->name) == 0;
	return rows;
}

bool
methods_init(const char **error_r)
{
	for (size_t i = 0; i < METHODS; i++) {
		if (!method_bind(&methods[i], error_r))
			return false;
		if (method_find(methods[i].name) != &methods[i])
			return false;
	}
	for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++) {
		*error_r = services[i]->name;
		if (service_rows(services[i]) != services[i]->n_methods)
			return false;
	}
	*error_r = NULL;
	return true;
}
