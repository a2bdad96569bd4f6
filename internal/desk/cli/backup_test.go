package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// tableRows returns the number of rows of each table of the records.
func tableRows(t *testing.T, environ []string) []store.TableRows {
	t.Helper()
	shown := starter(t, environ, "db", "status", "--output", "json")
	require.Equal(t, program.ExitOK, shown.Code, shown.Stderr)
	var status store.Status
	require.NoError(t, json.Unmarshal([]byte(shown.Stdout), &status))
	return status.Tables
}

// awaitParked waits until `claudeops chain` shows the chain "parked" in the state that reached reports.
func awaitParked(t *testing.T, environ []string, reached func(escalation.Chain) bool) escalation.Chain {
	t.Helper()
	var chain escalation.Chain
	require.Eventually(t, func() bool {
		chain = escalation.Chain{}
		shown := starter(t, environ, "chain", "parked", "--output", "json")
		return shown.Code == program.ExitOK && json.Unmarshal([]byte(shown.Stdout), &chain) == nil && reached(chain)
	}, clitest.Timeout, clitest.Look)
	return chain
}

// TestBackupOfOneMachine backs up and restores a `claudeops up` with a chain at a gate, as docs/backup.md says. The
// original is gone, and the backup is restored to another path. So the conversation comes from the restored archive.
func TestBackupOfOneMachine(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts Temporal servers; not with -short")
	}
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "the disk is replaced"}, claudesim.Conclude(escalation.Verdict{
			Status: escalation.VerdictResolved, Summary: "all disks are well",
		})),
		claudesim.Always(claudesim.Bash("echo seen before the backup"), claudesim.Conclude(escalation.Verdict{
			Status: escalation.VerdictNeedsHuman, Summary: "a disk is dying", Services: []string{"nas"},
		}))))
	environ := clitest.Environment(t, "CLAUDEOPS_CLAUDE="+claude, "PATH="+os.Getenv("PATH"), "CLAUDEOPS_POLICY_FILE="+simtest.OpenPolicy(t),
		"CLAUDEOPS_TIER1_TOOLS=Bash", "CLAUDEOPS_GATE_TIMEOUT=72h")
	directory, elsewhere := t.TempDir(), t.TempDir()
	original, copied := filepath.Join(directory, "state"), filepath.Join(elsewhere, "state")
	on := func(state string, up upProcess) []string {
		return slices.Concat(environ, []string{"CLAUDEOPS_STATE_DIR=" + state, "TEMPORAL_ADDRESS=" + up.Temporal})
	}

	first := startUp(t, on(original, upProcess{}))
	began := starter(t, on(original, first), "run", "--id", "parked")
	require.Equal(t, program.ExitOK, began.Code, began.Stderr)
	before := awaitParked(t, on(original, first), func(chain escalation.Chain) bool { return chain.OpenGate() != nil })
	first.interrupt(t)
	rows := tableRows(t, on(original, first))

	backup := t.TempDir()
	simtest.RunSection(t, "backup.md", "### Back up the directories", backup, on(original, first))
	require.NoError(t, os.RemoveAll(directory))
	simtest.RunSection(t, "backup.md", "### Restore the directories", backup, on(copied, first))
	require.Equal(t, rows, tableRows(t, on(copied, first)))

	second := startUp(t, on(copied, upProcess{}))
	restored := on(copied, second)
	answered := starter(t, restored, "gate", "parked", "--action", "c", "--guidance", "the disk is replaced", "--actor", "ada")
	require.Equal(t, program.ExitOK, answered.Code, answered.Stderr)
	chain := awaitParked(t, restored, func(chain escalation.Chain) bool { return chain.Outcome != "" })
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
	require.Len(t, chain.Sessions, 2)
	require.Equal(t, before.Sessions, chain.Sessions[:1])
	require.Equal(t, before.CostUSD+chain.Sessions[1].CostUSD, chain.CostUSD) //nolint:testifylint // the sum of these two
	requests := simtest.Requests(t, claude)
	last := requests[len(requests)-1]
	require.Equal(t, requests[0].Prompts()[0], last.Prompts()[0], "it continues the archived conversation")
	require.Contains(t, strings.Join(last.ToolResults(), "\n"), "seen before the backup")
	complete := starter(t, restored, "db", "recover")
	require.Equal(t, program.ExitOK, complete.Code, complete.Stderr)
	require.Contains(t, complete.Stdout, "Chains and conversations asked: 1.\nThe records lack none of their sessions.\n")
	second.interrupt(t)

	// Now only Temporal's database is as old as the backup. The chain repeats its last session, under the same record.
	for _, file := range []string{"temporal.db", "temporal.db-wal", "temporal.db-shm"} {
		require.NoError(t, os.RemoveAll(filepath.Join(copied, file)))
	}
	unpack := exec.CommandContext(t.Context(), "tar", "-xzpf", filepath.Join(backup, "claudeops-backup.tar.gz"), "state/temporal.db")
	unpack.Dir = elsewhere
	output, err := unpack.CombinedOutput()
	require.NoError(t, err, string(output))
	third := startUp(t, on(copied, upProcess{}))
	restored = on(copied, third)
	answered = starter(t, restored, "gate", "parked", "--action", "c", "--guidance", "the disk is replaced", "--actor", "ada")
	require.Equal(t, program.ExitOK, answered.Code, answered.Stderr)
	again := awaitParked(t, restored, func(chain escalation.Chain) bool { return chain.Outcome != "" })
	require.Equal(t, escalation.OutcomeResolved, again.Outcome, again.Reason)
	require.Len(t, again.Sessions, 2)
	require.Equal(t, chain.Sessions[1].SessionID, again.Sessions[1].SessionID)
	require.True(t, again.Sessions[1].Interrupted, "it continues its own conversation")
	third.interrupt(t)
	rows = tableRows(t, restored)
	require.Contains(t, rows, store.TableRows{Table: "sessions", Rows: 2})
	require.Contains(t, rows, store.TableRows{Table: "replaced_reports", Rows: 1}, "both costs count")
}

