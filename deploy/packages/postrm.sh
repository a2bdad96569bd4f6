#!/bin/sh
# After the files went. Settings and state stay, so that the same package continues every chain. Only dpkg's "purge" removes
# them; rpm has none. The users stay, because files elsewhere can belong to them.
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
[ "$1" = purge ] || exit 0
rm -rf /etc/claudeops /var/lib/claudeops /var/lib/claudeops-web
