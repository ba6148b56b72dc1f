#!/usr/bin/env bash
# Measures Ken beside the gateways of testdata/compare and writes
# docs/benchmarks.md. Without npm, the gateways from npm are left out.
#
#   GATEWAYS='NAME=COMMAND' .ci/compare.sh     another gateway too
#   ROUNDS=3 .ci/compare.sh                    fewer rounds than 10
set -euo pipefail
cd "$(dirname "$0")/.."

peers=
if command -v npm >/dev/null; then
	peers="$PWD/.cache/compare-$(sha256sum testdata/compare/package.json | cut -c1-16)"
	if [ ! -e "$peers/done" ]; then
		mkdir -p "$peers"
		cp testdata/compare/package.json "$peers/"
		npm install --prefix "$peers" --loglevel=error --ignore-scripts --no-audit --no-fund >&2
		touch "$peers/done"
	fi
else
	echo "there is no npm: the gateways of testdata/compare/package.json are left out" >&2
fi

mkdir -p .cache/bin
go build -trimpath -buildvcs=false -o .cache/bin/ken ./cmd/ken
go build -trimpath -buildvcs=false -o .cache/bin/compare ./internal/testkit/mcptest/compare
export KEN_TEST_BINARY="$PWD/.cache/bin/ken"
# A gateway that asks the internet for something gets no answer.
exec unshare --map-root-user --net -- sh -c 'ip link set lo up && exec "$@"' sh \
	.cache/bin/compare -npm "$peers" -gateways "${GATEWAYS:-}" -rounds "${ROUNDS:-10}" docs/benchmarks.md
