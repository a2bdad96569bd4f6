//go:build linux

package systemtest

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // registers the driver

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// absence makes the database of a site unavailable. The function that it returns makes the database available again.
type absence func(t *testing.T, s *site) (back func())

// outage makes the database of one site unavailable.
type outage struct {
	// settings select the database.
	settings []string
	// unreachable makes every read and write fail.
	unreachable absence
	// unwritable makes every write fail. Reads still work.
	unwritable absence
}

// outages returns a function for each kind of database. It prepares the outage of a site.
func outages() map[string]func(t *testing.T) outage {
	return map[string]func(t *testing.T) outage{
		"": func(t *testing.T) outage {
			needsFile(t)
			return outage{nil, sqliteUnreachable, sqliteUnwritable}
		},
		"postgres_": postgresOutage,
	}
}

// postgresOutage creates a PostgreSQL database behind a line, which it cuts to make the database unreachable.
func postgresOutage(t *testing.T) outage {
	t.Helper()
	database := postgrestest.Database(t)
	line := postgrestest.StartLine(t, database)
	return outage{
		settings: []string{"CLAUDEOPS_DATABASE_URL=" + line.URL() + "&lock_timeout=500"},
		unreachable: func(*testing.T, *site) func() {
			line.Cut()
			return line.Mend
		},
		unwritable: func(t *testing.T, _ *site) func() {
			db, err := sql.Open("postgres", database)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			transaction, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			_, err = transaction.ExecContext(t.Context(), "LOCK TABLE sessions, events, service_locks, incidents IN EXCLUSIVE MODE")
			require.NoError(t, err)
			return func() { require.NoError(t, transaction.Rollback()) }
		},
	}
}

