package systemtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// lackedSessions is the beginning of the line that a worker logs when it has recorded sessions again.
const lackedSessions = "the records lacked sessions that Temporal has"

// asksAgain is a scenario in which Tier 2 asks for a person, twice if the person's guidance is "the second time".
func asksAgain() claudesim.Scenario {
	return claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "the second time"}, claudesim.Conclude(needsPerson())).Named("asks again"),
		claudesim.On(claudesim.Match{Prompt: "the last time"}, claudesim.Conclude(resolved())).Named("resolves"),
		claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Bash("echo seen by tier 1"), claudesim.Conclude(asksFor(2))),
		concluding("sonnet", needsPerson()))
}

// continues answers at a gate that the session continues.
func (s *site) continues(chainID, gateID, guidance string) {
	s.t.Helper()
	_, err := s.resolve(chainID, escalation.GateAnswer{GateID: gateID, Action: escalation.GateContinue, Actor: "anna", Guidance: guidance})
	require.NoError(s.t, err)
}

// TestTeamRestoresABackup backs up the records and the archive of a chain at a gate, as docs/backup.md says. Then the
// host, the database and the archive are lost. The chain continues with the restored ones on another host.
func TestTeamRestoresABackup(t *testing.T) {
	t.Parallel()
	tools := postgrestest.Tools(t)
	temporalServer := startTemporal(t)
	claude := simtest.Install(t, asksAgain())
	here, backup, lost := newHost(t, claude, "file://"+t.TempDir()), t.TempDir(), postgrestest.Database(t)
	first := startSite(t, temporalServer, here.environ(t, "CLAUDEOPS_DATABASE_URL="+lost, "CLAUDEOPS_GATE_TIMEOUT=72h"))
	run := first.start(nil)
	first.awaitGate(run.GetID(), "gate-1")
	records := first.records()
	require.Eventually(t, func() bool { // the backup has the gate's opening, too
		events, err := records.Events(t.Context(), run.GetID())
		return err == nil && slices.ContainsFunc(events, func(e escalation.Event) bool { return e.Kind == escalation.EventGateOpened })
	}, testTimeout, 10*time.Millisecond)
	page := func(heading, database, archive string) {
		simtest.RunSection(t, "backup.md", heading, backup, []string{
			"PATH=" + tools + string(filepath.ListSeparator) + os.Getenv("PATH"), "BACKUP=" + backup,
			"CLAUDEOPS_DATABASE_URL=" + database, "ARCHIVE=" + strings.TrimPrefix(archive, "file://"),
		})
	}

	page("### Back up the records and the archive", lost, here.archive)
	require.NoError(t, first.stop())
	loseHost(t, here.home)
	require.NoError(t, os.RemoveAll(strings.TrimPrefix(here.archive, "file://")))
	postgrestest.Exec(t, lost, "DROP SCHEMA public CASCADE")
	there := here.another(t)
	there.archive = "file://" + filepath.Join(t.TempDir(), "archive")
	restored := postgrestest.Database(t)
	page("### Restore the records and the archive", restored, there.archive)

	second, book := startLoggedSite(t, temporalServer, there.environ(t, "CLAUDEOPS_DATABASE_URL="+restored, "CLAUDEOPS_GATE_TIMEOUT=72h"))
	second.continues(run.GetID(), "gate-1", "the last time")
	chain, err := second.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
	require.Len(t, chain.Sessions, 3)
	require.Positive(t, chain.CostUSD)
	requireRecorded(t, second, chain)
	requests := simtest.Requests(t, claude)
	last := requests[len(requests)-1]
	require.Equal(t, requests[0].Prompts()[0], last.Prompts()[0], "it continues the archived conversation")
	require.Contains(t, strings.Join(last.ToolResults(), "\n"), "seen by tier 1")
	require.Zero(t, book.count(lackedSessions))
}

// TestRecordsFromBeforeTheLastSession restores records that lack the chain's last session. The next session records it
// again.
func TestRecordsFromBeforeTheLastSession(t *testing.T) {
	t.Parallel()
	needsFile(t)
	temporalServer := startTemporal(t)
	environ := environment(t, simtest.Install(t, asksAgain()), "CLAUDEOPS_GATE_TIMEOUT=72h", "CLAUDEOPS_TIER1_TOOLS=Bash")
	first := startSite(t, temporalServer, environ)
	run := first.start(nil)
	first.awaitGate(run.GetID(), "gate-1")
	backup := filepath.Join(t.TempDir(), "records.db")
	_, err := openSQL(t, first.cfg).ExecContext(t.Context(), "VACUUM INTO '"+backup+"'")
	require.NoError(t, err)
	first.continues(run.GetID(), "gate-1", "the second time")
	first.awaitGate(run.GetID(), "gate-2")
	require.NoError(t, first.stop())

	second, book := startLoggedSite(t, temporalServer, append(environ, "CLAUDEOPS_DATABASE_URL=sqlite://"+backup))
	known, err := second.records().Chain(t.Context(), run.GetID())
	require.NoError(t, err)
	require.Len(t, known, 2, "the backup lacks the third session")
	second.continues(run.GetID(), "gate-2", "the last time")
	chain, err := second.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
	require.Len(t, chain.Sessions, 4)
	requireRecorded(t, second, chain)
	require.Equal(t, 1, book.count(lackedSessions))
}

// TestRecordsFromBeforeARunningSession loses all records while a session runs. The session continues, its restart is
// charged, and its end is recorded.
func TestRecordsFromBeforeARunningSession(t *testing.T) {
	t.Parallel()
	needsFile(t)
	temporalServer := startTemporal(t)
	tools := installPrograms(t, "docker")
	environ := environment(t, simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "ended before its work was done"}, claudesim.Bash("docker restart web"), claudesim.Conclude(resolved())),
		concluding("haiku", asksFor(2)),
		claudesim.Always(claudesim.Bash("docker restart web"), claudesim.Conclude(resolved()).After(time.Hour)))),
		append(tools.settings(), "CLAUDEOPS_DRAIN_TIMEOUT=1s")...)
	first := startSite(t, temporalServer, environ)
	run := first.start(nil)
	require.Eventually(t, func() bool { return len(tools.called()) == 1 }, testTimeout, 20*time.Millisecond)
	require.NoError(t, first.stop())

	empty := "CLAUDEOPS_DATABASE_URL=sqlite://" + filepath.Join(t.TempDir(), "records.db")
	second, book := startLoggedSite(t, temporalServer, append(environ, empty))
	chain, err := second.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
	require.Len(t, tools.called(), 2, "the guard permits the restart")
	requireRecorded(t, second, chain)
	require.Equal(t, 1, book.count(lackedSessions))
	var charged int
	row := openSQL(t, second.cfg).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM ledger WHERE call_id <> '' AND service = 'web'")
	require.NoError(t, row.Scan(&charged))
	require.Equal(t, 1, charged)
}
