# Usage: sh packages.sh PREFIX
#
# Prints the packages of this module that declare a test function whose name begins with
# PREFIX, one a line. Finding none is an error: a target that silently tests nothing would
# look like one that passes.
set -eu

packages=$(find . \( -name node_modules -o -name .git -o -name testdata \) -prune \
	-o -name '*_test.go' -exec grep -lE "^func $1" {} + | sed 's,/[^/]*$,,' | sort -u)
if [ -z "$packages" ]; then
	echo "packages.sh: no test file declares a func $1..." >&2
	exit 1
fi
printf '%s\n' "$packages"
