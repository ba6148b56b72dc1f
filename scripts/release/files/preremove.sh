#!/bin/sh
set -e
# Debian calls this with remove or upgrade, RPM with the number of versions that stay.
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now ken.service
	fi
	;;
esac
