package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lib/pq"
)

// Status describes a database.
type Status struct {
	// Database is the path of the file or, for a server, its address and the name of the database.
	Database string `json:"database"`
	// Server is the kind and version of the database.
	Server string `json:"server"`
	// Schema is the version of the database's schema; 0 if there is no schema yet. Known is the latest version that
	// this program knows.
	Schema int64 `json:"schema"`
	Known  int64 `json:"schema_known"`
	// SizeBytes is the size of the database.
	SizeBytes int64 `json:"size_bytes"`
	// Namespaces names the Temporal namespace to which the records belong; none before a worker takes them, and several
	// if workers of several have shared them with an earlier release. It is empty if Schema differs from Known.
	Namespaces []string `json:"namespaces,omitempty"`
	// Tables counts the rows of each table. It is empty if Schema differs from Known.
	Tables []TableRows `json:"tables,omitempty"`
}

// Inspect describes the SQLite database in the file at path, and changes nothing.
func Inspect(ctx context.Context, path string) (Status, error) {
	if _, err := os.Stat(path); err != nil {
		return Status{}, fmt.Errorf("there is no database: %w", err)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return Status{}, err
	}
	db, err := sql.Open("sqlite", sqliteDSN(absolute))
	if err != nil {
		return Status{}, fmt.Errorf("open the database %s: %w", path, err)
	}
	status, err := inspect(ctx, db, sqliteDialect)
	if err = errors.Join(err, db.Close()); err != nil {
		return Status{}, place(path).explain("open", explainSQLite(err))
	}
	status.Database = absolute
	return status, nil
}

// InspectPostgres describes the PostgreSQL database at rawURL, and changes nothing.
func InspectPostgres(ctx context.Context, rawURL string) (Status, error) {
	config, err := postgresConfig(rawURL)
	if err != nil {
		return Status{}, err
	}
	db := sql.OpenDB(connector{config, answerTimeout})
	status, err := inspect(ctx, db, postgresDialect)
	if err = errors.Join(err, db.Close()); err != nil {
		return Status{}, placeOf(config).explain("open", explainPostgres(err))
	}
	status.Database = string(placeOf(config))
	return status, nil
}

// placeOf returns the URL of a database with all its servers, without user and password.
func placeOf(config pq.Config) place {
	servers := []string{fmt.Sprintf("%s:%d", config.Host, config.Port)}
	for _, other := range config.Multi {
		servers = append(servers, fmt.Sprintf("%s:%d", other.Host, other.Port))
	}
	return place(fmt.Sprintf("postgres://%s/%s", strings.Join(servers, ","), config.Database))
}

func inspect(ctx context.Context, db *sql.DB, d dialect) (status Status, err error) {
	provider, err := migrator(db, d)
	if err != nil {
		return status, err
	}
	for _, source := range provider.ListSources() {
		status.Known = max(status.Known, source.Version)
	}
	if err := db.QueryRowContext(ctx, d.server).Scan(&status.Server); err != nil {
		return status, err
	}
	if err := db.QueryRowContext(ctx, d.size).Scan(&status.SizeBytes); err != nil {
		return status, err
	}
	ours, err := refuseForeign(ctx, db, d)
	if !ours || err != nil {
		return status, err
	}
	if err := db.QueryRowContext(ctx, "SELECT MAX(version_id) FROM "+versionTable).Scan(&status.Schema); err != nil {
		return status, err
	}
	if status.Schema != status.Known {
		return status, nil
	}
	owners, err := collect(ctx, db, ownerFields, ownersQuery)
	if err != nil {
		return status, err
	}
	for _, owner := range owners {
		status.Namespaces = append(status.Namespaces, owner.String())
	}
	for _, table := range tables {
		rows, err := countRows(ctx, db, table)
		if err != nil {
			return status, err
		}
		status.Tables = append(status.Tables, TableRows{table, rows})
	}
	return status, nil
}
