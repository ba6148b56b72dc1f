#!/usr/bin/env bash
# Installs what the tests take from npm, and prints the folder, which is outside
# the tree and named by the lock file, so that a second run is free.
#
#   export KEN_NPM=$(.ci/npm.sh install SET)    install them, where they are not here yet
#   .ci/npm.sh have SET                         only print the folder, where they are
#
# The sets are folders of testdata:
#   browser   what the stories of the page are played with, and the Node that plays them
#   npm       that and 1,000 more: the MCP conformance suite, published servers
#
# Exits with 75 where they are not here: npm is missing or cannot install, or only
# have was asked.
set -euo pipefail
cd "$(dirname "$0")"
. ./npm-packages.sh
cd "../testdata/$2"
npm_packages "$2" "$1" ci
echo "$packages"
