#!/usr/bin/env bash
# Installs what the tests take from npm: the conformance suite, the Inspector,
# published MCP servers, and the Node that runs them. Prints the folder, which
# is outside the tree and named by the lock file, so that a second run is free.
#
#   export KEN_NPM=$(.ci/npm.sh)     install them, where they are not here yet
#   .ci/npm.sh have                  only print the folder, where they are
#
# Exits with 75 where they are not here: npm is missing or cannot install, or
# only have was asked.
set -euo pipefail
cd "$(dirname "$0")/../testdata/npm"

hash=$(cat package.json package-lock.json | sha256sum | cut -c1-16)
# Where root keeps it others must be able to read it: confined programs run as
# nobody in particular.
cache="${XDG_CACHE_HOME:-$HOME/.cache}"
[ "$(id -u)" != 0 ] || cache=/var/cache
dir="$cache/ken-npm-$hash"
if [ ! -e "$dir/done" ]; then
	[ "${1:-}" != have ] || exit 75
	command -v npm >/dev/null || { echo "there is no npm: install the package npm" >&2; exit 75; }
	mkdir -p "$(dirname "$dir")"
	work=$(mktemp -d "$dir.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	cp package.json package-lock.json .npmrc "$work/"
	# No scripts: a browser is never fetched, and nothing of a package runs before its test.
	npm ci --prefix "$work" --loglevel=error --ignore-scripts --no-audit --no-fund >&2 || exit 75
	chmod 755 "$work"
	touch "$work/done"
	mv -T "$work" "$dir" 2>/dev/null || [ -e "$dir/done" ] # someone else was quicker
fi
echo "$dir"
