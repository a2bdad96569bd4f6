package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/records/store"
)

func (a *app) dbCommand() *cobra.Command {
	return console.Parent(&cobra.Command{
		Use:   "db",
		Short: "Describe, migrate, copy, release or recover the records",
		Long: "The db commands work on the database in CLAUDEOPS_DATABASE_URL. Only recover needs Temporal. " +
			"docs/postgresql.md\ndescribes how to move from SQLite to PostgreSQL, and docs/backup.md how to restore " +
			"a backup.",
	}, "the database", a.statusCommand(), a.migrateCommand(), a.copyCommand(), a.releaseCommand(), a.recoverCommand())
}

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show where the records are, the version of the schema, and the number of rows",
		Long:  "Status describes the database, and changes nothing. It does not create or migrate the database.",
		Args:  console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(a.Environ)
			if err != nil {
				return err
			}
			return a.printStatus(cmd.Context(), cfg.State)
		},
	}
}

func (a *app) migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Create the tables, or migrate them to this release",
		Long: "Migrate updates the schema, as every worker does when it starts. Use it if the workers' user of " +
			"PostgreSQL must not\ncreate tables: before each new release, run it with the URL of the owner. " +
			"Meanwhile workers wait before they write.",
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(a.Environ)
			if err != nil {
				return err
			}
			opened, err := supervisor.OpenStore(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if err := opened.Close(); err != nil {
				return err
			}
			return a.printStatus(cmd.Context(), cfg.State)
		},
	}
}

func (a *app) releaseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "release",
		Short: "Hand the records over to another Temporal namespace",
		Long: "The records belong to one Temporal namespace, and workers of another one refuse them. Release makes " +
			"them belong to\nnone, so that the next worker that starts takes them for its namespace. Use it if " +
			"Temporal was set up anew, or if\nworkers of several namespaces have shared the records with an earlier " +
			"release.\n\nThe records stay. What the chains of the former namespace have left open is closed by the " +
			"worker that takes them.\nStop all workers first, and wait two minutes.",
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.release(cmd.Context())
		},
	}
}

func (a *app) release(ctx context.Context) (err error) {
	cfg, err := config.Load(a.Environ)
	if err != nil {
		return err
	}
	opened, err := supervisor.OpenExisting(ctx, cfg.State)
	if err != nil {
		return err
	}
	if err := errors.Join(opened.Release(ctx, a.Clock()), opened.Close()); err != nil {
		return err
	}
	return a.printStatus(ctx, cfg.State)
}

func (a *app) printStatus(ctx context.Context, state config.State) error {
	status, err := supervisor.InspectStore(ctx, state)
	return console.PrintResult(a.Console, status, err, writeStatus)
}

func writeStatus(w io.Writer, status store.Status) {
	schema := fmt.Sprintf("version %d, up to date", status.Schema)
	switch {
	case status.Schema == 0:
		schema = "none: run `claudeops db migrate`, or start a worker"
	case status.Schema < status.Known:
		schema = fmt.Sprintf("version %d of %d: run `claudeops db migrate`, or start a worker", status.Schema,
			status.Known)
	case status.Schema > status.Known:
		schema = fmt.Sprintf("version %d, of a newer release than this one (%d)", status.Schema, status.Known)
	}
	rows := [][]string{
		{"database", status.Database},
		{"server", status.Server},
		{"schema", schema},
		{"size", fmt.Sprintf("%.1f MB", float64(status.SizeBytes)/1e6)},
		{"namespace", cmp.Or(strings.Join(status.Namespaces, ", "), "none: the next worker takes the records")},
	}
	console.Table(w, append(rows, tableRows(status.Tables)...))
}

func tableRows(tables []store.TableRows) [][]string {
	rows := make([][]string, len(tables))
	for i, table := range tables {
		rows[i] = []string{table.Table, strconv.FormatInt(table.Rows, 10)}
	}
	return rows
}

func (a *app) copyCommand() *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:   "copy",
		Short: "Copy all records to an empty database",
		Long: "Copy copies all records, with their numbers, to a database without records, and makes its tables. The " +
			"source must\nhave those of this release (`claudeops db migrate`). Copy reads the copy back and compares " +
			"it with the source. If it\nfails, the target stays empty, and you can run copy again.\n\n" +
			"Stop all workers first, and wait two minutes. The target would lack records that workers write " +
			"after the copy.\n\n" +
			"Without --from the source is the database file in " +
			"CLAUDEOPS_STATE_DIR, and without --to the target is\nCLAUDEOPS_DATABASE_URL. So you need not write a " +
			"password on the command line, where all users of the machine can see it.",
		Example: "  claudeops db copy --from sqlite:///var/lib/claudeops/claudeops.db \\\n" +
			"    --to 'postgres://claudeops@db.lan/claudeops?sslmode=verify-full'",
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.copyRecords(cmd.Context(), from, to)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "URL of the source, as in CLAUDEOPS_DATABASE_URL (default: the file in the "+
		"state directory)")
	flags.StringVar(&to, "to", "", "URL of the target (default: CLAUDEOPS_DATABASE_URL)")
	return cmd
}

func (a *app) copyRecords(ctx context.Context, from, to string) (err error) {
	source, target, err := a.copyEnds(from, to)
	if err != nil {
		return program.Misuse(err)
	}
	records, err := supervisor.OpenExisting(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	empty, err := supervisor.OpenRecords(ctx, target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, empty.Close()) }()
	result, err := records.Copy(ctx, empty, a.Clock())
	if err != nil {
		return err
	}
	return a.Print(result, func(w io.Writer) {
		console.Table(w, append(tableRows(result.Tables), []string{"cost", plaintext.Dollars(result.CostUSD)}))
		_, _ = fmt.Fprintln(w, "All rows are copied, and the same as in the source. Start the workers with the "+
			"target's URL.")
	})
}

// copyEnds returns the source and the target of a copy.
func (a *app) copyEnds(from, to string) (source, target config.State, err error) {
	cfg, err := config.Load(a.Environ)
	if err != nil {
		return source, target, err
	}
	source, target = cfg.State, cfg.State
	source.DatabaseURL = source.OwnDatabaseURL()
	for _, given := range []struct {
		flag, url string
		end       *config.State
	}{{"--from", from, &source}, {"--to", to, &target}} {
		if given.url == "" {
			continue
		}
		if *given.end, err = given.end.WithDatabase(given.url); err != nil {
			return source, target, fmt.Errorf("%s (value not shown): it must %w", given.flag, err)
		}
	}
	if source.DatabaseURL == target.DatabaseURL {
		return source, target, errors.New("source and target are the same database: name the target with --to or " +
			"CLAUDEOPS_DATABASE_URL")
	}
	return source, target, nil
}
