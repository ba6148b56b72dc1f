#!/bin/sh
set -e
# Debian calls this with configure and the version that was configured before, if
# any, or with abort-… when something else failed. RPM calls it with the number of
# installed versions.
case "$1" in
configure) [ -z "$2" ] && first=yes || first= ;;
[0-9]*) [ "$1" -eq 1 ] && first=yes || first= ;;
*) exit 0 ;;
esac
if ! getent passwd ken >/dev/null 2>&1; then
	useradd --system --user-group --home-dir /var/lib/ken --no-create-home --shell /usr/sbin/nologin ken
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if [ "$first" = yes ]; then
		systemctl enable --now ken.service
	elif systemctl is-active --quiet ken.service; then
		systemctl restart ken.service
	fi
fi
