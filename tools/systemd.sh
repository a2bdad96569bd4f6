# Usage: sh systemd.sh DIRECTORY
#
# Fails if systemd finds a mistake in a unit of DIRECTORY, or rates its exposure above 2.5 of 10. The units are looked at in a root
# directory of their own, with empty programs in place of those that they start: what is installed here does not count.
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
for unit in "$units"/*.service; do
	name=${unit##*/}
	# A mistake can be a warning only, such as an unknown setting.
	said=$(systemd-analyze verify --root="$root" "$name" 2>&1) || failed=1
	if [ -n "$said" ]; then
		printf '%s\n' "$said" >&2
		failed=1
	fi
	if ! said=$(systemd-analyze security --offline=true --threshold=25 --no-pager "$unit" 2>&1); then
		printf '%s\n' "$said" | grep -v '✓' >&2
		failed=1
	fi
done
exit "$failed"
