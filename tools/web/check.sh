# Usage: sh check.sh
#
# Installs what package-lock.json pins, and checks that the files of htmx in internal/desk/web/pages/assets are those of npm.
# To take a new version: change package.json, run npm install --omit-lockfile-registry-resolved here, and copy the files.
#
# If npm is missing, it fails if CI is "true" in the environment. Elsewhere it prints a message, and the tests that need
# axe-core are skipped.
set -eu
cd "$(dirname "$0")"

if ! command -v npm >/dev/null; then
	echo "npm is not installed: the copy of htmx is not checked, and no test looks for barriers on the pages" >&2
	[ "${CI:-}" != true ]
	exit
fi
if ! cmp -s package-lock.json node_modules/.installed 2>/dev/null; then
	sh ../retry.sh npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	cp package-lock.json node_modules/.installed
fi
assets=../../internal/desk/web/pages/assets
cmp node_modules/htmx.org/dist/htmx.min.js $assets/htmx.min.js
cmp node_modules/htmx.org/dist/ext/hx-sse.min.js $assets/hx-sse.min.js
cmp node_modules/htmx.org/LICENSE $assets/htmx.LICENSE
