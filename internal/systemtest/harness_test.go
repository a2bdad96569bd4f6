package systemtest

import (
	"context"
	"database/sql"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/embedded"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/plant/telemetry"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// testTimeout limits every wait of a test on the real server.
const testTimeout = 5 * time.Minute

// sweepInterval is short, so that a sweep runs during every test. A sweep must leave sessions in use alone.
const sweepInterval = 500 * time.Millisecond

// conversationOf returns the path of the worker's own copy of a conversation.
func conversationOf(cfg config.Config, sessionID string) string {
	return filepath.Join(cfg.State.Dir, "conversations", sessionID+".jsonl")
}

// site is an installation under test: a state directory and a worker on a real Temporal server.
type site struct {
	t      *testing.T
	cfg    config.Config
	client client.Client
	// begin starts the worker.
	begin func()
	// stop drains the worker and returns the error of its Run.
	stop func() error
	// kept is what reader has returned. The mutex keeping guards it.
	kept *store.Store
}

// quiet returns a logger that discards everything. The assertions explain a failing test.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// sharedTemporal is the server of all tests that do not change it. Starting a server takes most of a second of CPU
// time, and twelve idle servers use a good part of one CPU all the time.
var sharedTemporal struct {
	start  sync.Once
	server *embedded.Server
	err    error
}

// startTemporal returns a connection to a real Temporal server in this process. Tests share the server. Each test has
// its own task queue and its own chain IDs.
func startTemporal(t *testing.T) client.Client {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	shared := &sharedTemporal
	shared.start.Do(func() {
		ctx := context.WithoutCancel(t.Context()) // the server outlives the test
		if shared.server, shared.err = embedded.Start(ctx, embedded.Options{NoUI: true, Logger: quiet()}); shared.err != nil {
			return
		}
		shared.err = supervisor.SetUpNamespace(ctx, connect(t, shared.server.Address()), client.DefaultNamespace)
	})
	require.NoError(t, shared.err)
	return connect(t, shared.server.Address())
}

// stopSharedTemporal stops the shared server if a test has started it.
func stopSharedTemporal() error {
	if sharedTemporal.server == nil {
		return nil
	}
	return sharedTemporal.server.Stop()
}

// startTemporalAt starts a Temporal server for one test alone. It also returns the server's address.
func startTemporalAt(t *testing.T) (c client.Client, address string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	server, err := embedded.Start(t.Context(), embedded.Options{NoUI: true, Logger: quiet()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	c = connect(t, server.Address())
	require.NoError(t, supervisor.SetUpNamespace(t.Context(), c, client.DefaultNamespace))
	return c, server.Address()
}

// connect connects to the Temporal server at address until the end of the test. Workers with this connection have the
// interceptors, such as those that inject faults.
func connect(t *testing.T, address string, interceptors ...interceptor.ClientInterceptor) client.Client {
	t.Helper()
	options := client.Options{
		HostPort: address, Identity: "test", Logger: log.NewStructuredLogger(quiet()), Interceptors: interceptors,
	}
	c, err := supervisor.Connect(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// environment returns settings with a state directory of their own and the given claude.
func environment(t *testing.T, claude string, more ...string) []string {
	t.Helper()
	home := t.TempDir()
	environ := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, simtest.WorkersUser,
		"CLAUDEOPS_STATE_DIR=" + filepath.Join(home, "state"), "CLAUDEOPS_CLAUDE=" + claude,
		"CLAUDEOPS_TASK_QUEUE=" + nameOf(t),
		"CLAUDEOPS_GATE_TIMEOUT=0s",       // tests of gates set their own value
		"CLAUDEOPS_DAY_BUDGET_USD=0",      // more sessions run at a time than a day's budget covers
		"CLAUDEOPS_HEARTBEAT_INTERVAL=1s", // tests wait for what heartbeats tell
		"CLAUDEOPS_SANDBOX=off",           // the stand-in writes to temporary directories of the test
		"CLAUDEOPS_REVIEW_CHANGES=none",   // tests of reviews set their own value
		"CLAUDEOPS_POLICY_FILE=" + simtest.OpenPolicy(t),
	}
	if *onPostgres {
		environ = append(environ, "CLAUDEOPS_DATABASE_URL="+newDatabase(t))
	}
	return append(environ, more...)
}

// newDatabase returns the URL of an empty database.
func newDatabase(t *testing.T) string {
	t.Helper()
	if *onPostgres {
		return postgrestest.Database(t)
	}
	return "sqlite://" + filepath.Join(t.TempDir(), "records.db")
}

// onPostgres makes the records of all sites be in PostgreSQL.
var onPostgres = flag.Bool("postgres", false, "keep the records of the chains in PostgreSQL")

// openSQL opens the database of the records as another program would.
func openSQL(t *testing.T, cfg config.Config) *sql.DB {
	t.Helper()
	kind, place := "sqlite", cfg.State.DatabaseFile()
	if place == "" {
		kind, place = "postgres", cfg.State.DatabaseURL
	}
	db, err := sql.Open(kind, place)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// needsFile skips a test of a database file if the records are in PostgreSQL.
func needsFile(t *testing.T) {
	t.Helper()
	if *onPostgres {
		t.Skip("is about a database file")
	}
}

// startSite starts a worker. All its settings come from environ.
func startSite(t *testing.T, c client.Client, environ []string) *site {
	t.Helper()
	s, _ := startLoggedSite(t, c, environ)
	return s
}

// startLoggedSite starts a worker like startSite, and also returns its log.
func startLoggedSite(t *testing.T, c client.Client, environ []string) (*site, *logBook) {
	t.Helper()
	s, book := newSite(t, c, environ)
	s.begin()
	return s, book
}

// newSite creates a worker like startLoggedSite, but begin starts it. A worker that ends before stop fails the test.
// If an executable is given, CLIs run it to ask the guard.
func newSite(t *testing.T, c client.Client, environ []string, executable ...string) (*site, *logBook) {
	t.Helper()
	return newSiteIn(t, c, supervisor.Environment{Environ: environ, Executable: strings.Join(executable, "")})
}

// newSiteIn creates a worker like newSite, and fills in what env leaves open.
func newSiteIn(t *testing.T, c client.Client, env supervisor.Environment) (*site, *logBook) {
	t.Helper()
	book := openLogBook(t)
	env.Logger = slog.New(telemetry.NewLogHandler(slog.NewTextHandler(book, nil)))
	env.Host, env.Version, env.SweepInterval = "host-1", "v1.2.3", sweepInterval
	cfg, err := config.Load(env.Environ)
	require.NoError(t, err)
	s, err := supervisor.New(t.Context(), cfg, env)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	working := false
	begin := func() {
		working = true
		go func() {
			err := s.Run(ctx, c, client.DefaultNamespace)
			if ctx.Err() == nil {
				t.Errorf("the worker ended by itself: %v", err)
			}
			ended <- err
		}()
	}
	stop := func() error {
		if !working {
			return nil
		}
		working = false
		cancel()
		return <-ended
	}
	t.Cleanup(func() {
		require.NoError(t, stop())
		require.NoError(t, s.Close())
	})
	return &site{t: t, cfg: cfg, client: c, begin: begin, stop: stop}, book
}

// siteOf returns an installation without a worker. Its workers are separate processes.
func siteOf(t *testing.T, c client.Client, environ []string) *site {
	t.Helper()
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	return &site{t: t, cfg: cfg, client: c}
}

// start starts a chain. The input is any value that can be encoded as JSON.
func (s *site) start(input any) client.WorkflowRun {
	s.t.Helper()
	return s.startAs("chain-"+nameOf(s.t), input)
}

// nameOf returns the name of a test in a form that fits into an ID.
func nameOf(t *testing.T) string { return strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()) }

// startAs starts a chain under an ID.
func (s *site) startAs(id string, input any) client.WorkflowRun {
	s.t.Helper()
	run, err := s.client.ExecuteWorkflow(s.t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: s.cfg.Worker.TaskQueue,
	}, workflows.ChainWorkflow, input)
	require.NoError(s.t, err)
	return run
}

// finish waits for the chain's result.
func (s *site) finish(run client.WorkflowRun) (escalation.Chain, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testTimeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	var chain escalation.Chain
	err := run.Get(ctx, &chain) // its own error for the deadline
	if err != nil && time.Now().After(deadline) {
		seen, _ := s.tryQuery(run)
		require.FailNow(s.t, "the chain did not end", "it says: %+v", seen)
	}
	return chain, err
}

// records opens the site's records again, in addition to the worker.
func (s *site) records() *store.Store {
	s.t.Helper()
	records, err := supervisor.OpenStore(s.t.Context(), s.cfg)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, records.Close()) })
	return records
}

