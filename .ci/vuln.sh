#!/usr/bin/env bash
# vuln.sh [PACKAGES]: known vulnerabilities in the code that Ken reaches, by
# govulncheck. It exits with 3 if there are any, and with 75 if they cannot be
# looked up: the database is on the network. GOVULNDB names another database.
set -euo pipefail
cd "$(dirname "$0")/.."

version=v1.8.0
database=${GOVULNDB:-https://vuln.go.dev}

# Loading all packages takes a minute, so this is asked first.
if ! curl -fsS --max-time 10 -o /dev/null "$database/index/db.json"; then
	echo "vulnerabilities: $database does not answer" >&2
	exit 75
fi
dir="$PWD/.cache/govulncheck-$version-$(go env GOVERSION)"
if [ ! -x "$dir/govulncheck" ] && ! GOBIN=$dir go install "golang.org/x/vuln/cmd/govulncheck@$version"; then
	echo "vulnerabilities: govulncheck $version could not be installed" >&2
	exit 75
fi
exec "$dir/govulncheck" -db "$database" "${@:-./...}"
