/* SPDX-License-Identifier: MIT */
/* Paths and queries: decoding agrees with a plainer decoder, what comes out is UTF-8 without NUL,
 * and a route that is found has the verb that was asked for. */
#include "tests/fuzz.h"

#include "core/text.h"
#include "gateway/route.h"

static struct arena arena;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *error;

	(void)argc;
	(void)argv;
	fuzz_process_init();
	fuzz_hold(route_check(&error), "the routes");
	arena_init(&arena);
	return 0;
}

/* Decode TEXT into OUT by the C library's reading of hexadecimal numbers; false: a broken escape.
 */
static bool
decode_plainly(const char *text, size_t bytes, bool plus, char *out, size_t *n_r)
{
	*n_r = 0;
	for (size_t i = 0; i < bytes; i++) {
		char digits[3] = "";

		if (text[i] != '%') {
			out[(*n_r)++] = plus && text[i] == '+' ? ' ' : text[i];
			continue;
		}
		if (bytes - i < 3)
			return false;
		memcpy(digits, text + i + 1, 2);
		if (strspn(digits, "0123456789abcdefABCDEF") != 2)
			return false;
		out[(*n_r)++] = (char)strtol(digits, NULL, 16);
		i += 2;
	}
	return true;
}

static void
decoding(const char *text, size_t bytes, bool plus)
{
	char *decoded = route_decode(&arena, text, bytes, plus);
	char *plain = arena_alloc(&arena, bytes + 1);
	size_t n;
	bool fine = decode_plainly(text, bytes, plus, plain, &n) && text_utf8(plain, n);

	fuzz_hold(fine == (decoded != NULL), "both decoders accept the same");
	if (decoded != NULL)
		fuzz_hold(strlen(decoded) == n && memcmp(decoded, plain, n) == 0, "decoded alike");
}

static void
routing(const char *verb, const char *path)
{
	struct route_match match;
	struct call call;
	enum status st;

	call_init(&call, &arena, NULL, NULL);
	st = route_find(&call, verb, path, &match);
	fuzz_hold((st == STATUS_OK) == (call.method != NULL || match.document != NULL),
	    "a call, a document or a refusal");
	fuzz_hold((st == STATUS_METHOD_NOT_ALLOWED) == (match.allow != NULL), "405 says what goes");
	fuzz_hold(match.params_n <= ROUTE_PARAMS_MAX, "as many parameters as there is room for");
	for (size_t i = 0; i < match.params_n; i++) {
		const char *value = match.params[i].value;

		fuzz_hold(*value != '\0' && text_utf8(value, strlen(value)), "a parameter is text");
		fuzz_hold(protobuf_c_message_descriptor_get_field_by_name(
			      call.method->request, match.params[i].field) != NULL,
		    "a parameter names a field");
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const verbs[] = { "GET", "POST", "DELETE", "PUT", "OPTIONS", "" };
	struct fuzz_bytes bytes = { data, size };
	const char *verb = verbs[fuzz_byte(&bytes) % (sizeof verbs / sizeof verbs[0])];

	arena_reset(&arena);
	decoding((const char *)bytes.at, bytes.left, false);
	decoding((const char *)bytes.at, bytes.left, true);
	routing(verb, arena_text_n(&arena, (const char *)bytes.at, bytes.left));
	return 0;
}
