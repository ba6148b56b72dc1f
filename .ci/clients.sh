#!/usr/bin/env bash
# Installs MCP clients for TestRealClients, TestClientFlows and TestClientTokens,
# and prints the folder of their programs, which is outside the tree.
#
#   export KEN_CLIENTS=$(.ci/clients.sh install [GROUP…])     install them, where they are not here yet
#   .ci/clients.sh have [GROUP…]                              only print the folder, where they are
#
# The groups are folders of testdata/clients:
#   continue   Continue, 90 MB: the one that every run of CI has
#   free       Codex, Gemini CLI, Qwen Code and opencode, 980 MB
#   licensed   Claude Code and Copilot CLI, 550 MB: installing them accepts their licences
# Without a group: continue and free. Exits with 75 where they are not here.
set -euo pipefail
cd "$(dirname "$0")"
. ./npm-packages.sh
cd ../testdata/clients

mode=${1:-install}
shift || true
[ $# -gt 0 ] || set -- continue free
shims=()
for group in "$@"; do
	cd "$group"
	# Not npm ci: it wants the optional packages of every system in the lock file.
	npm_packages "client-$group" "$mode" install --no-save
	cd ..
	modules=$packages/node_modules
	case $group in
	continue) shims+=("cn=node $modules/@continuedev/cli/dist/cn.js") ;;
	free) shims+=(
		"codex=node $modules/@openai/codex/bin/codex.js"
		"gemini=node $modules/@google/gemini-cli/bundle/gemini.js"
		"qwen=node $modules/@qwen-code/qwen-code/cli-entry.js"
		"opencode=$modules/opencode-linux-x64/bin/opencode"
	) ;;
	licensed) shims+=(
		"claude=$modules/@anthropic-ai/claude-code-linux-x64/claude"
		"copilot=$modules/@github/copilot-linux-x64/copilot"
	) ;;
	esac
done
dir=$(dirname "$packages")/ken-clients-$(printf '%s\n' "${shims[@]}" | sha256sum | cut -c1-16)
mkdir -p "$dir"
for shim in "${shims[@]}"; do
	work=$(mktemp "$dir/.XXXXXX")
	printf '#!/bin/sh\nexec %s "$@"\n' "${shim#*=}" >"$work"
	chmod 755 "$work"
	mv "$work" "$dir/${shim%%=*}"
done
echo "$dir"
