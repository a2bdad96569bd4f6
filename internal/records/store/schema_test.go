package store

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
)

// TestSchemas checks that both databases have the same tables, columns, types and keys. It leaves out what each of them
// needs for the full text search: in SQLite a virtual table with its own tables, in PostgreSQL an index.
func TestSchemas(t *testing.T) {
	t.Parallel()
	const sqliteColumns = `
SELECT m.name || '.' || c.name || ' ' || CASE WHEN c.type = 'INTEGER' AND instr(m.sql, c.name || ' IN (0, 1)') > 0 THEN 'BOOLEAN' ELSE c.type END
    || CASE WHEN c."notnull" OR c.pk THEN ' NOT NULL' ELSE '' END
FROM sqlite_master m JOIN pragma_table_info(m.name) c
WHERE m.type = 'table' AND m.name <> 'claudeops_schema_version' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE 'memories_search%' ORDER BY 1`
	const postgresColumns = `
SELECT (table_name || '.' || column_name || ' ' ||
    CASE data_type WHEN 'bigint' THEN 'INTEGER' WHEN 'double precision' THEN 'REAL' ELSE upper(data_type) END ||
    CASE is_nullable WHEN 'NO' THEN ' NOT NULL' ELSE '' END) COLLATE "C" AS line
FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'claudeops_schema_version' ORDER BY line`
	const sqliteIndexes = `
SELECT m.name || ' ' || i."unique" || ' ' || (SELECT group_concat(name) FROM (SELECT name FROM pragma_index_info(i.name) ORDER BY seqno))
FROM sqlite_master m JOIN pragma_index_list(m.name) i
WHERE m.type = 'table' AND m.name <> 'claudeops_schema_version' AND m.name NOT LIKE 'memories_search%' ORDER BY 1`
	const postgresIndexes = `
SELECT (t.relname || ' ' || CASE WHEN x.indisunique THEN 1 ELSE 0 END || ' ' || (
    SELECT string_agg(a.attname, ',' ORDER BY k.position) FROM unnest(x.indkey) WITH ORDINALITY AS k (number, position)
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number)) COLLATE "C" AS line
FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE n.nspname = 'public' AND x.indexrelid <> 'memories_search'::regclass AND t.relname <> 'claudeops_schema_version'
    AND NOT (x.indisprimary AND EXISTS (
        SELECT 1 FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attnum = x.indkey[0] AND a.attidentity <> ''))
ORDER BY line`
	const sqliteReferences = `
SELECT m.name || '.' || f."from" || ' -> ' || f."table" || '.' || f."to"
FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table' ORDER BY 1`
	const postgresReferences = `
SELECT (k.table_name || '.' || k.column_name || ' -> ' || u.table_name || '.' || u.column_name) COLLATE "C" AS line
FROM information_schema.referential_constraints r
JOIN information_schema.key_column_usage k ON k.constraint_name = r.constraint_name
JOIN information_schema.constraint_column_usage u ON u.constraint_name = r.constraint_name ORDER BY line`
	const sqliteTables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'memories_search%' AND name <> 'claudeops_schema_version' ORDER BY 1"
	file := single(t, filepath.Join(t.TempDir(), "ops.db"))
	server := openPostgres(t, postgrestest.Database(t))
	for _, queries := range [][2]string{
		{sqliteColumns, postgresColumns}, {sqliteIndexes, postgresIndexes}, {sqliteReferences, postgresReferences},
	} {
		want := lines(t, file, queries[0])
		require.NotEmpty(t, want)
		require.Equal(t, want, lines(t, server, queries[1]))
	}
	require.ElementsMatch(t, lines(t, file, sqliteTables), tables, "Copy copies all of them")
	require.Empty(t, lines(t, server, `
SELECT table_name || '.' || column_name FROM information_schema.columns
WHERE table_schema = 'public' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'`), "texts that sort by a language")
}

func lines(t *testing.T, s *Store, query string) []string {
	t.Helper()
	lines, err := collect(t.Context(), s.db, func(line *string) []field { return []field{{"", line}} }, query)
	require.NoError(t, err)
	return lines
}
