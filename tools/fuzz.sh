# Usage: sh fuzz.sh DURATION
#
# Runs every fuzz target of this module for DURATION, one after the other. It stops at the
# first finding.
set -eu
here=$(dirname "$0")

packages=$(sh "$here/packages.sh" Fuzz)
for package in $packages; do
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$package"/*_test.go); do
		echo "$package $target"
		"${GO:-go}" test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "$package"
	done
done
