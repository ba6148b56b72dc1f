#!/usr/bin/env bash
# Runs every benchmark five times, compares the best with docs/bars.txt, and
# keeps the table in docs/measured.md. Fails when a bar is missed.
#
#   BENCH=Load .ci/bench.sh     only benchmarks that match, kept nowhere
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -buildvcs=false -o "$work/tally" ./scripts/tally

[ -n "${KEN_BENCH:-}" ] || echo "KEN_BENCH is not set: benchmarks on the large catalogs will not run" >&2
packages=$(grep -rlE --include='*_test.go' --exclude-dir='.?*' --exclude-dir=testdata '^func Benchmark\w*\(' . | xargs -r dirname | sort -u)
[ -n "$packages" ] || { echo "there is no benchmark in the tree" >&2; exit 1; }

# shellcheck disable=SC2086 # one word per package
go test -run '^$' -bench "${BENCH:-.}" -benchmem -count 5 -timeout 1h $packages 2>&1 | tee "$work/raw" || true

status=0
{
	echo "$(date -u +%Y-%m-%d), $(go env GOVERSION), $(nproc) cores, $(sed -n 's/^cpu: //p' "$work/raw" | head -n 1)"
	echo
	"$work/tally" bench docs/bars.txt <"$work/raw"
} >"$work/table" || status=$?
cat "$work/table"
[ -n "${BENCH:-}" ] || "$work/tally" keep docs/measured.md bench <"$work/table"
exit $status
