#!/usr/bin/env bash
# The layers of `make test`. Each step is recorded by scripts/tally, whose
# table at the end lists times, skips and failures and gives the exit status.
#
#   .ci/test.sh [all | check | unit | script | postgres | browser | release | clients]…     default: all, which is all but clients
#
# It says first what is missing. With INSTALL=1, or under CI=true, it installs
# that: Debian packages as root with apt-get, npm packages into the cache.
# Otherwise it installs nothing, and what needs the missing things is left out
# by name; under CI=true that is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

staticcheck_version=v0.8.2
helm_version=v3.22.0

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
# All that is built without the race detector is built as it is shipped, so that
# every package is compiled once for vet, for tests and for the program.
export GOFLAGS="-trimpath -buildvcs=false ${GOFLAGS:-}" CGO_ENABLED=0
trap 'rm -rf "$TALLY_DIR"' EXIT

may_install=
if [ -n "${INSTALL:-}" ] || [ "${CI:-}" = true ]; then may_install=1; fi

# want NAME PACKAGES WHY: if the program NAME is missing, it is said and its
# Debian packages are to be installed.
missing=() packages=()
want() {
	command -v "$1" >/dev/null && return
	missing+=("$2: $3")
	read -ra more <<<"$2"
	packages+=("${more[@]}")
}

