package systemtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// TestConversationBesideACycle lets a cycle of a schedule and a chain that an alert starts run while a turn runs.
// Neither sees the other.
func TestConversationBesideACycle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	began, goes := filepath.Join(dir, "began"), filepath.Join(dir, "goes")
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Bash("echo seen by a chain"), claudesim.Conclude(allWell())),
		claudesim.On(claudesim.Match{Prompt: "slow?"}, claudesim.Bash("touch "+began+"; while [ ! -e "+goes+" ]; do sleep 0.05; done"),
			claudesim.Conclude(escalation.TalkReply{Reply: "yes"})),
		saying("", "yes")))
	s := startSite(t, startTemporal(t), environment(t, claude, "CLAUDEOPS_TIER1_TOOLS=Bash"))
	c := s.talk()
	c.say("m-1", "remember the word plum")
	require.Equal(t, 2, c.send("m-2", "slow?"))
	require.Eventually(t, exists(began), testTimeout, 20*time.Millisecond)

	cycle := s.cycle("beside-"+nameOf(t), nil)
	var result workflows.CycleResult
	require.NoError(t, cycle.Get(t.Context(), &result))
	require.Equal(t, escalation.OutcomeHealthy, result.Outcome)
	alert, err := s.finish(s.start(map[string]any{"prompt": "the disk is full"}))
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeHealthy, alert.Outcome, alert.Reason)
	require.NoError(t, os.WriteFile(goes, nil, 0o600))
	require.Equal(t, "yes", c.await(2).Reply)
	require.Empty(t, c.say("m-3", "and now?").Note)

	own := c.sessionsOf(s.records())
	require.Len(t, own, 3)
	require.Equal(t, own[1].ID, own[2].ParentID)
	for _, request := range simtest.Requests(t, claude) {
		said := strings.Join(append(request.Prompts(), request.ToolResults()...), "\n")
		if strings.Contains(request.Model, "haiku") {
			require.Len(t, request.Prompts(), 1)
			require.NotContains(t, said, "plum")
			require.NotContains(t, said, "slow?")
		} else {
			require.NotContains(t, said, "seen by a chain")
			require.NotContains(t, said, "the disk is full")
		}
	}
	c.end()
}

// TestConversationWithANewIdentity changes the identity file between two turns. The next worker's sessions have the new
// one, in the same conversation.
func TestConversationWithANewIdentity(t *testing.T) {
	t.Parallel()
	identity := filepath.Join(t.TempDir(), "identity")
	require.NoError(t, os.WriteFile(identity, []byte("You are Bubba."), 0o600))
	claude := simtest.Install(t, claudesim.Play(saying("", "yes")))
	temporalServer := startTemporal(t)
	environ := environment(t, claude, "CLAUDEOPS_IDENTITY_FILE="+identity)
	first := startSite(t, temporalServer, environ)
	first.talk().say("m-1", "hello")
	require.NoError(t, first.stop())
	require.NoError(t, os.WriteFile(identity, []byte("You are Ada's butler."), 0o600))
	second := startSite(t, temporalServer, environ)
	ended := second.talk().say("m-2", "who are you?")
	require.Equal(t, "yes", ended.Reply, ended.Failure)
	require.Empty(t, ended.Note, "the conversation goes on")
	launches := simtest.Launches(t, claude)
	require.Contains(t, launches[1].Stdin, "<voice>\nYou are Ada's butler.")
	require.Contains(t, strings.Join(launches[1].Args, " "), "# Who you are\n\nYou are Ada's butler.")
	require.NotContains(t, strings.Join(launches[1].Args, " "), "Bubba")
	second.talk().end()
}

// TestConversationWithRestoredRecords restores records that lack a turn that was answered. The message is not answered
// again, the person is told, and the conversation goes on from that answer.
func TestConversationWithRestoredRecords(t *testing.T) {
	t.Parallel()
	needsFile(t)
	claude := simtest.Install(t, claudesim.Play(saying("", "yes")))
	temporalServer := startTemporal(t)
	environ := environment(t, claude)
	first := startSite(t, temporalServer, environ)
	first.talk().say("m-1", "one?")
	backup := filepath.Join(t.TempDir(), "records.db")
	_, err := openSQL(t, first.cfg).ExecContext(t.Context(), "VACUUM INTO '"+backup+"'")
	require.NoError(t, err)
	first.talk().say("m-2", "two?")
	require.NoError(t, first.stop())

	second := startSite(t, temporalServer, append(environ, "CLAUDEOPS_DATABASE_URL=sqlite://"+backup))
	c := second.talk()
	require.Equal(t, 2, c.send("m-2", "two?"), "the conversation knows the message")
	_, err = c.records().TalkTurn(t.Context(), c.id(), 2)
	require.ErrorIs(t, err, store.ErrNotFound)
	third := c.say("m-3", "three?")
	require.Equal(t, 3, third.Turn, "no number is given twice")
	require.Equal(t, "yes", third.Reply, third.Failure)
	require.Empty(t, third.Note)
	launches := simtest.Launches(t, claude)
	require.Len(t, launches, 3, "each message was answered once")
	requests := simtest.Requests(t, claude)
	require.Contains(t, strings.Join(requests[2].Prompts(), "\n"), "two?", "it goes on from the lost answer")
	c.end()
}
