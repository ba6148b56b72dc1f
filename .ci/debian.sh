#!/usr/bin/env bash
# Makes a minimal Debian with debootstrap, once, and prints its folder. Tests that
# install packages use it, under an overlay that is thrown away, and never the
# machine's own. It needs root.
set -euo pipefail

dir=/var/cache/ken-debian-bookworm
if [ ! -e "$dir/done" ]; then
	rm -rf "$dir"
	# Ken's package wants adduser; make and certificates are for .ci/fresh.sh.
	debootstrap --variant=minbase --include=adduser,ca-certificates,make bookworm "$dir" >&2
	touch "$dir/done"
fi
echo "$dir"
