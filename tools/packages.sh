# Usage: sh packages.sh PREFIX
#
# Prints the packages of this module with a test function whose name begins with PREFIX, one
# package per line. It fails if there is none, because a target without tests would look like
# a target that passes.
set -eu

packages=$(find . \( -name node_modules -o -name .git -o -name testdata \) -prune \
	-o -name '*_test.go' -exec grep -lE "^func $1" {} + | sed 's,/[^/]*$,,' | sort -u)
if [ -z "$packages" ]; then
	echo "packages.sh: no test file declares a func $1..." >&2
	exit 1
fi
printf '%s\n' "$packages"
