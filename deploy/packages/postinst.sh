#!/bin/sh
# After the files are there. dpkg passes "configure" and, at an upgrade, the former version; rpm passes how many versions
# are installed.
set -e
units="claudeops-up.service claudeops-worker.service claudeops-web.service"

systemd-sysusers claudeops.conf
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# Chains continue where they were. Agents at work get the time of CLAUDEOPS_DRAIN_TIMEOUT.
	# shellcheck disable=SC2086 # a list of units
	systemctl try-restart $units || echo "Claude Ops: a unit does not start again: systemctl status claudeops-*" >&2
fi
case $1 in
configure) [ -z "$2" ] || exit 0 ;;
1) ;;
*) exit 0 ;;
esac
echo "Claude Ops is installed. Set it up, as root: claudeops init"
