# Usage: sh contract.sh TIMEOUT BUILD_TAGS [VERSION] [CLAUDE]
#
# Runs the contract tests on claude CLIs. Without arguments these are the CLIs in tools/claude. VERSION is a
# number or a tag such as latest; npm installs this CLI below bin/claude. CLAUDE is the path of a CLI. The
# script prints a line for each case, and then a list of all differences. It writes the tests' own output to
# a file. It fails if there is a difference.
set -eu

timeout=$1 tags=$2 version=${3:-} claude=${4:-}
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

mkdir -p bin/report
log=bin/report/contract-$number.log
echo "What the tests print goes to $log."
"$GO" build -o bin/contract-summary ./internal/claudesim/contract/summary
packages=$(sh tools/packages.sh TestContract)
# Test one package after the other. If a case waited for a processor, the CLI would look slow.
# shellcheck disable=SC2086 # they are several
"$GO" test -json -tags "soak,$tags" -p 1 -count=1 -timeout "$timeout" -run '^Test(Contract|Endings|RequiredReview|PlanOfTwoPhases)' $packages ${claude:+"-claude=$claude"} |
	bin/contract-summary -log "$log"
