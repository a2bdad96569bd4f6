package store

import (
	"database/sql"

	"github.com/pressly/goose/v3"
)

// dialect holds what differs between the databases in transactions and schemas. The queries are the same for all of them.
type dialect struct {
	// goose migrates the schema with the files in the directory below migrations.
	goose     goose.Dialect
	directory string
	// tables selects two numbers: all tables, and those of the name $1.
	tables string
	// reading makes a transaction read one consistent state.
	reading *sql.TxOptions
	// writing makes each statement of a transaction read the latest state.
	writing *sql.TxOptions
	// lock is the first statement of a transaction that writes. It waits for the end of all others. It is empty if BEGIN
	// does that.
	lock string
	// latestNumber selects the latest number that the table %s has given to a row; none or 0 if it gives no numbers.
	latestNumber string
	// continueNumbers are statements after which the table %[1]s continues after the number %[2]d.
	continueNumbers []string
	// server selects the version of the database, and size its size in bytes.
	server, size string
}

var sqliteDialect = dialect{
	goose:     goose.DialectSQLite3,
	directory: "sqlite",
	tables:    "SELECT COUNT(*), COUNT(CASE WHEN name = $1 THEN 1 END) FROM sqlite_master WHERE type = 'table'",
	reading:   &sql.TxOptions{ReadOnly: true},

	latestNumber: "SELECT seq FROM sqlite_sequence WHERE name = '%s'",
	continueNumbers: []string{
		"DELETE FROM sqlite_sequence WHERE name = '%[1]s' AND %[2]d > 0",
		"INSERT INTO sqlite_sequence (name, seq) VALUES ('%[1]s', %[2]d)",
	},
	server: "SELECT 'SQLite ' || sqlite_version()",
	size:   "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
}

var postgresDialect = dialect{
	goose:     goose.DialectPostgres,
	directory: "postgres",
	tables:    "SELECT COUNT(*), COUNT(CASE WHEN tablename = $1 THEN 1 END) FROM pg_tables WHERE schemaname = current_schema()",
	reading:   &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead},
	// In a stricter isolation a transaction would read the state from before its wait for the lock.
	writing: &sql.TxOptions{Isolation: sql.LevelReadCommitted},
	// The number is the key of the lock within the database. It is the same in all releases.
	lock: "SELECT pg_advisory_xact_lock(4846791580151137091)",

	latestNumber: `
SELECT COALESCE(s.last_value, 0) FROM pg_sequences s
WHERE s.schemaname = current_schema() AND s.sequencename = '%s_id_seq'`,
	continueNumbers: []string{"SELECT setval(pg_get_serial_sequence('%[1]s', 'id'), %[2]d)"},
	server:          "SELECT 'PostgreSQL ' || current_setting('server_version')",
	size:            "SELECT pg_database_size(current_database())",
}
