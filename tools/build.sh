# Usage: sh build.sh PROGRAM PACKAGE [FLAG...]
#
# Builds a program and says on standard error how far it is: the first build takes minutes. The
# number of packages to compile is not known before; with an empty cache it is that of all.
set -eu

program=$1 package=$2
shift 2
go=${GO:-go}
began=$(date +%s)
total=$("$go" list -deps "$@" "$package" | wc -l)
result=$(mktemp)
trap 'rm -f "$result"' EXIT
{ "$go" build -v -o "$program" "$@" "$package" 2>&1 || echo "$?" >"$result"; } | awk -v total=$((total)) '
	/^[^ #]*$/ {
		if (++compiled % 50 == 0) { printf "  compiled %d of at most %d packages\n", compiled, total; fflush() }
		next
	}
	{ print }' >&2
[ ! -s "$result" ] || exit "$(cat "$result")"
echo "Compiled in $(($(date +%s) - began)) s." >&2
