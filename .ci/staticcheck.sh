#!/usr/bin/env bash
# Runs staticcheck, which is built once for a version and a Go release.
set -euo pipefail
cd "$(dirname "$0")/.."

version=v0.8.2
dir="${XDG_CACHE_HOME:-$HOME/.cache}/ken-staticcheck-$version-$(go env GOVERSION)"
[ -x "$dir/staticcheck" ] || GOBIN=$dir go install "honnef.co/go/tools/cmd/staticcheck@$version"
exec "$dir/staticcheck" ./...
