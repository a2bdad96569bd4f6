package store

import (
	"database/sql"
	"strings"

	"github.com/pressly/goose/v3"
)

// dialect describes a database. Databases differ in transactions and in schemas. The queries are the same for all
// databases.
type dialect struct {
	// goose is the name of this dialect in package goose, which migrates the schema. directory is the directory of
	// the schema's files, below migrations.
	goose     goose.Dialect
	directory string
	// tables is a query for two numbers: the number of all tables, and the number of tables with the name $1.
	tables string
	// reading holds the options with which a transaction reads one consistent state.
	reading *sql.TxOptions
	// writing holds the options with which each statement of a transaction reads the latest state; nil for the
	// default.
	writing *sql.TxOptions
	// lock is the first statement of a write transaction. It waits until no other write transaction is open. If the
	// database's BEGIN already waits for that, lock is empty.
	lock string
	// latestNumber is a query for the latest row number of the table %s. If the table has no row numbers, the query
	// returns 0 or no row.
	latestNumber string
	// continueNumbers lists statements that set the latest row number of the table %[1]s to %[2]d.
	continueNumbers []string
	// server is a query for the version of the database. size is a query for the size of the database in bytes.
	server, size string
	// now is a query for the database's time in milliseconds since 1970; empty if the database uses the clock of this
	// host.
	now string
	// searchMemories is a query for the numbers and ranks of the memories that match $1. A rank is negative, and the
	// lowest is the best. anyWord and allWords write words as such a search. A word consists of letters and digits.
	searchMemories    string
	anyWord, allWords func(words []string) string
}

// searchLimit limits the memories that a search finds.
const searchLimit = " LIMIT 2000"

// joinWords returns a function that quotes words and joins them with an operator.
func joinWords(quote, operator string) func([]string) string {
	return func(words []string) string {
		return quote + strings.Join(words, quote+" "+operator+" "+quote) + quote
	}
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

	searchMemories: "SELECT rowid, bm25(memories_search) AS rank FROM memories_search WHERE memories_search MATCH $1 " +
		"ORDER BY rank, rowid" +
		searchLimit,
	anyWord:  joinWords(`"`, "OR"),
	allWords: joinWords(`"`, "AND"),
}

var postgresDialect = dialect{
	goose:     goose.DialectPostgres,
	directory: "postgres",
	tables: "SELECT COUNT(*), COUNT(CASE WHEN tablename = $1 THEN 1 END) FROM pg_tables WHERE schemaname = " +
		"current_schema()", reading: &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead},
	// Each statement must read the state after the wait for the lock. At a higher isolation level, the statements
	// would read the state from before that wait.
	writing: &sql.TxOptions{Isolation: sql.LevelReadCommitted},
	// The number is the key of the advisory lock. It must be the same in all releases.
	lock: "SELECT pg_advisory_xact_lock(4846791580151137091)",

	latestNumber: `
SELECT COALESCE(s.last_value, 0) FROM pg_sequences s
WHERE s.schemaname = current_schema() AND s.sequencename = '%s_id_seq'`,
	continueNumbers: []string{"SELECT setval(pg_get_serial_sequence('%[1]s', 'id'), %[2]d)"},
	server:          "SELECT 'PostgreSQL ' || current_setting('server_version')",
	size:            "SELECT pg_database_size(current_database())",
	now:             "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",

	searchMemories: `
SELECT id, -ts_rank(to_tsvector('simple'::regconfig, words), to_tsquery('simple'::regconfig, $1)) AS rank FROM memories
WHERE to_tsvector('simple'::regconfig, words) @@ to_tsquery('simple'::regconfig, $1) ORDER BY rank, id` + searchLimit,
	anyWord:  joinWords("'", "|"),
	allWords: joinWords("'", "&"),
}
