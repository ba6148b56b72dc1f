#!/usr/bin/env bash
# The layers of `make test`. Each step is recorded by scripts/tally, whose
# table at the end lists times, skips and failures and gives the exit status.
#
#   .ci/test.sh [all | check | unit | script | postgres | browser]…     default: all
#
# Missing Debian packages are installed when this runs as root with apt-get;
# otherwise what needs them is skipped, loudly, and under CI=true that fails.
set -euo pipefail
cd "$(dirname "$0")/.."

staticcheck_version=v0.8.2

mkdir -p .cache/bin
PATH="$PWD/.cache/bin:$PATH"

# Builds and tests write up to two gigabytes in passing, more where more cores
# work. Where the usual folder has not that much to spare, the roomiest one is used.
find_room() {
	local dir free most=-1
	for dir in "${TMPDIR:-/tmp}" /var/tmp "$PWD/.cache/tmp"; do
		mkdir -p "$dir" && free=$(df -Pk "$dir" | awk 'NR == 2 { print int($4 / 1024) }') || continue
		echo "room to work in $dir: $free MB"
		if [ "$free" -gt "$most" ]; then
			most=$free
			export TMPDIR=$dir
		fi
		[ "$most" -lt 4096 ] || return 0
	done
	echo "at most $most MB to work in, in $TMPDIR: expect \"no space left on device\" below 2048" >&2
}
find_room
TALLY_DIR=$(mktemp -d)
export TALLY_DIR
# A program that looks for races sleeps a second at its end, by default; so would
# each of some hundred test binaries.
export GORACE="atexit_sleep_ms=0 ${GORACE:-}"
trap 'rm -rf "$TALLY_DIR"' EXIT