// TestRecover loses all records of a chain that has ended, of one that waits at a gate, and of a conversation. `db
// recover` records their sessions and costs again, and says what is lost.
func TestRecover(t *testing.T) {
	t.Parallel()
	environ := startInstallation(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "be unwell"}, claudesim.Conclude(escalation.Verdict{
			Status: escalation.VerdictNeedsHuman, Summary: "a disk is dying", Services: []string{"nas"},
		})),
		answering("hello", escalation.TalkReply{Reply: "Hello."}),
		claudesim.Always(claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all is well"}))),
		"CLAUDEOPS_GATE_TIMEOUT=72h")
	said := starter(t, environ, "talk", "--message", "hello")
	require.Equal(t, program.ExitOK, said.Code, said.Stderr)
	ended := starter(t, environ, "run", "--id", "ended", "--wait")
	require.Equal(t, program.ExitOK, ended.Code, ended.Stderr)
	parked := starter(t, environ, "run", "--id", "parked", "--prompt", "be unwell")
	require.Equal(t, program.ExitOK, parked.Code, parked.Stderr)
	chain := awaitParked(t, environ, func(chain escalation.Chain) bool { return chain.OpenGate() != nil })

	require.Eventually(t, func() bool { // Temporal lists a chain a moment later
		listed := starter(t, environ, "chains").Stdout
		return strings.Contains(listed, "ended") && strings.Contains(listed, "parked")
	}, clitest.Timeout, clitest.Look)

	lost := slices.Concat(environ, []string{"CLAUDEOPS_DATABASE_URL=sqlite://" + filepath.Join(t.TempDir(), "records.db")})
	require.Equal(t, program.ExitOK, starter(t, lost, "db", "migrate").Code)
	require.Equal(t, program.ExitUsage, starter(t, lost, "db", "recover", "--since", "0s").Code)
	for _, want := range []string{
		`Sessions that the records lacked, and have again: 3 \(chains and conversations: 3, cost: \$0\.\d+\)\.\n`,
		`The records lack none of their sessions\.\n`,
	} {
		got := starter(t, lost, "db", "recover")
		require.Equal(t, program.ExitOK, got.Code, got.Stderr)
		require.Regexp(t, `^Chains and conversations asked: 3\.\n`+want+"What else .* is lost", got.Stdout)
	}
	costs := starter(t, lost, "costs")
	require.Equal(t, program.ExitOK, costs.Code, costs.Stderr)
	require.Equal(t, starter(t, environ, "costs").Stdout, costs.Stdout, "conversations cost what they did")
	shown := starter(t, lost, "incidents", "--output", "json")
	require.Equal(t, program.ExitOK, shown.Code, shown.Stderr)
	require.Contains(t, shown.Stdout, `"status": "waiting"`)
	require.Contains(t, shown.Stdout, chain.OpenGate().Reason)
}
