package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/claudeops/claudeops/internal/agent"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/telemetry"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/records/transcripts"
	"github.com/claudeops/claudeops/internal/redact"
)

// resources holds everything that Close releases.
type resources struct {
	archive *transcripts.Archive
	// store is the database, and records is the way of activities, agents and sweeps to it, which masks, counts and
	// recovers.
	store   *store.Store
	records *store.Store
	places  *places
	agents  *agent.Runner
	// mask masks secrets, including secrets in this process's environment.
	mask *redact.Redactor
	// recovery records sessions again. Run sets its client.
	recovery *recovery
}

// openResources opens all resources. If one cannot be opened, openResources closes the others.
func openResources(
	ctx context.Context, cfg config.Config, cli *claude.CLI, policy *guard.Policy, env Environment,
) (r resources, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	r.mask, r.places = redact.New(withSecrets(env.Environ, cfg)), &places{config: cfg, environ: env.Environ}
	if r.archive, err = OpenArchive(ctx, cfg); err != nil {
		return r, err
	}
	if r.store, err = OpenStore(ctx, cfg); err != nil {
		return r, err
	}
	if err := r.store.CheckWritable(ctx); err != nil {
		return r, err
	}
	r.recovery = &recovery{logger: env.Logger}
	r.records = r.store.With(hooks(r.mask, env.Telemetry.Metrics(), r.recovery))
	r.recovery.records = r.records
	options := AgentOptions(cfg, env.Environ, policy)
	options.Cell.CLI, options.Cell.Place, options.Cell.Executable = cli, r.places.of, env.Executable
	options.Cell.Mask, options.Cell.Logger = r.mask, env.Logger
	options.Archive, options.ArchiveFailed = r.archive, env.Telemetry.Metrics().ArchiveFailed
	options.Records, options.CheckLimit = r.records, env.CheckLimit
	r.agents, err = agent.New(ctx, options)
	if errors.Is(err, cell.ErrAgentUser) {
		err = fmt.Errorf("%sAGENT_USER=%s: %w", config.Prefix, cfg.Claude.AgentUser, err)
	}
	return r, err
}

// hooks returns what a worker adds to its calls of the records.
func hooks(mask *redact.Redactor, metrics *telemetry.Metrics, recovery *recovery) store.Hooks {
	return store.Hooks{
		Mask: mask, Ended: metrics.SessionEnded, Recover: recovery.record, HostTimes: true,
		Failed:  func(operation store.Operation, err error) { metrics.StoreFailed(string(operation), err) },
		Refused: func(decision escalation.CallDecision) { metrics.CallRefused(decision.Tier, decision.Rule) },
	}
}

// withSecrets returns environ with the encryption keys as additional variables, so that the keys are masked like other
// secrets in environ.
func withSecrets(environ []string, cfg config.Config) []string {
	all := slices.Clone(environ)
	for i, secret := range cfg.Encryption.Keys.Secrets() {
		all = append(all, fmt.Sprintf("ENCRYPTION_SECRET_KEY_%d=%s", i, secret))
	}
	return all
}

// close releases the open resources in reverse order.
func (r resources) close() error {
	var errs []error
	if r.agents != nil {
		errs = append(errs, r.agents.Close())
	}
	if r.store != nil {
		errs = append(errs, r.store.Close())
	}
	if r.archive != nil {
		errs = append(errs, r.archive.Close())
	}
	return errors.Join(errs...)
}

// OpenStore opens the configured database of records, and migrates it.
func OpenStore(ctx context.Context, cfg config.Config) (*store.Store, error) {
	return OpenRecords(ctx, cfg.State)
}

// OpenRecords opens the database of records that state names, and migrates it.
func OpenRecords(ctx context.Context, state config.State) (*store.Store, error) {
	if file := state.DatabaseFile(); file != "" {
		return store.Open(ctx, file)
	}
	return store.OpenPostgres(ctx, state.DatabaseURL, state.DatabaseConnections)
}

// OpenExisting opens the database of records that state names, as a worker has made it. It neither creates nor migrates
// it: if there is no file, the error is fs.ErrNotExist, and without tables of this release store.ErrUnmigrated.
func OpenExisting(ctx context.Context, state config.State) (*store.Store, error) {
	file := state.DatabaseFile()
	if file == "" {
		return store.OpenExistingPostgres(ctx, state.DatabaseURL, state.DatabaseConnections)
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil, &missingRecordsError{file}
	}
	return store.OpenExisting(ctx, file)
}

// missingRecordsError is the error of a database file that does not exist.
type missingRecordsError struct{ file string }

func (e *missingRecordsError) Error() string {
	return fmt.Sprintf("there are no records: %s does not exist; run this where the worker keeps them, with the same "+
		"%sSTATE_DIR and %sDATABASE_URL", e.file, config.Prefix, config.Prefix)
}

func (e *missingRecordsError) Is(target error) bool { return target == fs.ErrNotExist }

// InspectStore describes the database of records that state names, and changes nothing.
func InspectStore(ctx context.Context, state config.State) (store.Status, error) {
	if file := state.DatabaseFile(); file != "" {
		return store.Inspect(ctx, file)
	}
	return store.InspectPostgres(ctx, state.DatabaseURL)
}

// OpenArchive opens the configured archive of transcripts.
func OpenArchive(ctx context.Context, cfg config.Config) (*transcripts.Archive, error) {
	archive, err := transcripts.Open(ctx, cfg.State.Transcripts)
	if err != nil {
		return nil, fmt.Errorf("%w; correct %sTRANSCRIPTS", err, config.Prefix)
	}
	return archive, nil
}