# plan LAYER…: says what these layers need that is not here, and installs it
# where that was asked for.
plan() {
	local layers=" $* " tool what
	[[ $layers == *" all "* ]] && layers=" check unit script postgres browser release "
	echo "fetched where it is not here yet: Go modules, and staticcheck $staticcheck_version into .cache"
	want "$(CGO_ENABLED=1 go env CC)" "gcc libc6-dev" "the race detector; without it every test runs without -race"
	case $layers in *" unit "* | *" script "* | *" release "*)
		for tool in git curl jq sqlite3 zip unzip python3; do want $tool $tool "tests of the example extensions and of the HTTP API"; done ;;
	esac
	case $layers in *" unit "* | *" browser "* | *" release "* | *" clients "*)
		want npm "nodejs npm" "the page's source, the MCP conformance suite, published servers, Ken's npm package" ;;
	esac
	case $layers in *" unit "* | *" browser "*)
		bash .ci/npm.sh have >/dev/null 2>&1 ||
			missing+=("about 1,000 npm packages, into the cache of this user: the MCP conformance suite, published servers, a browser's driver") ;;
	esac
	case $layers in *" unit "*)
		bash .ci/clients.sh have continue >/dev/null 2>&1 || missing+=("Continue, an MCP client from npm, 81 MB, into the cache of this user") ;;
	esac
	case $layers in *" clients "*)
		bash .ci/clients.sh have continue free licensed >/dev/null 2>&1 || missing+=("seven MCP clients from npm, 1.6 GB, into the cache of this user; Claude Code and Copilot CLI have licences of their own") ;;
	esac
	case $layers in *" unit "*)
		bash .ci/web.sh have >/dev/null 2>&1 || missing+=("about 100 npm packages, into the cache of this user: the page's compiler") ;;
	esac
	case $layers in *" check "*)
		[ -x ".cache/helm-$helm_version-$(go env GOVERSION)/helm" ] || missing+=("Helm $helm_version, a Go program, 87 MB, into .cache: the check of the chart") ;;
	esac
	case $layers in *" postgres "*) compgen -G '/usr/lib/postgresql/*/bin/pg_ctl' >/dev/null || want pg_ctl postgresql "the tests on a PostgreSQL server" ;; esac
	case $layers in *" unit "* | *" postgres "*) want mariadb-install-db mariadb-server "the tests on a MariaDB server" ;; esac
	case $layers in *" browser "*) want chromium chromium "the page in a real browser, and the pages that Ken opens" ;; esac

	if [ ${#missing[@]} = 0 ]; then return; fi
	if [ -z "$may_install" ]; then
		echo "not here, and not installed; what needs it is left out (make test INSTALL=1 installs it):"
		printf '  %s\n' "${missing[@]}"
		return
	fi
	echo "not here, and now installed:"
	printf '  %s\n' "${missing[@]}"
	if [ ${#packages[@]} = 0 ]; then return; fi
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "Debian packages are installed only by root with apt-get: install ${packages[*]} yourself" >&2
		return
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq && apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null ||
		echo "apt-get could not install ${packages[*]}: see above" >&2
}

# The race detector needs a C compiler; Ken itself is pure Go. SQLite and regular
# expressions are compiled without its bookkeeping: they are not ours, they share
# nothing that we could misuse but by calls that are watched, and they would be
# several times slower.
find_race() {
	race="-race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc/...=-race=false -gcflags=regexp/...=-race=false"
	race_cgo=1
	command -v "$(CGO_ENABLED=1 go env CC)" >/dev/null && return
	race=
	race_cgo=0
	tally skip "race detector" "no C compiler: install gcc and libc6-dev; every test runs without -race"
}

# raced COMMAND…: with the environment that $race needs.
raced() { CGO_ENABLED=$race_cgo "$@"; }

# How long one package of a layer may take. It ends a test that hangs; a slow
# machine must not come near it.
limit_unit=25m
limit_script=30m
limit_postgres=20m
limit_browser=30m
limit_release=20m
limit_clients=20m

# They read the source, one file after another; the unit layer leaves them out.
rules='TestLayers|TestCodeRules|TestCoverage|TestArchitecture'

layer_check() {
	tally check -silent "0 gofmt" -- gofmt -l .
	tally check "0 tidy" -- go mod tidy -diff
	tally check "0 vet" -- go vet ./...
	# The other systems that Ken is built for: type errors, tests included.
	tally check "0 platforms" -- go run ./scripts/platforms darwin/arm64 windows/amd64
	local dir
	dir="$PWD/.cache/staticcheck-$staticcheck_version-$(go env GOVERSION)"
	if [ -x "$dir/staticcheck" ] ||
		GOBIN=$dir go install "honnef.co/go/tools/cmd/staticcheck@$staticcheck_version"; then
		tally check "0 staticcheck" -- "$dir/staticcheck" ./...
	else
		tally skip "0 staticcheck" "staticcheck $staticcheck_version could not be installed: see above"
	fi
	layer_chart
	layer_vuln
	tally test "0 layers" -- -count=1 -vet=off -run "^($rules)" .
}

# The Helm chart, rendered by Helm itself. Building Helm takes four minutes of processor
# time, once, so it is installed only where that was asked for.
layer_chart() {
	local dir
	dir="$PWD/.cache/helm-$helm_version-$(go env GOVERSION)"
	if [ -x "$dir/helm" ] || [ -n "$may_install" ] && GOBIN=$dir go install "helm.sh/helm/v3/cmd/helm@$helm_version"; then
		KEN_HELM="$dir/helm" tally test "0 chart" -- -count=1 -vet=off -run '^TestHelm$' .
	else
		tally skip "0 chart" "Helm $helm_version is not here: make test INSTALL=1 installs it"
	fi
}

# Known vulnerabilities are listed on the network. A machine without it cannot
# know of any, and that is said.
layer_vuln() {
	local status=0
	bash .ci/vuln.sh || status=$?
	case $status in
	75) tally skip "0 vulnerabilities" "cannot here: the vulnerability database or govulncheck is out of reach, see above" ;;
	*) tally check "0 vulnerabilities" -- test "$status" = 0 ;;
	esac
}

# The official MCP suites and published servers come from npm, once for a lock
# file; without them the tests that need them are skipped by name.
find_npm() {
	[ -z "${KEN_NPM:-}" ] || return 0
	local dir mode=have
	[ -z "$may_install" ] || mode=install
	if dir=$(bash .ci/npm.sh $mode); then
		export KEN_NPM=$dir
	else
		tally skip "npm" "the npm packages of testdata/npm are not here: make test INSTALL=1 installs them"
	fi
}

# find_clients GROUP…: MCP clients from npm; without them the tests that run them are
# skipped by name.
find_clients() {
	[ -z "${KEN_CLIENTS:-}" ] || return 0
	local dir mode=have
	[ -z "$may_install" ] || mode=install
	if dir=$(bash .ci/clients.sh $mode "$@"); then
		export KEN_CLIENTS=$dir
	else
		tally skip "clients" "the MCP clients of testdata/clients ($*) are not here: INSTALL=1 installs them"
	fi
}

# The page's built files are committed; they must be those that its source gives.
layer_web() {
	local status=0 mode=check-have
	[ -z "$may_install" ] || mode=check
	bash .ci/web.sh $mode || status=$?
	case $status in
	75) tally skip "0 web" "the npm packages of web are not here: make test INSTALL=1 installs them" ;;
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
# The same holds for single inputs of megabytes, and for packing the whole module.
large='TestLargePendingIsBounded|TestLargest' # these run on PostgreSQL too
numbers+="|$large|TestPublishedModule|TestS5U06Endless|TestMarkdownLong|TestEdgesAreBounded|TestGraphOfManyTools|TestT04SameBytes"
numbers+='|TestOpenAPIBadInput|TestOpenAPIBombsStaySmall|TestOpenAPITextsAreBounded|TestJSONLRowsAreCapped'

layer_unit() {
	local packages counting
	find_npm
	find_clients continue # the smallest one; the layer clients has all
	layer_web
	packages=$(go list -e ./... | grep -vx ken/cmd/ken) # those tests are the scripts
	counting=$(grep -rlE --include='*_test.go' --exclude-dir='.?*' --exclude-dir=testdata "^func ($numbers)\(" . | xargs dirname | sort -u)
	# Vet has seen all of it. One package more at once than cores: many wait.
	# shellcheck disable=SC2086 # one word per package
	tally test "1 numbers" -- -timeout $limit_unit -short -shuffle=on -vet=off -run "^($numbers)\$" $counting
	# shellcheck disable=SC2086 # one word per package
	raced tally test "1 unit" -- $race -timeout $limit_unit -short -shuffle=on -vet=off -p $(($(nproc) + 1)) -skip "^(($numbers)\$|$rules|TestRelease\$|TestHelm\$|TestBrowser)" $packages
}

layer_script() {
	raced tally check "2 build" -- go build $race -o .cache/bin/ken-race ./cmd/ken
	KEN_TEST_BINARY="$PWD/.cache/bin/ken-race" raced tally test "2 script" -- $race -timeout $limit_script -count=1 -vet=off -parallel $(($(nproc) * 2)) -skip '^TestBrowser' ./cmd/ken
}

# The page in a real browser, against the real server and a scripted model. What
# drives it has little of its own to race: it runs without the race detector, as
# the server does.
layer_browser() {
	find_npm
	tally check "4 build" -- go build -o .cache/bin/ken ./cmd/ken
	KEN_TEST_BINARY="$PWD/.cache/bin/ken" tally test "4 browser" -- -timeout $limit_browser -count=1 -vet=off -parallel "$(nproc)" -run '^TestBrowser' ./cmd/ken
	# This one is Ken's own code, so races are looked for.
	raced tally test "4 executor" -- $race -timeout $limit_browser -count=1 -vet=off -parallel "$(nproc)" -run '^TestBrowser' ./internal/run/executor/browser
}

# What is written for PostgreSQL, and then what stands on the store: the same
# tests that run on SQLite elsewhere, and what happens when the server goes away.
layer_postgres() {
	tally check "3 build" -- go build -o .cache/bin/ken ./cmd/ken
	local named # every package with a test of that name: a list kept by hand forgets one
	named=$(grep -rlE --include='*_test.go' --exclude-dir='.?*' '^func Test[[:alnum:]_]*Postgres' . | xargs dirname | sort -u | xargs)
	local run=(raced bash .ci/with-postgres.sh bash -euc '
		tally test "3 postgres" -- $1 -timeout $2 -count=1 -vet=off -run Postgres $3
		tally test "3 state on postgres" -- $1 -timeout $2 -count=1 -vet=off -short -shuffle=on -skip "^($4)\$" ./internal/govern/approval ./internal/govern/review ./internal/govern/pin ./internal/govern/quota ./internal/govern/shared ./internal/run/queue ./internal/run/runner ./internal/serve/replica ./internal/talk/session
		CGO_ENABLED=0 tally test "3 large on postgres" -- -timeout $2 -count=1 -vet=off -short -run "^($4)\$" ./internal/govern/approval
		KEN_TEST_BINARY="$PWD/.cache/bin/ken" tally test "3 processes" -- $1 -timeout $2 -count=1 -vet=off -run "^(TestProcesses|TestReplicas|TestRoundTrips|TestStoreAway|TestBadStore|TestDifferentReplicas|TestClusterLimits|TestQuickCall|TestJobsOutage|TestFarewell|TestMCPReplicas|TestCapacity|TestResultsInBucket|TestChaos|TestTurnsAnywhere|TestStreams|TestRollingRestart)\$" ./cmd/ken
	' postgres "$race" $limit_postgres "$named" "$large")
	local status=0
	"${run[@]}" || status=$?
	case $status in
	0) ;;
	75) tally skip "3 postgres" "no PostgreSQL server: install the package postgresql" ;;
	*) tally fail "3 postgres" "the cluster did not start: see above" ;;
	esac
}

# A release of the commit, for this machine: made twice, compared, installed, run.
layer_release() {
	tally test "5 release" -- -timeout $limit_release -count=1 -vet=off -run '^TestRelease$' ./scripts/release
}

# Every MCP client from npm does a task through Ken, and its tokens are counted.
layer_clients() {
	find_clients continue free licensed
	tally test "6 clients" -- -timeout $limit_clients -count=1 -vet=off -v -run '^(TestRealClients|TestClientFlows|TestClientTokens)$' ./internal/connect ./internal/testkit/mcptest
}

go build -o .cache/bin/tally ./scripts/tally
[ $# -gt 0 ] || set -- all
plan "$@"
find_race
for layer in "$@"; do
	case $layer in
	all)
		layer_check
		layer_unit
		layer_script
		layer_postgres
		layer_browser
		layer_release
		;;
	check | unit | script | postgres | browser | release | clients) "layer_$layer" ;;
	*)
		echo "unknown layer $layer: all, check, unit, script, postgres, browser, release, clients" >&2
		exit 2
		;;
	esac
done
tally table
