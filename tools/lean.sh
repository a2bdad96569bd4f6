# Usage: sh lean.sh BINARY PACKAGE MODULE MEGABYTES
#
# Fails if BINARY, built from PACKAGE, has MEGABYTES or more (a megabyte has a million bytes).
# Also fails if PACKAGE depends on a package of MODULE.
set -eu
binary=$1 package=$2 module=$3 limit=$4

linked=$("${GO:-go}" list -deps "$package" | grep -E "^$module(/|\$)" || true)
if [ -n "$linked" ]; then
	echo "$package links $module, among it:" >&2
	printf '%s\n' "$linked" | head -n 3 >&2
	exit 1
fi

bytes=$(wc -c <"$binary")
if [ "$bytes" -ge $((limit * 1000000)) ]; then
	echo "$binary has $bytes bytes; the limit is $limit MB" >&2
	exit 1
fi
echo "$binary: $((bytes / 1000000)) MB of at most $limit MB, without $module"
