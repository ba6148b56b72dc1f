#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
# Removing the package keeps the state: settings, secrets, keys and the audit log.
# Only a purge deletes it. The user stays, so that its number is not given to another.
if [ "$1" = purge ]; then
	rm -rf /var/lib/ken
fi
