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

// versionTable is where goose keeps the version of the schema. It is also how a database is told
// for ours, so it is not goose's default, which any other program's database may have.
const versionTable = "claudeops_schema_version"

// migrator returns what brings db to the newest schema of dialect, which is also the name of
// the directory below migrations.
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

// migrate applies what is missing. Each migration and its version are one transaction, so a
// crash leaves the schema at one version or the next. The caller holds a lock
// against others who migrate.
func migrate(ctx context.Context, provider *goose.Provider) error {
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate the schema: %w", err)
	}
	return nil
}
