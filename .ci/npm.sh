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
cd "$(dirname "$0")"
. ./npm-packages.sh
cd ../testdata/npm
npm_packages npm "${1:-install}" ci
echo "$packages"
