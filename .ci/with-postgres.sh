#!/usr/bin/env bash
# Runs a command with KEN_TEST_POSTGRES naming an empty PostgreSQL cluster of
# its own. The cluster lives in a temporary directory, listens on a Unix socket
# only, and is stopped and removed whatever happens. Exit status 75: there is
# no server program here.
#
#   .ci/with-postgres.sh go test -run Postgres ./internal/know/source/...
set -euo pipefail

ctl=$(printf '%s\n' "$(command -v pg_ctl || true)" /usr/lib/postgresql/*/bin/pg_ctl | sort -V | tail -n 1)
[ -x "$ctl" ] || exit 75
bin=$(dirname "$(readlink -f "$ctl")")
dir=$(mktemp -d "${TMPDIR:-/tmp}/ken-postgres.XXXXXX") # a short path: the socket's name has a limit

as=()
if [ "$(id -u)" = 0 ]; then # the server refuses to run as root
	user=postgres
	id -u postgres >/dev/null 2>&1 || user=nobody # the programs are here without their package's user
	as=(runuser -u "$user" --)
	chown "$user" "$dir"
fi
# The server's programs want a working directory that their user can read.
pg() { (cd "$dir" && "${as[@]}" "$bin/$1" -D "$dir/data" "${@:2}" >>"$dir/log" 2>&1); }

trap 'pg pg_ctl -m immediate -w stop || true; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

touch "$dir/log" && chmod 666 "$dir/log"
options="-c listen_addresses= -c unix_socket_directories=$dir -c fsync=off -c max_prepared_transactions=4"
if ! pg initdb -U postgres -A trust -E UTF8 --locale=C --no-sync || ! pg pg_ctl -w -o "$options" start; then
	cat "$dir/log" >&2
	exit 1
fi
KEN_TEST_POSTGRES="postgres://postgres@/postgres?host=$dir" "$@"
