/* SPDX-License-Identifier: MIT */
/* Comments of our own .proto files, found by the names of what they stand before. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "descriptors.h"
#include "gateway/comments.h"

static Google__Protobuf__FileDescriptorSet *set;
static struct arena arena;

static void
an_element_of_any_kind_is_found(void **state)
{
	static const struct {
		const char *name;
		const char *comment; /* as it begins */
	} rows[] = {
		{ "titen.v1.KeyService", "API keys: who may ask at all" },
		{ "titen.v1.KeyService.Revoke", "Takes effect with the next request" },
		{ "titen.v1.Json", "Any JSON value, as text." },
		{ "titen.v1.Reply.created", "The call made something new" },
		{ "google.protobuf.Timestamp.seconds", "Represents seconds of UTC time" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const char *comment = comments_of(&arena, set, rows[i].name);
		if (comment == NULL ||
		    strncmp(comment, rows[i].comment, strlen(rows[i].comment)) != 0)
			fail_msg("row %zu: %s: %s", i, rows[i].name, comment);
	}
}

static void
lines_become_one_paragraph(void **state)
{
	(void)state;
	assert_string_equal(comments_of(&arena, set, "titen.v1.LeaseAcquireResponse.fence"),
	    "Larger for every grant in this database, below 2^53, never used twice, and "
	    "telling nothing but the time: a resource that remembers the largest fence it has seen can refuse a holder that came too late.");
}

static void
what_is_not_there_or_has_none_gives_none(void **state)
{
	static const char *const names[] = { "", "titen", "titen.v1", "titen.v1.", "titen.v1.Nope",
		"titen.v1.Key.nope", "titen.v1.Key.key_id", "titen.v1.Key.key_id.more",
		"titen.v1.Key.Status", "titen.v1.Key.Status.ACTIVE", "titen.v1.Trust.VERIFIED",
		"titen.v1.HealthReadyResponse.Schema.applied", "titen.v1.KeyService.Nope" };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (comments_of(&arena, set, names[i]) != NULL)
			fail_msg("row %zu: %s", i, names[i]);
}

static int
unpack(void **state)
{
	(void)state;
	arena_init(&arena);
	set = google__protobuf__file_descriptor_set__unpack(
	    NULL, titen_descriptors_bytes, titen_descriptors);
	return set == NULL ? -1 : 0;
}

static int
forget(void **state)
{
	(void)state;
	google__protobuf__file_descriptor_set__free_unpacked(set, NULL);
	arena_free(&arena);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_element_of_any_kind_is_found),
		cmocka_unit_test(lines_become_one_paragraph),
		cmocka_unit_test(what_is_not_there_or_has_none_gives_none),
	};

	return cmocka_run_group_tests(tests, unpack, forget);
}
