#!/bin/sh
# Usage: secrets.sh [DIRECTORY]
#
# Creates the secrets of compose.yaml in DIRECTORY (default: secrets beside compose.yaml): random passwords, the URL of the database, and
# the model's key from ANTHROPIC_API_KEY. An existing file stays unchanged.
set -eu
directory=${1:-$(dirname "$0")/../secrets}
umask 077
mkdir -p "$directory"

# write NAME VALUE creates a file. Containers read it as other users, so everybody may read the file. Only the owner can enter its directory.
write() {
	[ -e "$directory/$1" ] && return
	printf '%s' "$2" >"$directory/$1.new"
	chmod 0444 "$directory/$1.new"
	mv "$directory/$1.new" "$directory/$1"
}

# password prints 48 hexadecimal digits.
password() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

if [ ! -e "$directory/anthropic_api_key" ] && [ -z "${ANTHROPIC_API_KEY:-}" ]; then
	echo "secrets.sh: set ANTHROPIC_API_KEY, or write the key to $directory/anthropic_api_key" >&2
	exit 1
fi
write anthropic_api_key "${ANTHROPIC_API_KEY:-}"
write temporal_db_password "$(password)"
write db_password "$(password)"
write database_url "postgres://claudeops:$(cat "$directory/db_password")@db:5432/claudeops?sslmode=disable"
write grafana_admin_password "$(password)"
