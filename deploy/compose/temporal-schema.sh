#!/bin/sh
# Creates Temporal's two databases on PostgreSQL and their tables, or updates the tables. You can run it again at any time.
# POSTGRES_SEEDS, DB_PORT and POSTGRES_USER name the server and its user. PASSWORD_FILE is the file with the password.
set -eu
SQL_PASSWORD=$(cat "$PASSWORD_FILE")
export SQL_PASSWORD

sql() { temporal-sql-tool --plugin postgres12 --endpoint "$POSTGRES_SEEDS" --port "$DB_PORT" --user "$POSTGRES_USER" "$@"; }

for part in temporal:temporal temporal_visibility:visibility; do
	sql --database "${part%:*}" create-database
	sql --database "${part%:*}" setup-schema --version 0.0 # changes nothing if tables exist
	sql --database "${part%:*}" update-schema --schema-name "postgresql/v12/${part#*:}"
done
