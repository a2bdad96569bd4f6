#!/bin/sh
# After the files went. Settings and state stay, so that the same package continues every chain. Only dpkg's "purge" removes
# them; rpm has none.
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
[ "$1" = purge ] || exit 0
rm -rf /etc/claudeops /var/lib/claudeops /var/lib/claudeops-web
for user in claudeops-agent claudeops-web claudeops; do
	if getent passwd "$user" >/dev/null; then userdel "$user"; fi
done
