package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrationFiles embed.FS

// versionTable is the table with the version of the schema. Open takes a database with this table for a database of
// this program. Therefore the name differs from goose's default, which other programs may use.
const versionTable = "claudeops_schema_version"

// migrator returns goose's provider that migrates db.
func migrator(db *sql.DB, d dialect) (*goose.Provider, error) {
	files, err := fs.Sub(migrationFiles, "migrations/"+d.directory)
	if err != nil {
		return nil, fmt.Errorf("find the migrations: %w", err)
	}
	provider, err := goose.NewProvider(d.goose, db, files,
		goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true),
	)
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return provider, nil
}

// refuseForeign fails if the database has tables, but none is versionTable. Such a database belongs to another program.
// refuseForeign reports whether there is a versionTable.
func refuseForeign(ctx context.Context, q querier, d dialect) (ours bool, err error) {
	var all, own int
	if err := q.QueryRowContext(ctx, d.tables, versionTable).Scan(&all, &own); err != nil {
		return false, fmt.Errorf("read the list of tables: %w", err)
	}
	if all > 0 && own == 0 {
		return false, fmt.Errorf("%w, because it belongs to another program: choose another one", errUnusable)
	}
	return own > 0, nil
}

// upToDate reports whether the schema has the version of this program. It fails if the schema has a later one.
func upToDate(ctx context.Context, provider *goose.Provider) (bool, error) {
	current, known, err := provider.GetVersions(ctx)
	if err != nil {
		return false, fmt.Errorf("read the schema version: %w", err)
	}
	if current > known {
		return false, fmt.Errorf("%w, because its schema has version %d and this release knows versions up to %d: "+
			"use the newer release again, or choose another database", errUnusable, current, known)
	}
	return current == known, nil
}

// checkMigrated returns ErrUnmigrated unless the database has the tables of this release. The argument ours reports
// whether there is a versionTable.
func checkMigrated(ctx context.Context, db *sql.DB, d dialect, ours bool) error {
	if !ours {
		return ErrUnmigrated
	}
	provider, err := migrator(db, d)
	if err != nil {
		return err
	}
	if current, err := upToDate(ctx, provider); current || err != nil {
		return err
	}
	return ErrUnmigrated
}

// migrate applies the missing migrations. Each migration and its version number are written in one transaction, so a
// crash cannot leave a migration half applied. The caller must keep other processes from migrating.
func migrate(ctx context.Context, provider *goose.Provider) error {
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate the schema: %w", err)
	}
	return nil
}
