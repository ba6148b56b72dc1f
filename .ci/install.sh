#!/usr/bin/env bash
# Installs what `make ci` and `make nightly` need beside Go: Debian packages, as
# root with apt-get, and packages from npm into the cache of this user. What is
# here already is left alone.
#
#   .ci/install.sh            for make ci
#   .ci/install.sh nightly    also for make nightly, 1.6 GB more; installing Claude
#                             Code and Copilot CLI accepts their licences
set -euo pipefail
cd "$(dirname "$0")/.."

packages=()
want() { command -v "$1" >/dev/null || packages+=("${@:2}"); } # PROGRAM PACKAGE…
want gcc gcc libc6-dev
for tool in git curl jq sqlite3 zip unzip python3 chromium; do want $tool $tool; done
want npm nodejs npm
want mariadb-install-db mariadb-server
compgen -G '/usr/lib/postgresql/*/bin/pg_ctl' >/dev/null || want pg_ctl postgresql
[ "${1:-}" != nightly ] || want debootstrap debootstrap

if [ ${#packages[@]} -gt 0 ]; then
	echo "Debian packages: ${packages[*]}"
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "only root installs them, with apt-get: install them yourself" >&2
		exit 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi
echo "packages from npm, for the browser and the page:"
bash .ci/npm.sh install browser
bash .ci/web.sh install
if [ "${1:-}" = nightly ]; then
	echo "packages from npm, published servers and clients:"
	bash .ci/npm.sh install npm
	bash .ci/clients.sh install continue free licensed
fi