// sqliteUnreachable makes every read and write fail. It holds the locks of SQLite's shared memory:
// https://www.sqlite.org/walformat.html#locks. The locks belong to the open file and not to the process, because this
// process has the database open, too. One connection stays open. When the last connection is closed, SQLite replaces
// the shared memory, and the locks are lost.
func sqliteUnreachable(t *testing.T, s *site) (back func()) {
	t.Helper()
	open, err := openDatabase(t, s).Conn(t.Context())
	require.NoError(t, err)
	var records int
	require.NoError(t, open.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM sessions").Scan(&records))
	shared, err := os.OpenFile(s.cfg.State.DatabaseFile()+"-shm", os.O_RDWR, 0)
	require.NoError(t, err)
	locks := unix.Flock_t{Type: unix.F_WRLCK, Start: 120, Len: 8}
	require.Eventually(t, func() bool { return unix.FcntlFlock(shared.Fd(), unix.F_OFD_SETLK, &locks) == nil },
		testTimeout, time.Millisecond, "somebody always has a lock")
	return func() { require.NoError(t, errors.Join(shared.Close(), open.Close())) }
}

// sqliteUnwritable makes every write fail by holding SQLite's write lock. Reads still work.
func sqliteUnwritable(t *testing.T, s *site) (back func()) {
	t.Helper()
	database := openDatabase(t, s)
	transaction, err := database.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	return func() { require.NoError(t, transaction.Rollback()) }
}

// openDatabase opens the database like another program would.
func openDatabase(t *testing.T, s *site) *sql.DB {
	t.Helper()
	database, err := sql.Open("sqlite", "file://"+s.cfg.State.DatabaseFile()+"?_txlock=exclusive&_pragma=busy_timeout(60000)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close()) })
	return database
}

// awayStep is a moment of a chain at which the database becomes unavailable.
type awayStep struct {
	// writesOnly leaves reads possible.
	writesOnly bool
	// reached reports whether the chain has reached the moment. Nil means before the chain starts.
	reached func(records *store.Store, dir string) bool
	// holds is the model whose tier must not end before the database is unavailable.
	holds string
	// waitsFor lists activities. One of them must then wait for the database.
	waitsFor []string
}

func awaySteps() map[string]awayStep {
	inTier := func(model string) func(*store.Store, string) bool {
		return func(_ *store.Store, dir string) bool { return exists(filepath.Join(dir, model))() }
	}
	return map[string]awayStep{
		"before_the_policy":       {false, nil, "", []string{"LoadPolicy"}},
		"before_the_first_record": {true, nil, "", []string{"OpenSession"}},
		"in_tier_1":               {false, inTier("haiku"), "haiku", []string{"KnownIncidents"}},
		// One activity stores the end of Tier 1 and the record of Tier 2.
		"between_tiers": {true, inTier("haiku"), "haiku", []string{"OpenSession"}},
		"at_the_end":    {false, inTier("sonnet"), "sonnet", []string{"CloseSession"}},
	}
}

// of returns what makes the database unavailable at the step.
func (a awayStep) of(o outage) absence {
	if a.writesOnly {
		return o.unwritable
	}
	return o.unreachable
}

// takeAwayAt starts a chain and makes the database unavailable at the step. back makes it available again.
func takeAwayAt(t *testing.T, s *site, step awayStep, o outage, dir string) (run client.WorkflowRun, back func()) {
	t.Helper()
	if step.reached == nil {
		back = step.of(o)(t, s)
		return s.start(nil), back
	}
	records := s.records()
	hold := heldBy(dir, step.holds)
	require.NoError(t, os.WriteFile(hold, nil, 0o600))
	run = s.start(nil)
	for began := time.Now(); !step.reached(records, dir); time.Sleep(20 * time.Millisecond) {
		require.Less(t, time.Since(began), testTimeout, "the chain does not get there")
	}
	back = step.of(o)(t, s)
	require.NoError(t, os.Remove(hold))
	return run, back
}

// heldBy returns the path of a file. While the file exists, the model's tier does not end.
func heldBy(dir, model string) string { return filepath.Join(dir, "hold-"+model) }

// TestFaultDatabaseAway makes the database unavailable at each step of a chain, until an activity has failed because
// of that.
func TestFaultDatabaseAway(t *testing.T) {
	t.Parallel()
	requireDatabaseAwayDelays(t, 0)
}

// requireDatabaseAwayDelays makes the database unavailable at each step of a chain for at least the given time. The
// chain must wait, run each tier once, and be recorded completely.
func requireDatabaseAwayDelays(t *testing.T, atLeast time.Duration) {
	t.Helper()
	temporalServer := startTemporal(t)
	for kind, prepare := range outages() {
		for name, step := range awaySteps() {
			t.Run(kind+name, func(t *testing.T) {
				t.Parallel()
				requireAwayDelays(t, temporalServer, step, prepare(t), atLeast)
			})
		}
	}
}

func requireAwayDelays(t *testing.T, temporalServer client.Client, step awayStep, o outage, atLeast time.Duration) {
	t.Helper()
	dir := t.TempDir()
	work := func(model string) claudesim.Reply {
		return claudesim.Bash(fmt.Sprintf("echo >> %s; while [ -e %s ]; do sleep 0.05; done", filepath.Join(dir, model), heldBy(dir, model)))
	}
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Model: "haiku"}, work("haiku"), claudesim.Conclude(asksFor(2))),
		claudesim.On(claudesim.Match{Model: "sonnet"}, work("sonnet"), claudesim.Conclude(resolved()))))
	settings := slices.Concat(toolsAllowed(), []string{"CLAUDEOPS_TIER2_TOOLS=Bash"}, o.settings)
	s, _ := startWorkingSite(t, temporalServer, environment(t, claude, settings...))
	run, back := takeAwayAt(t, s, step, o, dir)
	went := time.Now()
	waited := requireWaiting(t, s, run, step.waitsFor...)
	time.Sleep(atLeast - time.Since(went))
	described, err := s.client.DescribeWorkflowExecution(t.Context(), run.GetID(), run.GetRunID())
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, described.GetWorkflowExecutionInfo().GetStatus(), "the chain waits")
	away := time.Since(went)
	back()

	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
	require.Len(t, simtest.Launches(t, claude), 2)
	require.Len(t, chain.Sessions, 2)
	for _, model := range []string{"haiku", "sonnet"} {
		did, err := os.ReadFile(filepath.Join(dir, model))
		require.NoError(t, err)
		require.Equal(t, "\n", string(did), "%s did its work once", model)
	}
	requireRecorded(t, s, chain)
	t.Logf("faults: database away %s: %.1f s, %s waited, chain %s %.1f s after it was back, 2 tiers in 2 processes",
		nameOf(t), away.Seconds(), waited, chain.Outcome, (time.Since(went) - away).Seconds())
}