# install PACKAGE…: Debian packages, where we may.
install() {
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
	echo "installing $*"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# The race detector needs a C compiler; Ken itself is pure Go. SQLite and regular
# expressions are compiled without its bookkeeping: they are not ours, they share
# nothing that we could misuse but by calls that are watched, and they would be
# several times slower.
find_race() {
	race="-race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc/...=-race=false -gcflags=regexp/...=-race=false"
	export CGO_ENABLED=1
	command -v "$(go env CC)" >/dev/null || install gcc libc6-dev && return
	race=
	export CGO_ENABLED=0
	tally skip "race detector" "no C compiler: install gcc and libc6-dev; every test runs without -race"
}

# The example extensions run these; their tests fail where one is missing.
find_tools() {
	local tool missing=()
	for tool in git curl jq sqlite3 zip unzip; do
		command -v "$tool" >/dev/null || missing+=("$tool")
	done
	[ ${#missing[@]} = 0 ] || install "${missing[@]}" || echo "missing: ${missing[*]}" >&2
}

# They read the source, one file after another; the unit layer leaves them out.
rules='TestLayers|TestCodeRules|TestCoverage'

layer_check() {
	tally check -silent "0 gofmt" -- gofmt -l .
	tally check "0 tidy" -- go mod tidy -diff
	tally check "0 vet" -- go vet ./...
	local dir
	dir="$PWD/.cache/staticcheck-$staticcheck_version-$(go env GOVERSION)"
	if [ -x "$dir/staticcheck" ] ||
		GOBIN=$dir CGO_ENABLED=0 go install "honnef.co/go/tools/cmd/staticcheck@$staticcheck_version"; then
		tally check "0 staticcheck" -- "$dir/staticcheck" ./...
	else
		tally skip "0 staticcheck" "staticcheck $staticcheck_version could not be installed: see above"
	fi
	tally test "0 layers" -- -count=1 -vet=off -run "^($rules)" .
}

# The official MCP suites and published servers come from npm, once for a lock
# file; without them the tests that need them are skipped by name.
find_npm() {
	command -v npm >/dev/null || install nodejs npm || true
	if dir=$(bash .ci/npm.sh); then
		export KEN_NPM=$dir
	else
		tally skip "npm" "npm is missing or cannot install: see above"
	fi
}

# The page's built files are committed; they must be those that its source gives.
layer_web() {
	local status=0
	bash .ci/web.sh || status=$?
	case $status in
	75) tally skip "0 web" "npm is missing or cannot install: see above" ;;
	*) tally check "0 web" -- test "$status" = 0 ;;
	esac
}

# Arithmetic over whole corpora, one step after another: there is nothing in it
# for the race detector to find, and it would take five times as long. These run
# once without it; all else in their packages, and what they call, runs with it.
numbers='TestBill|TestWordsAloneOnDevSets|TestModelAloneOnDevSets|TestT02QualityOnDevSets|TestAbstention'
numbers+='|TestT05DependenciesAreFound|TestRelationsDoNotHurt|TestTokensShown|TestRecallOfDependencies|TestNDCGIsNotWorse'
numbers+='|TestK010PlainBM25Anchor|TestBenchCatalogsLoseNothing|TestDependsOnMeansRequiredTools'
numbers+='|TestJSONLPassesEveryFindingOn|TestRealCatalogs|TestCountCatalog|TestCharactersAgreeWithUnicode'

layer_unit() {
	local packages counting
	find_npm
	layer_web
	# The model must give the same bits on arm64; without this that test is skipped.
	command -v qemu-aarch64-static >/dev/null || install qemu-user-static || true
	packages=$(go list -e ./... | grep -vx ken/cmd/ken) # those tests are the scripts
	counting=$(grep -rlE --include='*_test.go' --exclude-dir='.?*' --exclude-dir=testdata "^func ($numbers)\(" . | xargs dirname | sort -u)
	# Vet has seen all of it. One package more at once than cores: many wait.
	# shellcheck disable=SC2086 # one word per package
	tally test "1 numbers" -- -short -shuffle=on -vet=off -run "^($numbers)\$" $counting
	# shellcheck disable=SC2086 # one word per package
	tally test "1 unit" -- $race -short -shuffle=on -vet=off -p $(($(nproc) + 1)) -skip "^(($numbers)\$|$rules)" $packages
}

layer_script() {
	tally check "2 build" -- go build $race -buildvcs=false -o .cache/bin/ken-race ./cmd/ken
	KEN_TEST_BINARY="$PWD/.cache/bin/ken-race" tally test "2 script" -- $race -count=1 -vet=off -parallel $(($(nproc) * 2)) -skip '^TestBrowser' ./cmd/ken
}

# The page in a real browser, against the real server and a scripted model.
layer_browser() {
	find_npm
	command -v chromium >/dev/null || install chromium || true
	tally check "4 build" -- go build -buildvcs=false -o .cache/bin/ken ./cmd/ken
	KEN_TEST_BINARY="$PWD/.cache/bin/ken" tally test "4 browser" -- $race -count=1 -vet=off -run '^TestBrowser' ./cmd/ken
}

# What is written for PostgreSQL, and then what stands on the store: the same
# tests that run on SQLite elsewhere, and what happens when the server goes away.
layer_postgres() {
	local run=(bash .ci/with-postgres.sh bash -euc '
		tally test "3 postgres" -- $1 -count=1 -vet=off -run Postgres ./internal/know/source/... ./internal/store/...
		tally test "3 state on postgres" -- $1 -count=1 -vet=off -short -shuffle=on ./internal/govern/approval ./internal/govern/review ./internal/govern/pin ./internal/run/runner ./internal/talk/session
		tally test "3 processes" -- $1 -count=1 -vet=off -run "^TestProcesses\$" ./cmd/ken
	' postgres "$race")
	local status=0
	"${run[@]}" || status=$?
	if [ $status = 75 ] && install postgresql; then
		status=0
		"${run[@]}" || status=$?
	fi
	case $status in
	0) ;;
	75) tally skip "3 postgres" "no PostgreSQL server: install the package postgresql" ;;
	*) tally fail "3 postgres" "the cluster did not start: see above" ;;
	esac
}

CGO_ENABLED=0 go build -buildvcs=false -o .cache/bin/tally ./scripts/tally
find_race
find_tools
[ $# -gt 0 ] || set -- all
for layer in "$@"; do
	case $layer in
	all)
		layer_check
		layer_unit
		layer_script
		layer_postgres
		layer_browser
		;;
	check | unit | script | postgres | browser) "layer_$layer" ;;
	*)
		echo "unknown layer $layer: all, check, unit, script, postgres, browser" >&2
		exit 2
		;;
	esac
done
tally table
