# Usage: sh contract.sh GOTESTSUM TIMEOUT BUILD_TAGS [VERSION] [CLAUDE]
#
# Runs the contract tests on claude CLIs. Without arguments these are the CLIs in tools/claude. VERSION is a
# number or a tag such as latest; npm installs this CLI below bin/claude. CLAUDE is the path of a CLI. The
# script prints a line for each test, the output of those that fail, and then a list of all differences,
# which the tests report as attributes. It fails if a test fails, or if none ran a real CLI.
set -eu

gotestsum=$1 timeout=$2 tags=$3 version=${4:-} claude=${5:-}
package=@anthropic-ai/claude-code

fail() {
	echo "contract: $*" >&2
	exit 2
}

# number_of prints the version number of the CLI at a path. If the CLI prints no version, number_of prints nothing.
number_of() {
	home=$(mktemp -d)
	said=$(env -i PATH="$PATH" HOME="$home" "$1" --version 2>/dev/null) || said=
	rm -rf "$home"
	printf '%s\n' "$said" | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | sed 1q
}

# install installs the CLI of a version below bin/claude, if it is missing, and sets claude to its path.
install() {
	dir=bin/claude/$1
	claude=$dir/node_modules/.bin/claude
	if [ -x "$claude" ] && [ "$(number_of "$claude")" = "$1" ]; then
		return
	fi
	rm -rf "$dir"
	mkdir -p "$dir"
	echo '{"private": true}' >"$dir/package.json"
	sh tools/retry.sh npm install --prefix "$dir" --no-package-lock --no-audit --no-fund --loglevel=error "$package@$1"
	[ "$(number_of "$claude")" = "$1" ] || fail "npm installed $1, but its claude does not start or is another version"
}

[ -z "$version" ] || [ -z "$claude" ] || fail "VERSION and CLAUDE are two CLIs: give one of them"
if [ -n "$version" ]; then
	command -v npm >/dev/null || fail "npm is not installed: give the path of a CLI with CLAUDE="
	found=$(npm view "$package@$version" version --loglevel=silent) || fail "npm has no version $version of $package"
	install "$found"
fi
number=pinned
if [ -n "$claude" ]; then
	[ -f "$claude" ] && [ -x "$claude" ] || fail "$claude is no file that can be executed"
	number=$(number_of "$claude")
	[ -n "$number" ] || fail "$claude is no claude CLI: --version tells no version"
	claude=$(cd "$(dirname "$claude")" && pwd)/$(basename "$claude")
fi

# attributes prints the attributes with a key, one a line: the test, a tab and the value.
attributes() {
	sed -n 's/.*"Action":"attr".*"Test":"\([^"]*\)","Key":"'"$1"'","Value":"\(.*\)"}$/\1\t\2/p' "$log" |
		sed 's/\\"/"/g; s/\\u003c/</g; s/\\u003e/>/g; s/\\u0026/\&/g; s/\\\\/\\/g'
}

mkdir -p bin/report
log=bin/report/contract-$number.json
echo "What the tests print goes to $log."
packages=$(sh tools/packages.sh TestContract)
result=0
# Test one package after the other. If a case waited for a processor, the CLI would look slow.
# shellcheck disable=SC2086 # they are several
"$gotestsum" --format testname --hide-summary output --jsonfile "$log" -- -tags "soak,$tags" -p 1 -count=1 -timeout "$timeout" \
	-run '^Test(Contract|Endings|RequiredReview|PlanOfTwoPhases)' $packages ${claude:+"-claude=$claude"} || result=1
if [ -n "$(attributes contract-difference)" ]; then
	printf '\nDifferences:\n'
	attributes contract-difference | sort | cut -c 1-240
	printf '\nCases that differ in a field:\n'
	attributes contract-difference | sed 's/\tlaunch [0-9]*: /\t/; s/: expected .*//; s/\[[0-9:]*\]/[]/g' | sort -u | cut -f 2 | sort | uniq -c | sort -rn
fi
echo
attributes contract-subject | cut -f 2 | sort -u | sed 's/^/held to the contract: /'
[ -n "$(attributes contract-subject)" ] || fail 'no test ran a real CLI'
exit "$result"
