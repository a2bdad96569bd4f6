package systemtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// host is a machine with a home and a state directory of its own. It shares the database, which is a URL, and the
// archive with other hosts.
type host struct{ home, database, archive, claude string }

func (h host) environ(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.home, simtest.WorkersUser, "CLAUDEOPS_STATE_DIR=" + filepath.Join(h.home, "state"), "CLAUDEOPS_TASK_QUEUE=" + nameOf(t), "CLAUDEOPS_SANDBOX=off", "CLAUDEOPS_POLICY_FILE=" + simtest.OpenPolicy(t),
		"CLAUDEOPS_DATABASE_URL=" + h.database, "CLAUDEOPS_TRANSCRIPTS=" + h.archive, "CLAUDEOPS_CLAUDE=" + h.claude,
		"CLAUDEOPS_TIER1_TOOLS=Bash", "CLAUDEOPS_GATE_TIMEOUT=0s", "CLAUDEOPS_HEARTBEAT_INTERVAL=1s",
	}, more...)
}

// another returns a second host with a new home. It shares the database, the archive and claude with h.
func (h host) another(t *testing.T) host {
	t.Helper()
	h.home = t.TempDir()
	return h
}

func newHost(t *testing.T, claude, archive string) host {
	t.Helper()
	return host{home: t.TempDir(), database: newDatabase(t), archive: archive, claude: claude}
}

// loseHost removes all that a host has. Processes that its worker has left can still write there for a moment.
func loseHost(t *testing.T, home string) {
	t.Helper()
	require.Eventually(t, func() bool { return os.RemoveAll(home) == nil }, testTimeout, 20*time.Millisecond, "%s cannot be removed", home)
}

func exists(path string) func() bool {
	return func() bool { _, err := os.Stat(path); return err == nil }
}

// beforeTier2 is the point between the tiers at which a host is lost.
var beforeTier2 = before("OpenSession", 2)

// TestHostLostBetweenTiers runs Tier 1 on a host that is lost before Tier 2 begins.
func TestHostLostBetweenTiers(t *testing.T) {
	t.Parallel()
	temporalServer, address := startTemporalAt(t)
	for name, tt := range map[string]struct {
		archive func(t *testing.T) string
		// history is the name under which the chain's history is recorded; empty if it is not recorded.
		history string
		check   func(t *testing.T, chain escalation.Chain, requests []claudesim.Request)
	}{
		"archived": {
			archive: func(t *testing.T) string { return "file://" + t.TempDir() },
			check: func(t *testing.T, chain escalation.Chain, requests []claudesim.Request) {
				require.Len(t, chain.Sessions, 2)
				require.Equal(t, escalation.ContinuityResume, chain.Sessions[1].Continuity)
				first, last := requests[0], requests[len(requests)-1]
				require.Contains(t, last.Model, "sonnet")
				require.Len(t, last.Prompts(), 2)
				require.Equal(t, first.Prompts()[0], last.Prompts()[0], "Tier 2 knows what Tier 1 was told")
				require.Contains(t, strings.Join(last.ToolResults(), "\n"), "seen by tier 1", "and what it saw")
			},
		},
		"not_archived": {
			archive: func(*testing.T) string { return "none" }, history: "transcript_lost",
			check: func(t *testing.T, chain escalation.Chain, requests []claudesim.Request) {
				require.Len(t, chain.Sessions, 3)
				lost, again := chain.Sessions[1], chain.Sessions[2]
				require.Equal(t, escalation.SessionTranscriptLost, lost.Status)
				require.Contains(t, lost.Error, "neither on this host nor in the archive")
				require.Equal(t, escalation.ContinuityHandoff, again.Continuity)
				require.Equal(t, escalation.ReasonTranscriptLost, again.ContinuityReason)
				require.Equal(t, escalation.TierSafeRepair, again.Tier)
				last := requests[len(requests)-1]
				require.Len(t, last.Prompts(), 1)
				require.Contains(t, last.Prompts()[0], asksFor(2).Summary, "the handoff tells what Tier 1 concluded")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leaves := filepath.Join(t.TempDir(), "leaves")
			claude := simtest.Install(t, claudesim.Play(
				claudesim.On(claudesim.Match{Model: "haiku"},
					claudesim.Bash("echo seen by tier 1"), claudesim.Conclude(asksFor(2))),
				concluding("sonnet", resolved())))
			here := newHost(t, claude, tt.archive(t))
			queue := "CLAUDEOPS_TASK_QUEUE=lost_between_" + name
			first := startSite(t, connect(t, address, leaving(beforeTier2, leaves)), here.environ(t, queue))
			run := first.start(nil)
			require.Eventually(t, exists(leaves), testTimeout, 20*time.Millisecond)
			require.NoError(t, first.stop())
			loseHost(t, here.home)

			second := startSite(t, temporalServer, here.another(t).environ(t, queue))
			chain, err := second.finish(run)
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
			requireRecorded(t, second, chain)
			tt.check(t, chain, simtest.Requests(t, claude))
			if tt.history != "" {
				recordHistory(t, second, run, tt.history)
			}
		})
	}
}