var keeping sync.Mutex

// reader returns the site's records, which stay open.
func (s *site) reader() *store.Store {
	s.t.Helper()
	keeping.Lock()
	defer keeping.Unlock()
	if s.kept == nil {
		s.kept = s.records()
	}
	return s.kept
}

// query returns the state of a running or ended chain.
func (s *site) query(run client.WorkflowRun) escalation.Chain {
	s.t.Helper()
	var chain escalation.Chain
	s.ask(run, workflows.ChainQuery, &chain)
	return chain
}

// ask sends a query and decodes the answer. It repeats a failed query for up to testTimeout: on a busy machine a
// worker may be late, or the chain may continue as new during the query.
func (s *site) ask(run client.WorkflowRun, query string, result any) {
	s.t.Helper()
	for asked := time.Now(); ; {
		answer, err := s.client.QueryWorkflow(s.t.Context(), run.GetID(), run.GetRunID(), query)
		if err == nil {
			require.NoError(s.t, answer.Get(result))
			return
		}
		if time.Since(asked) > testTimeout {
			require.NoError(s.t, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// tryQuery queries a chain once. It returns false if the chain does not answer.
func (s *site) tryQuery(run client.WorkflowRun) (chain escalation.Chain, ok bool) {
	answer, err := s.client.QueryWorkflow(s.t.Context(), run.GetID(), run.GetRunID(), workflows.ChainQuery)
	if err != nil || answer.Get(&chain) != nil {
		return escalation.Chain{}, false
	}
	return chain, true
}

// landlock is a part of Session.Sandbox for a session in a sandbox.
const landlock = "landlock (ABI "

// requireSandbox checks that the sessions ran in a Landlock sandbox. If the kernel has no Landlock, it skips the
// test.
func requireSandbox(t *testing.T, sessions ...escalation.Session) {
	t.Helper()
	for _, session := range sessions {
		if strings.Contains(session.Sandbox, "none: this kernel") {
			t.Skip(session.Sandbox)
		}
		require.Contains(t, session.Sandbox, landlock)
	}
}

// forRealCLIs runs a test on the newest release of the real CLI. In `make soak` it runs the test on all releases.
func forRealCLIs(t *testing.T, test func(t *testing.T, version claudesim.Version, cli string)) {
	t.Parallel()
	for _, version := range simtest.NewestVersions(t) {
		t.Run(simtest.Number(t, version), func(t *testing.T) {
			t.Parallel()
			test(t, version, simtest.RealCLI(t, version))
		})
	}
}
