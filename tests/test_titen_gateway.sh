#!/bin/sh
# SPDX-License-Identifier: MIT
# test_titen_gateway.sh PROGRAM: `titen gateway` from outside: how it starts, what it answers, how it stops.
set -u

titen=$1
dir=$(mktemp -d)
core=
gateway=
failures=0
unset TITEN_API_KEY TITEN_API_KEY_FILE TITEN_RPC_URL TITEN_DB TITEN_HTTP TITEN_RPC TITEN_EVENTS

cleanup() {
	for process in $core $gateway; do
		kill -KILL "$process" 2>/dev/null
	done
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
cd "$dir" || exit 1

# expect SENTENCE WANTED CAME
expect() {
	if [ "$2" = "$3" ]; then
		printf 'ok   %s\n' "$1"
	else
		printf 'FAIL %s: wanted %s, got %s\n' "$1" "$2" "$3"
		failures=$((failures + 1))
	fi
}

# await FILE PATTERN: until a line of FILE begins so.
await() {
	tries=0
	until grep -q "^$2" "$1"; do
		tries=$((tries + 1))
		if [ $tries -gt 400 ]; then
			echo "FAIL no line $2 in $1: $(cat log)"
			exit 1
		fi
		sleep 0.05
	done
}

start_core() {
	: >core.out
	"$titen" serve --http off --rpc "ipc://$dir/core.sock" >core.out 2>>log &
	core=$!
	await core.out 'listening ipc'
}

# stop PROCESS: its exit code goes to $code.
stop() {
	kill -TERM "$1"
	wait "$1"
	code=$?
}

# status PATH: the HTTP status of a GET with the key.
status() {
	curl -s --noproxy '*' -o answer -w '%{http_code}' -H "Authorization: Bearer $key" "$base$1"
}

key=$("$titen" bootstrap --org first 2>>log | sed -n 's/.*"api_key":"\([^"]*\)".*/\1/p')
: >gateway.out
"$titen" gateway --core "ipc://$dir/core.sock" --http 127.0.0.1:0 >gateway.out 2>>log &
gateway=$!
await gateway.out 'listening http:'
base=$(sed -n 's/^listening //p' gateway.out)

expect a_gateway_starts_before_its_core_and_lives 200 "$(status /healthz)"
expect a_gateway_without_its_core_is_not_ready 503 "$(status /readyz)"
expect a_gateway_without_its_core_has_its_document 200 "$(status /openapi.json)"
"$titen" serve --openapi >printed
cmp -s answer printed
expect the_document_is_the_one_that_serve_prints 0 $?

start_core
expect a_core_that_comes_is_found 200 "$(status /readyz)"
expect a_call_goes_through 200 "$(status /v1/principal)"
stop "$core"
core=
expect a_core_stops_beside_its_gateway 0 $code
expect a_gateway_outlives_its_core 200 "$(status /livez)"
stop "$gateway"
gateway=
expect a_gateway_stops_when_told 0 $code

"$titen" gateway >answer 2>&1
expect a_gateway_needs_a_core 2 $?
"$titen" gateway --core nowhere >answer 2>&1
expect a_core_has_a_url 2 $?
"$titen" gateway --core "ipc://$dir/core.sock" --http localhost:0 >answer 2>&1
expect rest_needs_an_ipv4_address 2 $?

[ $failures -eq 0 ]
