# Usage: sh systemd.sh DIRECTORY
#
# Fails if systemd finds a mistake in sysusers.conf or in a unit of DIRECTORY, alone or with one of its drop-ins, or rates the exposure of the unit alone
# above 2.5 of 10. The units are looked at in a root directory of their own, with empty programs in place of those that they
# start: what is installed here does not count.
#
# Without systemd-analyze it fails if CI is "true" in the environment; elsewhere it says so.
set -eu

if ! command -v systemd-analyze >/dev/null; then
	echo "systemd-analyze is not installed: the units in $1 are not checked" >&2
	[ "${CI:-}" != true ]
	exit
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
units=$root/etc/systemd/system
mkdir -p "$units"
cp "$1"/*.service "$units"
for target in basic multi-user network-online shutdown sysinit; do
	printf '[Unit]\nDescription=%s\n' "$target" >"$units/$target.target"
done
sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$units"/*.service | while read -r program; do
	mkdir -p "$root$(dirname "$program")"
	printf '#!/bin/sh\n' >"$root$program"
	chmod 0755 "$root$program"
done

failed=0
# verify UNIT fails if systemd says anything about it. A mistake can be a warning only, such as an unknown setting.
verify() {
	said=$(systemd-analyze verify --root="$root" "$1" 2>&1) && [ -z "$said" ] && return
	printf '%s\n' "$said" >&2
	failed=1
}
for unit in "$units"/*.service; do
	verify "${unit##*/}"
	if ! said=$(systemd-analyze security --offline=true --threshold=25 --no-pager "$unit" 2>&1); then
		printf '%s\n' "$said" | grep -v '✓' >&2
		failed=1
	fi
	for change in "$1"/drop-ins/*.conf; do
		mkdir "$unit.d"
		cp "$change" "$unit.d"
		verify "${unit##*/}"
		rm -r "$unit.d"
	done
done
if ! said=$(systemd-sysusers --dry-run --root="$root" - <"$1/sysusers.conf" 2>&1); then
	printf '%s\n' "$said" >&2
	failed=1
fi
exit "$failed"
