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

// versionTable is the table with the version of the schema. If a database has this table, Open accepts it as a database
// of this program. Therefore the name differs from goose's default, which other programs may use.
const versionTable = "claudeops_schema_version"

// migrator returns goose's provider that migrates db with the files in the directory dir below migrations.
func migrator(db *sql.DB, dialect goose.Dialect, dir string) (*goose.Provider, error) {
	files, err := fs.Sub(migrationFiles, "migrations/"+dir)
	if err != nil {
		return nil, fmt.Errorf("find the migrations: %w", err)
	}
	provider, err := goose.NewProvider(dialect, db, files,
		goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true),
	)
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return provider, nil
}

// refuseNewer fails if the schema has a version that this program does not know.
func refuseNewer(ctx context.Context, provider *goose.Provider) error {
	current, known, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the schema version: %w", err)
	}
	if current > known {
		return fmt.Errorf("%w, because its schema has version %d and this release knows versions up to %d: "+
			"use the newer release again, or choose another file", errUnusable, current, known)
	}
	return nil
}

// migrate applies the missing migrations. Each migration and its version number are written in one transaction, so a
// crash cannot leave a migration half applied. The caller must hold the lock of the database's directory.
func migrate(ctx context.Context, provider *goose.Provider) error {
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate the schema: %w", err)
	}
	return nil
}
