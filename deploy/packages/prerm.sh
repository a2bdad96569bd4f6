#!/bin/sh
# Before the files go. dpkg passes "remove" or "upgrade"; rpm passes how many versions stay installed.
set -e
case $1 in
remove | 0) ;;
*) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl disable --now claudeops-up.service claudeops-worker.service claudeops-web.service
fi
