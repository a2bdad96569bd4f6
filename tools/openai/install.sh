# Usage: sh install.sh
#
# Installs the official clients of OpenAI's API in Go and for Node, as go.mod and package-lock.json pin them, for the test of
# /v1/chat/completions.
# To take a new version: change package.json, run npm install --omit-lockfile-registry-resolved here, and remove entries that are
# addresses; or run go get here.
#
# If npm is missing, it fails if CI is "true" in the environment. Elsewhere it prints a message, and the test of the client for
# Node is skipped.
set -eu
cd "$(dirname "$0")"

# The package is large. Without optimization it compiles in two thirds of the time.
sh ../retry.sh "${GO:-go}" build -gcflags='github.com/openai/openai-go/v3/...=-N -l' -o ../../bin/clients/openai .
if ! command -v npm >/dev/null; then
	echo "npm is not installed: the client of OpenAI's API for Node is not tried" >&2
	[ "${CI:-}" != true ]
	exit
fi
if ! cmp -s package-lock.json node_modules/.installed 2>/dev/null; then
	sh ../retry.sh npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	cp package-lock.json node_modules/.installed
fi
