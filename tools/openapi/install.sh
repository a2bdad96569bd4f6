# Usage: sh install.sh
#
# Installs the generator of clients that package-lock.json pins, for the test of a generated client.
# To take a new version: change package.json, run npm install --omit-lockfile-registry-resolved here, and remove the entries
# "funding" from package-lock.json, because they are addresses.
#
# If npm is missing, it fails if CI is "true" in the environment. Elsewhere it prints a message, and the test is skipped.
set -eu
cd "$(dirname "$0")"

if ! command -v npm >/dev/null; then
	echo "npm is not installed: no client is generated from the OpenAPI document" >&2
	[ "${CI:-}" != true ]
	exit
fi
if ! cmp -s package-lock.json node_modules/.installed 2>/dev/null; then
	sh ../retry.sh npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	cp package-lock.json node_modules/.installed
fi
