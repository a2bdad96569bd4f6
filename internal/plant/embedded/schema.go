package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	schema "go.temporal.io/server/schema/sqlite"
	_ "modernc.org/sqlite" // registers sqliteDriver
)

const sqliteDriver = "sqlite"

// schemaVersion is the version of the tables in a database file. The server's SQLite driver does not record the
// version, and would start with any tables. So this package records the version.
type schemaVersion struct{ main, visibility string }

func (v schemaVersion) String() string { return v.main + "/" + v.visibility }

// currentSchema returns the schema version of this build's server.
func currentSchema() schemaVersion {
	return schemaVersion{main: schema.Version, visibility: schema.VisibilityVersion}
}

// prepareSchema creates the tables in an empty database, either all tables or none. It rejects tables of an unknown
// version.
func prepareSchema(ctx context.Context, d *database) (err error) {
	db, err := sql.Open(sqliteDriver, d.url())
	if err != nil {
		return fmt.Errorf("database file %s: %w", d.name, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("database file %s: %w", d.name, err)
	}
	defer func() { _ = tx.Rollback() }() // has no effect after Commit

	if err := createOrVerify(ctx, tx); err != nil {
		return fmt.Errorf("database file %s %w", d.name, err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("database file %s: %w", d.name, err)
	}
	return nil
}

// createOrVerify creates the tables in an empty database, or verifies the version of existing tables. The texts of its
// errors continue a sentence that begins with "database file NAME".
func createOrVerify(ctx context.Context, tx *sql.Tx) error {
	var tables, marked int
	err := tx.QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE name = 'claudeops_schema')
		FROM sqlite_master WHERE type = 'table'`).Scan(&tables, &marked)
	switch {
	case err != nil:
		return fmt.Errorf("cannot be read as a SQLite database; use another file: %w", err)
	case tables == 0:
		return createSchema(ctx, tx)
	case marked == 0:
		return errors.New("holds tables of something else; use another file")
	}
	var found schemaVersion
	err = tx.QueryRowContext(ctx, `SELECT main, visibility FROM claudeops_schema`).Scan(&found.main, &found.visibility)
	if err != nil {
		return fmt.Errorf("does not say which Temporal schema it has; use another file: %w", err)
	}
	return found.verify(currentSchema())
}

func createSchema(ctx context.Context, tx *sql.Tx) error {
	if err := schema.SetupSchemaOnDB(schemaExecutor{ctx: ctx, tx: tx}); err != nil {
		return fmt.Errorf("cannot be given the Temporal schema: %w", err)
	}
	version := currentSchema()
	_, err := tx.ExecContext(ctx, `CREATE TABLE claudeops_schema (main TEXT NOT NULL, visibility TEXT NOT NULL)`)
	if err == nil {
		_, err = tx.ExecContext(ctx, `INSERT INTO claudeops_schema VALUES (?, ?)`, version.main, version.visibility)
	}
	if err != nil {
		return fmt.Errorf("cannot be given its schema version: %w", err)
	}
	return nil
}

// verify returns nil if this build can use tables of version v. The parameter known is the build's own schema version.
// The text of an error continues a sentence that begins with "database file NAME".
func (v schemaVersion) verify(known schemaVersion) error {
	mainOrder, err := compareVersions(v.main, known.main)
	if err != nil {
		return err
	}
	visibilityOrder, err := compareVersions(v.visibility, known.visibility)
	switch {
	case err != nil:
		return err
	case mainOrder > 0 || visibilityOrder > 0:
		return fmt.Errorf("has Temporal schema %s, newer than the %s of this build; use a newer build or another file",
			v, known)
	case mainOrder < 0 || visibilityOrder < 0:
		return fmt.Errorf("has Temporal schema %s, older than the %s of this build, which cannot convert it; "+
			"use an older build or another file", v, known)
	default:
		return nil
	}
}

// compareVersions compares two versions of the form "major.minor" like slices.Compare.
func compareVersions(a, b string) (int, error) {
	var parts [2][2]int
	for i, version := range []string{a, b} {
		if _, err := fmt.Sscanf(version, "%d.%d", &parts[i][0], &parts[i][1]); err != nil {
			return 0, fmt.Errorf("has the malformed Temporal schema version %q; use another file: %w", version, err)
		}
	}
	return slices.Compare(parts[0][:], parts[1][:]), nil
}

// schemaExecutor runs the server's schema statements inside a transaction. SetupSchemaOnDB calls only Exec. The other
// methods exist to satisfy the interface.
type schemaExecutor struct {
	sqlplugin.AdminDB
	ctx context.Context // SetupSchemaOnDB passes no context
	tx  *sql.Tx
}

// Exec implements sqlplugin.AdminDB.
func (e schemaExecutor) Exec(statement string, args ...any) error {
	_, err := e.tx.ExecContext(e.ctx, statement, args...)
	return err
}
