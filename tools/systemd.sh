# Usage: sh systemd.sh DIRECTORY
#
# Fails if systemd finds a mistake in sysusers.conf of DIRECTORY, or in a unit, alone or with one of its drop-ins. Also fails if
# systemd rates the exposure of a unit without drop-ins above 2.5 of 10. The checks run in a temporary root directory with empty
# files in place of the programs, so the programs of this machine have no influence.
#
# If systemd-analyze is missing, it fails if CI is "true" in the environment. Elsewhere it prints a message.
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
# verify UNIT fails if systemd prints anything about the unit. For some mistakes, such as an unknown setting, systemd only warns.
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
