# Usage: sh install.sh
#
# Installs the real claude CLIs that the contract and end-to-end tests run: one folder per
# version beside this file, exactly what its package-lock.json pins. What is installed stays.
#
# Without npm it fails if CI is "true" in the environment; elsewhere it says so and leaves
# the tests to skip.
set -eu
cd "$(dirname "$0")"

# installed says whether the CLI of a version runs and is that version.
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
