#!/usr/bin/env bash
# Runs every benchmark that docs/bars.txt names five times, compares the best
# with the bars, and keeps the table in docs/measured.md. Fails when a bar is
# missed.
#
#   BENCH=Load .ci/bench.sh     the benchmarks that match instead, kept nowhere
#   BENCH=. .ci/bench.sh        all of them; that takes long
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -buildvcs=false -o "$work/tally" ./scripts/tally

[ -n "${KEN_BENCH:-}" ] || echo "KEN_BENCH is not set: benchmarks on the large catalogs will not run" >&2
names='\w*'
[ -n "${BENCH:-}" ] || names=$(sed -nE 's/^Benchmark([A-Za-z0-9]+).*/\1/p' docs/bars.txt | sort -u | paste -sd '|')
packages=$(grep -rlE --include='*_test.go' --exclude-dir='.?*' --exclude-dir=testdata "^func Benchmark($names)\(" . | xargs -r dirname | sort -u)
[ -n "$packages" ] || { echo "there is no benchmark in the tree" >&2; exit 1; }

# That of the page wants Chromium and the npm packages of testdata/npm.
if [ -z "${KEN_NPM:-}" ] && dir=$(bash .ci/npm.sh have npm); then export KEN_NPM=$dir; fi
[ -n "${KEN_NPM:-}" ] || echo "the npm packages of testdata/npm are not here: the page is not measured; make install-nightly fetches them" >&2

# Some of them want a PostgreSQL server.
with=()
if compgen -G '/usr/lib/postgresql/*/bin/pg_ctl' >/dev/null || command -v pg_ctl >/dev/null; then
	with=(bash .ci/with-postgres.sh)
else
	echo "no PostgreSQL server: the benchmarks on it will not run; install the package postgresql" >&2
fi

# shellcheck disable=SC2086 # one word per package
"${with[@]}" go test -run '^$' -bench "${BENCH:-^Benchmark($names)\$}" -benchmem -count 5 -timeout 1h $packages 2>&1 | tee "$work/raw" || true

status=0
{
	echo "$(date -u +%Y-%m-%d), $(go env GOVERSION), $(nproc) cores, $(sed -n 's/^cpu: //p' "$work/raw" | head -n 1)"
	echo
	"$work/tally" bench docs/bars.txt <"$work/raw"
} >"$work/table" || status=$?
cat "$work/table"
[ -n "${BENCH:-}" ] || "$work/tally" keep docs/measured.md bench <"$work/table"
exit $status
