#!/bin/sh
# SPDX-License-Identifier: MIT
# test_titen.sh PROGRAM: the command from outside: what it says, how it exits, how it starts and stops.
set -u

titen=$(realpath "$1")
dir=$(mktemp -d)
server=
failures=0
unset TITEN_API_KEY TITEN_API_KEY_FILE TITEN_RPC_URL TITEN_DB TITEN_HTTP TITEN_RPC TITEN_EVENTS

cleanup() {
	[ -z "$server" ] || kill -KILL "$server" 2>/dev/null
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
cd "$dir" || exit 1

# expect SENTENCE CODE PATTERN COMMAND...: the exit code, and a line (grep -E) of all that it prints.
expect() {
	sentence=$1
	code=$2
	pattern=$3
	shift 3
	came=0
	"$@" >answer 2>&1 || came=$?
	if [ "$came" -ne "$code" ] || ! grep -Eq -- "$pattern" answer; then
		printf 'FAIL %s: exit %s, printed: %s\n' "$sentence" "$came" "$(cat answer)"
		failures=$((failures + 1))
	else
		printf 'ok   %s\n' "$sentence"
	fi
}

# serve ARGUMENT...: in the background, until its last door is announced.
serve() {
	: >doors
	"$titen" serve "$@" >doors 2>log &
	server=$!
	tries=0
	until grep -q '^listening ipc' doors; do
		tries=$((tries + 1))
		if [ $tries -gt 200 ] || ! kill -0 "$server" 2>/dev/null; then
			echo "FAIL the server does not start: $(cat log)"
			exit 1
		fi
		sleep 0.05
	done
}

stopped() {
	kill -"$1" "$server"
	wait "$server"
	code=$?
	server=
	echo "exit $code"
	return $code
}

mode() {
	stat -c '%a' "$@"
}

member() {
	sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" answer
}

expect the_version_names_the_libraries 0 '^nng [0-9]' "$titen" --version
expect help_has_examples 0 'Example' "$titen" key create --help
expect help_may_be_asked_for_by_a_command 0 'Example' "$titen" help key create
expect a_letter_is_enough_for_help 0 'Example' "$titen" key create -h
expect help_lists_every_exit_code 0 '130 stopped' "$titen" -h
# Every command of every group has an example, below its description.
for command in serve gateway bootstrap bench 'key create' 'key list' 'key revoke' 'rpc call' 'rpc list' 'rpc describe'; do
	# shellcheck disable=SC2086  # one or two words
	expect "$(echo "$command" | tr ' ' _)_has_an_example" 0 "^  (TITEN_.* )?titen $command" "$titen" help $command
done
expect no_command_is_a_usage_error 2 'which command' "$titen"
expect an_unknown_command_is_a_usage_error 2 "no command 'x'" "$titen" x
expect a_misspelt_command_gives_the_right_one 2 "no command 'serv'; did you mean serve\\?" "$titen" serv
expect an_unknown_call_is_a_usage_error 2 'titen rpc list' "$titen" rpc call nonsense
expect a_misspelt_call_gives_the_right_one 2 "no call 'lease.aquire'; did you mean lease.acquire\\?" \
	"$titen" rpc call lease.aquire
expect a_misspelt_member_is_refused 2 'resource_idd is not a field of lease.acquire; did you mean resource_id\?' \
	"$titen" rpc call lease.acquire -d '{"resource_idd":"x"}'
expect calls_are_listed_without_a_server 0 '^lease.acquire +POST +/v1/leases +leases:write +Take a lease' "$titen" rpc list
expect a_key_without_a_scope_is_a_usage_error 2 'scope' "$titen" key create --label x
expect a_scope_that_is_none_is_refused 2 "'lease:write' is not a scope; there are: .* audit:read .*; did you mean leases:write\\?" \
	"$titen" key create --label x --scope lease:write
expect a_missing_database_names_the_way_out 1 'titen bootstrap --db x.db' "$titen" serve --db x.db
expect no_server_is_unreachable 8 "UNAVAILABLE: .*is 'titen serve' running there" \
	"$titen" rpc call health.check --url "ipc://$dir/none"
expect a_url_of_another_kind_is_a_usage_error 2 '^titen: error: --url: http://x:1 is neither tcp://HOST:PORT nor ipc:///PATH' \
	"$titen" rpc call health.check --url http://x:1
expect a_host_that_is_none_is_told 8 'no such host' "$titen" rpc call health.check --url tcp://nowhere.invalid:1

expect bootstrap_makes_a_database 0 '"api_key":"titen_sk_' "$titen" bootstrap --db x.db --org one
TITEN_API_KEY=$(member api_key)
expect a_refused_name_is_told 1 '^titen: error: VALIDATION_ERROR: name must not be blank' \
	"$titen" bootstrap --db z.db --org ''
expect and_leaves_no_database 2 'z\.db' ls z.db*
expect only_the_owner_may_read_it 0 '^600$' mode x.db x.db.lock
echo text >text.db
expect another_file_is_refused 1 'not a database' "$titen" serve --db text.db --http off --rpc off
expect a_bad_address_is_refused_before_anything 2 '--http: ' "$titen" serve --db x.db --http 80
expect a_name_is_no_address 2 'localhost: give an IPv4 address' "$titen" serve --db x.db --http localhost:0
expect ipv6_is_for_a_proxy 2 'IPv6 is not supported' "$titen" serve --db x.db --http '[::1]:0'
expect a_variable_is_named 2 'TITEN_HTTP: 80 is not HOST:PORT' env TITEN_HTTP=80 "$titen" serve --db x.db

# shellcheck disable=SC3045  # the shells that Debian has as sh know both
ulimit -S -n 256
serve --db x.db --http 127.0.0.1:0 --rpc tcp://127.0.0.1:0
http=$(sed -n 's/^listening http:\/\/\(.*\)/\1/p' doors)
rpc=$(sed -n 's/^listening \(tcp:.*\)/\1/p' doors)
# shellcheck disable=SC3045
hard=$(ulimit -H -n)
expect it_takes_as_many_descriptors_as_it_may 0 "^Max open files +$hard " cat "/proc/$server/limits"
expect the_port_in_use_is_printed 0 '"status":"ok"' "$titen" rpc call health.check --url "$rpc"
expect the_port_of_rest_is_not_the_one_for_nng 8 'no Titen answers there \(REST is 8787, nng 8788\)' \
	"$titen" rpc call health.check --url "tcp://$http"
TITEN_RPC_URL=ipc://$dir/x.db.run/rpc.sock
export TITEN_RPC_URL
expect the_socket_is_for_the_owner 0 '^700$' mode x.db.run
expect health_needs_no_key 0 '"status":"ok"' "$titen" rpc call health.check
expect a_missing_key_is_told 4 '^titen: error: TITEN_API_KEY is not set' "$titen" rpc call event.list
expect a_benchmark_over_rest_needs_one_too 4 'TITEN_API_KEY is not set' "$titen" bench rest --url "http://$http"
expect a_wrong_key_is_refused 4 '^titen: error: UNAUTHENTICATED: .* \(req_' \
	env TITEN_API_KEY=titen_sk_x "$titen" rpc call event.list
export TITEN_API_KEY
expect bootstrap_asks_the_running_server 0 '"organization_id"' "$titen" bootstrap --db x.db --org two
expect a_database_has_one_server 1 'in use' "$titen" serve --db x.db --http off --rpc off
"$titen" bootstrap --db y.db --org one >/dev/null
expect a_busy_port_is_named 1 "http://$http is in use; choose another with --http" \
	"$titen" serve --db y.db --http "$http" --rpc off
expect the_other_one_too 1 "$rpc is in use; choose another with --rpc" \
	"$titen" serve --db y.db --http off --rpc "$rpc"
expect a_table_is_for_people 0 '^KEY_ID ' "$titen" key list -o table
expect json_is_for_programs 0 '^\{"data":\{"keys":\[' "$titen" key list
expect a_key_is_made 0 '"principal_id":"agent_x"' \
	"$titen" key create --label x --principal agent_x --scope leases:write --kind service
made=$(member key_id)
expect a_key_is_revoked 0 '"revoked":true' "$titen" key revoke "$made"
expect an_unknown_key_is_not_found 5 'NOT_FOUND' "$titen" key revoke "key_$(printf %032d 0)"
printf '%s\n' "$TITEN_API_KEY" >key
unset TITEN_API_KEY
TITEN_API_KEY_FILE=key
export TITEN_API_KEY_FILE
expect the_key_may_stand_in_a_file 0 '"principal_id":"owner"' "$titen" rpc call principal.get
expect a_request_may_come_from_standard_input 1 'resource_id is required' \
	sh -c "echo '{\"resource_type\":\"x\"}' | '$titen' rpc call lease.acquire -d -"
expect and_a_benchmark_over_rest_takes_it_from_there 0 '"work":"rest"' \
	"$titen" bench rest --url "http://$http" -c 1 -d 1 -o json
expect a_signal_stops_it_cleanly 0 '^exit 0' stopped TERM

serve --db x.db --http off --rpc off
expect it_can_be_killed 137 '^exit 137' stopped KILL
serve --db x.db --http off --rpc off
expect and_starts_again_over_the_stale_socket 0 '"ready":true' "$titen" rpc call health.ready
expect interrupt_stops_it_too 0 '^exit 0' stopped INT

[ "$failures" -eq 0 ]
