# Usage: sh install.sh
#
# Installs the real claude CLIs for the contract and end-to-end tests. Each folder beside this
# file is for one version, which its package-lock.json pins. An installed CLI stays unchanged.
#
# If npm is missing, it fails if CI is "true" in the environment. Elsewhere it prints a message,
# and the tests are skipped.
set -eu
cd "$(dirname "$0")"

# installed reports whether the CLI of a version runs and prints that version.
installed() {
	said=$(env -i PATH="$PATH" HOME="$PWD/$1/node_modules" "$1/node_modules/.bin/claude" --version 2>/dev/null) || return 1
	[ "${said%% *}" = "$1" ]
}

for lock in */package-lock.json; do
	version=${lock%/*}
	if installed "$version"; then
		continue
	fi
	if ! command -v npm >/dev/null; then
		echo "npm is not installed: no claude $version for the tests that run it" >&2
		if [ "${CI:-}" = true ]; then
			exit 1
		fi
		continue
	fi
	(cd "$version" && sh ../../retry.sh npm ci --no-audit --no-fund --loglevel=error)
	if ! installed "$version"; then
		echo "npm installed $version, but its claude does not start or is another version" >&2
		exit 1
	fi
done
