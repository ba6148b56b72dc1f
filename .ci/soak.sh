#!/usr/bin/env bash
# Fuzzes every target of the tree in turn, FUZZTIME each (default 10m), then
# runs the long tests (TestSoak…) once, and keeps the table in docs/measured.md.
# Stops at the first failure; a crash leaves its input in the package's
# testdata/fuzz, where go test will try it for ever after.
#
#   FUZZTIME=1m FUZZ=Yaml .ci/soak.sh     only targets whose name has Yaml in it
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime=${FUZZTIME:-10m}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -buildvcs=false -o "$work/tally" ./scripts/tally

# targets PREFIX TYPE: "directory function" of each func PREFIX…(x *testing.TYPE)
targets() {
	grep -rnE --include='*_test.go' --exclude-dir='.?*' --exclude-dir=testdata "^func $1\w*\(\w+ \*testing\.$2\)" . |
		sed -E 's|^(.*)/[^/]*:[0-9]+:func (\w+)\(.*|\1 \2|' | sort -u || true # none is fine
}

say() { printf '%s\n' "$*" | tee -a "$work/table"; }

status=0
say "$(date -u +%Y-%m-%d), $(go env GOVERSION), $(nproc) cores, $fuzztime a target"
say ""
say "| target | runs | new inputs | result |"
say "|---|---:|---:|---|"
while read -r dir name; do
	[[ $name == *${FUZZ:-}* ]] || continue
	if go test -run '^$' -fuzz "^$name\$" -fuzztime "$fuzztime" "$dir" >"$work/log" 2>&1; then
		result=ok
	elif ! grep -q 'Failing input written' "$work/log" && grep -qx '  *context deadline exceeded' "$work/log"; then
		result=ok # the fuzzer's own deadline, reported as a failure by some Go releases
	else
		result="FAILED $(sed -n "s|.*Failing input written to |${dir#./}/|p" "$work/log")"
		status=1
	fi
	last=$(grep '^fuzz: .* execs: ' "$work/log" | tail -n 1 || true)
	say "| ${dir#./} $name | $(sed -E 's/.*execs: ([0-9]+).*/\1/' <<<"$last") | $(sed -E 's/.*interesting: ([0-9]+).*/\1/' <<<"$last") | $result |"
	[ $status = 0 ] || { cat "$work/log"; break; }
done < <(targets Fuzz F)

soaks=$(targets TestSoak T | cut -d' ' -f1 | sort -u)
if [ $status = 0 ] && [ -n "$soaks" ] && [ -z "${FUZZ:-}" ]; then
	# shellcheck disable=SC2086 # one word per package
	if KEN_NIGHTLY=1 go test -count=1 -timeout 1h -run '^TestSoak' $soaks >"$work/log" 2>&1; then result=ok; else result=FAILED status=1; fi
	say "| long tests | | | $result |"
	[ $status = 0 ] || cat "$work/log"
fi
if [ $status = 0 ] && [ -z "${FUZZ:-}" ]; then
	if KEN_CHAOS=${CHAOSTIME:-30m} .ci/with-postgres.sh go test -count=1 -timeout 1h -run '^TestChaos$' ./cmd/ken >"$work/log" 2>&1; then result=ok; else result=FAILED status=1; fi
	say "| replicas under kill -9, ${CHAOSTIME:-30m} | | | $result |"
	[ $status = 0 ] || cat "$work/log"
fi
if [ $status = 0 ] && [ -z "${FUZZ:-}" ]; then
	ulimit -n 16384 2>/dev/null || true # a client and a replica have a file each for a stream
	if KEN_STREAMS=${STREAMS:-2000} KEN_ROLLING=${ROLLING:-64} .ci/with-postgres.sh go test -count=1 -timeout 1h -run '^(TestStreams|TestRollingRestart)$' -v ./cmd/ken >"$work/log" 2>&1; then result=ok; else result=FAILED status=1; fi
	say "| ${STREAMS:-2000} streaming clients, rolling restart with ${ROLLING:-64} clients | | | $result |"
	[ $status = 0 ] || cat "$work/log"
fi
[ -n "${FUZZ:-}" ] || "$work/tally" keep docs/measured.md soak <"$work/table"
exit $status
