#!/bin/sh
set -e
# Debian calls this with configure, RPM with the number of installed versions.
if ! getent passwd ken >/dev/null 2>&1; then
	useradd --system --user-group --home-dir /var/lib/ken --no-create-home --shell /usr/sbin/nologin ken
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	case "$1" in
	configure) [ -n "$2" ] && first= || first=yes ;; # $2 is the version that was configured before
	*) [ "$1" -gt 1 ] && first= || first=yes ;;
	esac
	if [ "$first" = yes ]; then
		systemctl enable --now ken.service
	elif systemctl is-active --quiet ken.service; then
		systemctl restart ken.service
	fi
fi
