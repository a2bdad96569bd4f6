package store_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/alert"
	"github.com/claudeops/claudeops/internal/escalation/memory"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
)

// fillTables records something in every table.
func fillTables(t *testing.T, s *store.Store) {
	t.Helper()
	first := mustOpen(t, s, opening("nightly", "a", 0))
	session := repair("nightly", "b", noon.Add(time.Minute))
	session.ParentID = first.ID
	admit(t, s, session, about("web", "db"), strict())
	_, err := s.Charge(bounded(t), escalation.Charge{
		ChainID: "nightly", SessionID: "b", Call: "toolu_1", At: noon, Cooldowns: strict().Cooldowns,
		Actions: []escalation.CallAction{{Kind: escalation.ActionRestart, Service: "web"}},
	})
	require.NoError(t, err)
	wrong := completed(0.1)
	wrong.Verdict = &escalation.Verdict{
		Status: escalation.VerdictEscalate, Services: []string{"web"}, Summary: "it is \x00 slow – since 1/3 of a day",
	}
	mustClose(t, s, "a", wrong, noon)
	mustClose(t, s, "b", completed(1.0/3), noon.Add(2*time.Minute))
	mustClose(t, s, "b", completed(0.5), noon.Add(3*time.Minute))
	for _, key := range []string{"one", "two"} {
		require.NoError(t, s.AppendEvents(bounded(t), []escalation.Event{event("nightly", key)}))
	}
	require.NoError(t, s.AppendDecisions(bounded(t), []escalation.CallDecision{decision("nightly", "b", "toolu_1")}))
	require.NoError(t, s.RecordDelivery(bounded(t), "key", "ntfy-1", noon))
	alerts := newAlertDesk(t, s, alert.Rules{})
	alerts.send(t, alert.Firing, alertOf("s1", "Down"))
	require.Len(t, alerts.plan(t, time.Minute).Chains, 1)
	require.NoError(t, s.Claim(bounded(t), here, noon))
	_, err = s.AddMemory(bounded(t), fact("web", "start order", "the mount comes up late"), by("ada"))
	require.NoError(t, err)
	_, err = s.RecallMemories(bounded(t), memory.Recall{ChainID: "nightly", SessionID: "b", At: noon})
	require.NoError(t, err)
	stored, err := s.AddMessage(bounded(t), "conversation-ada", talkMessage("m-1"), 0, noon)
	require.NoError(t, err)
	require.NoError(t, s.ConfirmProposal(bounded(t), "conversation-ada", stored.Turn, escalation.Confirmation{Proposal: 1, Actor: "ada", At: noon}))
	claimed, err := s.ClaimDuty(bounded(t), "cleaning", "host", noon, noon.Add(time.Hour))
	require.NoError(t, err)
	require.True(t, claimed)
	_, _, err = s.TrustClock(bounded(t), noon)
	require.NoError(t, err)
	mustOpen(t, s, opening("conversation-ada", "old", 0))
	mustClose(t, s, "old", completed(0.1), noon)
	require.NoError(t, s.RemoveTalkSession(bounded(t), "old"))
}

// records returns the Store's records of the chain of fillTables.
func records(t *testing.T, s *store.Store) (all []any) {
	t.Helper()
	sessions, err := s.Chain(bounded(t), "nightly")
	require.NoError(t, err)
	events, err := s.Events(bounded(t), "nightly")
	require.NoError(t, err)
	ledger, err := s.Ledger(bounded(t), time.Time{})
	require.NoError(t, err)
	reports, err := s.ReplacedReports(bounded(t), "b")
	require.NoError(t, err)
	incidents, err := s.Incidents(bounded(t), store.IncidentFilter{Since: noon.Add(-time.Hour)})
	require.NoError(t, err)
	found, err := s.Memories(bounded(t), store.MemoryFilter{Search: "mount late"})
	require.NoError(t, err)
	require.Len(t, found, 1, "the copy can be searched")
	return []any{sessions, events, ledger, reports, incidents, decisions(t, s, "nightly"), locks(t, s), found}
}

func TestCopy(t *testing.T) {
	t.Parallel()
	later := noon.Add(time.Hour)
	file := filepath.Join(t.TempDir(), "ops.db")
	source := openFile(t, file)
	fillTables(t, source)
	want := records(t, source)
	database := postgrestest.Database(t)
	target := openURL(t, database)

	_, err := source.Copy(bounded(t), target, noon.Add(time.Minute))
	require.ErrorIs(t, err, store.ErrConflict)
	require.ErrorContains(t, err, "stop all workers")

	// The copy fails at one of the last tables. The target must stay empty, and a later copy must succeed.
	postgrestest.Exec(t, database, `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$`)
	postgrestest.Exec(t, database, "CREATE TRIGGER fail BEFORE INSERT ON calls FOR EACH ROW EXECUTE FUNCTION fail()")
	_, err = source.Copy(bounded(t), target, later)
	require.ErrorContains(t, err, "table calls: ")
	require.Equal(t, "0", postgrestest.Query(t, database, "SELECT COUNT(*) FROM sessions"))
	postgrestest.Exec(t, database, "DROP TRIGGER fail ON calls")

	copied, err := source.Copy(bounded(t), target, later)
	require.NoError(t, err)
	require.False(t, slices.ContainsFunc(copied.Tables, func(table store.TableRows) bool { return table.Rows == 0 }), "%v", copied.Tables)
	require.InDelta(t, 0.6, copied.CostUSD, 1e-9)
	require.Equal(t, want, records(t, target))
	_, err = source.Copy(bounded(t), target, later)
	require.ErrorIs(t, err, store.ErrConflict)
	require.ErrorContains(t, err, "the target has 2 rows in table sessions")

	// New rows get the same numbers in the copy and in the source.
	require.Equal(t, mustOpen(t, source, opening("next", "c", 0)), mustOpen(t, target, opening("next", "c", 0)))

	back := openFile(t, filepath.Join(t.TempDir(), "back.db"))
	again, err := target.Copy(bounded(t), back, later)
	require.NoError(t, err)
	require.Equal(t, int64(3), again.Tables[0].Rows)
	require.Equal(t, want, records(t, back))
	require.Equal(t, mustOpen(t, source, opening("next", "d", 0)), mustOpen(t, back, opening("next", "d", 0)))
}

func TestInspect(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ops.db")
	_, err := store.Inspect(bounded(t), file)
	require.ErrorContains(t, err, "there is no database")
	require.NoFileExists(t, file)
	database := postgrestest.Database(t)
	empty, err := store.InspectPostgres(bounded(t), database)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 7}, []int64{empty.Schema, empty.Known})
	require.Empty(t, empty.Tables)
	require.Equal(t, "0", postgrestest.Query(t, database, "SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'"), "it changes nothing")

	fillTables(t, openFile(t, file))
	fillTables(t, openURL(t, database))
	inSQLite, err := store.Inspect(bounded(t), file)
	require.NoError(t, err)
	inPostgres, err := store.InspectPostgres(bounded(t), database)
	require.NoError(t, err)
	require.Equal(t, inSQLite.Tables, inPostgres.Tables)
	require.Contains(t, inSQLite.Server, "SQLite 3.")
	require.Contains(t, inPostgres.Server, "PostgreSQL 1")
	require.Equal(t, file, inSQLite.Database)
	require.Contains(t, inPostgres.Database, "postgres:///tmp/")
	require.Positive(t, min(inSQLite.SizeBytes, inPostgres.SizeBytes))
}