// TestFaultDatabaseAwayAtTheStart starts a worker while the database is unavailable. When the database is back, the
// worker must work without a restart.
func TestFaultDatabaseAwayAtTheStart(t *testing.T) {
	t.Parallel()
	for kind, prepare := range outages() {
		t.Run(kind+"database", func(t *testing.T) {
			t.Parallel()
			o := prepare(t)
			claude := simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Conclude(allWell()))))
			s, book := newSite(t, startTemporal(t), environment(t, claude, o.settings...))
			back := o.unreachable(t, s)
			s.begin()
			require.Eventually(t, func() bool {
				return book.count("cannot settle what ended chains have left behind") > 0 && book.count("msg=working") > 0
			}, testTimeout, 20*time.Millisecond)
			back()
			chain, err := s.finish(s.start(nil))
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeHealthy, chain.Outcome, chain.Reason)
		})
	}
}

// requireWaiting waits until one of the activities has failed and is pending again, and returns its name.
func requireWaiting(t *testing.T, s *site, run client.WorkflowRun, activities ...string) (found string) {
	t.Helper()
	require.Eventually(t, func() bool {
		described, err := s.client.DescribeWorkflowExecution(t.Context(), run.GetID(), run.GetRunID())
		pending := described.GetPendingActivities()
		at := slices.IndexFunc(pending, func(a *workflowpb.PendingActivityInfo) bool {
			return slices.Contains(activities, a.GetActivityType().GetName()) && a.GetLastFailure() != nil
		})
		if err != nil || at < 0 {
			return false
		}
		found = pending[at].GetActivityType().GetName()
		return true
	}, testTimeout, 20*time.Millisecond, "none of %v", activities)
	return found
}

// TestFaultDatabaseAwayCancelled cancels chains that wait for the database before any agent has run. They must end
// while the database is unavailable, and leave no open record.
func TestFaultDatabaseAwayCancelled(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	for kind, prepare := range outages() {
		for name, step := range map[string]awayStep{
			"before_the_policy": {waitsFor: []string{"LoadPolicy"}},
			"while_opening":     {writesOnly: true, waitsFor: []string{"OpenSession"}},
		} {
			t.Run(kind+name, func(t *testing.T) {
				t.Parallel()
				o := prepare(t)
				claude := simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Say("never"))))
				s, _ := startWorkingSite(t, temporalServer, environment(t, claude, o.settings...))
				back := step.of(o)(t, s)
				run := s.start(nil)
				requireWaiting(t, s, run, step.waitsFor...)
				require.NoError(t, s.client.CancelWorkflow(t.Context(), run.GetID(), run.GetRunID()))
				sessions := requireCancelledBeforeItRan(t, s, run, back)
				require.Empty(t, simtest.Launches(t, claude), "nothing has run")
				if kind == "" {
					recordHistory(t, s, run, "cancelled_"+name)
				}
				t.Logf("faults: database away, chain cancelled %s: %d records, all closed", name, len(sessions))
			})
		}
	}
}

// TestFaultCancelledWhileOpening cancels a chain while an activity opens the chain's first record. The record must be
// closed. The chain begins with Tier 2, because a local activity opens the record of a first look.
func TestFaultCancelledWhileOpening(t *testing.T) {
	t.Parallel()
	_, address := startTemporalAt(t)
	claude := simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Say("never"))))
	opening, cancelled := make(chan struct{}), make(chan struct{})
	hold := newFaultAt(before("OpenSession", 1), func() error {
		close(opening)
		<-cancelled
		return nil
	})
	s, _ := startWorkingSite(t, connect(t, address, hold), environment(t, claude))
	run := s.start(map[string]any{"start_tier": 2})
	<-opening
	require.NoError(t, s.client.CancelWorkflow(t.Context(), run.GetID(), run.GetRunID()))
	close(cancelled)
	sessions := requireCancelledBeforeItRan(t, s, run, func() {})
	require.Len(t, sessions, 1, "the activity has opened it")
	requireRecorded(t, s, s.query(run))
	require.Empty(t, simtest.Launches(t, claude), "nothing has run")
	recordHistory(t, s, run, "cancelled_while_it_is_back")
}

// requireCancelledBeforeItRan waits for the end of a cancelled chain and makes the database available again. It
// returns the chain's records, which must all be closed.
func requireCancelledBeforeItRan(t *testing.T, s *site, run client.WorkflowRun, back func()) []escalation.Session {
	t.Helper()
	_, err := s.finish(run)
	require.True(t, temporal.IsCanceledError(err), "got %v", err)
	back()
	chain := s.query(run)
	require.Equal(t, escalation.OutcomeAborted, chain.Outcome)
	sessions, err := s.records().Chain(t.Context(), chain.ID)
	require.NoError(t, err)
	for i := range sessions {
		require.Equal(t, escalation.SessionStopped, sessions[i].Status)
	}
	return sessions
}