// TestHostLostInATier loses a host in the middle of a tool call. Only the data that was archived while the tier ran
// remains.
func TestHostLostInATier(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	marker := filepath.Join(t.TempDir(), "started")
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "ended before its work was done"}, claudesim.Conclude(resolved())),
		claudesim.Always(claudesim.Bash("touch "+marker+"; sleep 300"))))
	archive := filepath.Join(t.TempDir(), "archive")
	here := newHost(t, claude, "file://"+archive)
	first := startSite(t, temporalServer, here.environ(t, "CLAUDEOPS_DRAIN_TIMEOUT=1s"))
	run := first.start(nil)
	require.Eventually(t, exists(marker), testTimeout, 50*time.Millisecond)
	began := time.Now()
	require.Eventually(t, func() bool { return len(objects(archive)) > 0 }, testTimeout, 50*time.Millisecond)
	t.Logf("archived %.1f s after the tool call began", time.Since(began).Seconds())

	// From now on the host cannot reach the archive, not even when it stops.
	kept := archive + "-kept"
	require.NoError(t, os.Rename(archive, kept))
	require.NoError(t, first.stop())
	loseHost(t, here.home)
	require.Empty(t, objects(archive))

	there := here.another(t)
	there.archive = "file://" + kept
	second := startSite(t, temporalServer, there.environ(t))
	chain, err := second.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
	require.Len(t, chain.Sessions, 1, "the same session went on")
	require.Equal(t, 2, chain.Sessions[0].Attempts)
	require.Equal(t, escalation.ReasonInterrupted, chain.Sessions[0].ContinuityReason)
	launches := simtest.Launches(t, claude)
	require.Len(t, launches, 2)
	require.Contains(t, launches[1].Args, "--resume")
	require.Contains(t, launches[1].Args, chain.Sessions[0].SessionID)
	require.Contains(t, launches[1].Stdin, "sleep 300", "the prompt names the call that was in flight")
	requests := simtest.Requests(t, claude)
	require.Equal(t, requests[0].Prompts()[0], requests[len(requests)-1].Prompts()[0], "the conversation itself goes on")
	requireRecorded(t, second, chain)
}

// TestArchiveAwayForAWhile starts a tier while the archive is unavailable, so that nobody knows whether it has a copy
// of the conversation. The tier must wait instead of starting a new conversation.
func TestArchiveAwayForAWhile(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	claude := simtest.Install(t, claudesim.Play(concluding("haiku", allWell())))
	archive := filepath.Join(t.TempDir(), "archive")
	s := startSite(t, temporalServer, newHost(t, claude, "file://"+archive).environ(t))
	require.NoError(t, os.Rename(archive, archive+"-away"))
	run := s.start(nil)
	require.Eventually(t, func() bool {
		description, err := s.client.DescribeWorkflowExecution(t.Context(), run.GetID(), run.GetRunID())
		if err != nil || len(description.GetPendingActivities()) != 1 {
			return false
		}
		return strings.Contains(description.GetPendingActivities()[0].GetLastFailure().GetMessage(), "archived copies")
	}, testTimeout, 50*time.Millisecond)
	require.Empty(t, simtest.Launches(t, claude))

	require.NoError(t, os.Rename(archive+"-away", archive))
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeHealthy, chain.Outcome)
	require.Len(t, simtest.Launches(t, claude), 1)
	require.Len(t, objects(archive), 1)
}

// objects lists the complete files of an archive.
func objects(archive string) []string {
	var found []string
	_ = filepath.WalkDir(archive, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".zst") {
			found = append(found, path)
		}
		return nil // ignore errors: a temporary file may vanish, and the archive may be missing
	})
	return found
}
