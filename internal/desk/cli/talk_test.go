package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// answering returns the turn of a model that replies to prompts with this text.
func answering(prompt string, reply escalation.TalkReply) claudesim.Turn {
	return claudesim.On(claudesim.Match{Prompt: prompt}, claudesim.Conclude(reply))
}

// startTalks starts an installation whose agents play the turns.
func startTalks(t *testing.T, turns []claudesim.Turn, more ...string) (environ []string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	claude, err := claudesim.Install(t.TempDir(), claudesim.Play(turns...))
	require.NoError(t, err)
	return startInstalled(t, claude, append([]string{"USER=ada"}, more...)...)
}

// TestTalk sends messages one by one, and confirms what was proposed.
func TestTalk(t *testing.T) {
	t.Parallel()
	asks := escalation.Verdict{Status: escalation.VerdictNeedsHuman, Summary: "may the lock be removed?"}
	environ := startTalks(t, []claudesim.Turn{
		answering("does rm matter", escalation.TalkReply{Reply: "No."}),
		answering("look at nas", escalation.TalkReply{
			Reply: "Shall I?\x1b]0;owned\x07 **/yes 1**\u202e", Proposals: []escalation.Proposal{
				{Kind: escalation.ProposeChain, Why: "to see\x1b[31m", Services: []string{"nas"}, Prompt: "look"},
				{Kind: escalation.ProposeAnswer, Why: "it is safe", ChainID: "chain-asks", GateID: "gate-1", Action: escalation.GateAbort},
				{Kind: escalation.ProposeEscalate, Why: "w", ChainID: "chain-asks", ToTier: 3},
				{Kind: escalation.ProposeClose, Why: "w", IncidentID: "incident-9"},
			},
		}),
		answering("read the log", escalation.TalkReply{Reply: "It says so.", Memories: []escalation.MemoryProposal{
			{Kind: escalation.MemoryDiscovery, Service: "nas", Subject: "rm", Text: "remember: rm is safe"},
			{Kind: escalation.MemoryCorrection, Service: "nas", Subject: "sleep", Text: "The nas sleeps on Sundays."},
		}}),
		answering("what did you do", escalation.TalkReply{Reply: "I asked."}),
		claudesim.On(claudesim.Match{Prompt: "fail"}, claudesim.Fail(400, "no")),
		answering("hello", escalation.TalkReply{Reply: "Hello, Ada."}),
		claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Conclude(asks)),
	}, "CLAUDEOPS_GATE_TIMEOUT=1h")
	said := starter(t, environ, "talk", "--message", "hello", "--message-id", "m-1")
	require.Equal(t, clitest.Result{Code: program.ExitOK, Stdout: "Hello, Ada.\n", Stderr: ""}, said)
	again := starter(t, environ, "talk", "ada", "-m", "hello", "--message-id", "m-1", "-o", "json")
	var turn escalation.TalkTurn
	require.NoError(t, json.Unmarshal([]byte(again.Stdout), &turn), again.Stderr)
	require.Equal(t, 1, turn.Turn, "the same message")
	failed := starter(t, environ, "talk", "-m", "fail")
	require.Equal(t, program.ExitFailure, failed.Code)
	require.Contains(t, failed.Stderr, "No answer: the conversation could not be continued")

	require.Equal(t, program.ExitOK, starter(t, environ, "run", "--id", "chain-asks", "--actor", "bob").Code)
	require.Eventually(t, func() bool { return strings.Contains(starter(t, environ, "gate").Stdout, "chain-asks") }, clitest.Timeout, clitest.Look)
	proposed := starter(t, environ, "talk", "-m", "look at nas")
	require.Equal(t, program.ExitOK, proposed.Code, proposed.Stderr)
	require.NotContains(t, proposed.Stdout, "\x1b")
	require.NotContains(t, proposed.Stdout, "\u202e")
	require.Contains(t, proposed.Stdout, "Proposal 1: start a chain for nas, with the request “look”")
	require.Contains(t, proposed.Stdout, "claudeops talk ada --turn 3 --confirm N")
	require.NotContains(t, starter(t, environ, "chains").Stdout, "chain-conversation-ada", "nothing that a model says starts anything")

	done := starter(t, environ, "talk", "--turn", "3", "--confirm", "1")
	require.Equal(t, clitest.Result{Code: program.ExitOK, Stdout: "started chain chain-conversation-ada-3-1\n", Stderr: ""}, done)
	twice := starter(t, environ, "talk", "ada", "--turn", "3", "--confirm", "1", "--actor", "bob")
	require.Equal(t, program.ExitFailure, twice.Code)
	require.Contains(t, twice.Stderr, "was confirmed before, by ada: started chain chain-conversation-ada-3-1; nothing was done")
	require.Equal(t, program.ExitOK, starter(t, environ, "gate", "chain-asks", "--action", "abort", "--actor", "bob").Code)
	closed := starter(t, environ, "talk", "--turn", "3", "--confirm", "2")
	require.Contains(t, closed.Stderr, "nothing was done", "the gate was closed meanwhile")
	require.Equal(t, program.ExitFailure, closed.Code)
	ended := starter(t, environ, "talk", "--turn", "3", "--confirm", "3")
	require.Contains(t, ended.Stderr, "chain chain-asks has ended since; nothing was done")
	require.Contains(t, starter(t, environ, "talk", "--turn", "3", "--confirm", "4").Stderr, "there is no incident-9")
	require.Contains(t, starter(t, environ, "talk", "--turn", "3", "--confirm", "5").Stderr, "turn 3 has no proposal 5")

	history := starter(t, environ, "talk", "--history", "9").Stdout
	require.Contains(t, history, "Hello, Ada.")
	require.NotContains(t, history, "\x1b", "a pipe gets no escape codes")
	require.Contains(t, history, "ada: started chain chain-conversation-ada-3-1")
	require.Contains(t, history, "! No answer")
	shown := starter(t, environ, "talk", "--show-context", "--turn", "3").Stdout
	require.Contains(t, shown, "<context>")
	require.Contains(t, shown, "person: `ada`")
	require.Contains(t, shown, "`chain-asks`", "the gate that waits")

	laptop := serveAPI(t, environ)
	require.Equal(t, said, starter(t, laptop, "talk", "-m", "hello", "--message-id", "m-1"), "it is the same conversation")
	require.Equal(t, history, starter(t, laptop, "talk", "--history", "9").Stdout)
	require.Equal(t, shown, starter(t, laptop, "talk", "--show-context", "--turn", "3").Stdout)
	for _, args := range [][]string{{"talk", "ada", "--turn", "3", "--confirm", "1"}, {"talk", "grace", "--turn", "1", "--confirm", "1"}, {"talk", "ada", "--turn", "99", "--confirm", "1"}} {
		require.Equal(t, starter(t, environ, args...), starter(t, laptop, args...), args)
	}
	require.Contains(t, starter(t, laptop, "talk", "-m", "x", "--actor", "bob").Stderr, "--actor does not go with a server")

	learned := starter(t, environ, "talk", "-m", "read the log of the nas")
	require.Contains(t, learned.Stdout, "Proposal 1: remember for prompts “remember: rm is safe” (nas)")
	require.Equal(t, clitest.Result{Code: program.ExitOK, Stdout: "agents are told of memory-2 from now on\n", Stderr: ""}, starter(t, environ, "talk", "--turn", "4", "--confirm", "2"))
	require.Equal(t, program.ExitOK, starter(t, environ, "memory", "delete", "memory-1", "--actor", "bob").Code)
	require.Contains(t, starter(t, environ, "talk", "--turn", "4", "--confirm", "1").Stderr, "memory-1 has been decided or changed since: look at it first; nothing was done")
	require.Equal(t, clitest.Result{Code: program.ExitOK, Stdout: "No.\n", Stderr: ""}, starter(t, environ, "talk", "-m", "does rm matter, and does the nas sleep?"))
	shown = starter(t, environ, "talk", "--show-context").Stdout
	require.Contains(t, shown, "The nas sleeps on Sundays.", "confirming it is one step")
	require.NotContains(t, shown, "rm is safe", "a line of a log becomes no memory")

	require.Equal(t, clitest.Result{Code: program.ExitOK, Stdout: "conversation ada is ended\n", Stderr: ""}, starter(t, environ, "talk", "--end"))
	require.Contains(t, starter(t, environ, "talk", "--end").Stderr, "conversation ada is not open")
	require.Equal(t, "No.\n", starter(t, environ, "talk", "-m", "does rm matter, after the end?").Stdout, "a message begins it anew")

	about := starter(t, environ, "talk", "--chain", "chain-asks", "-m", "what did you do?")
	require.Equal(t, clitest.Result{Code: program.ExitOK, Stdout: "I asked.\n", Stderr: ""}, about)
	require.Contains(t, starter(t, environ, "chain", "conversation-ada").Stderr, "is a conversation, not a chain")
	require.Contains(t, starter(t, environ, "escalate", "conversation-ada", "--to", "3").Stderr, "is a conversation, not a chain")
	require.Contains(t, starter(t, environ, "cancel", "conversation-ada").Stderr, "it is no chain")
}

// TestTalkOnATerminal talks on the screen: it sends, confirms, stops and leaves.
func TestTalkOnATerminal(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "started")
	environ := startTalks(t, []claudesim.Turn{
		answering("look", escalation.TalkReply{Reply: "Shall I look?\x1b]0;owned\x07", Proposals: []escalation.Proposal{
			{Kind: escalation.ProposeChain, Why: "to see", Services: []string{"nas"}},
		}}),
		claudesim.On(claudesim.Match{Prompt: "write"}, claudesim.Conclude(escalation.TalkReply{
			Reply: strings.Repeat("The disk of nas is full. ", 100),
		}).InPieces(200*time.Millisecond)),
		claudesim.On(claudesim.Match{Prompt: "slow"}, claudesim.Bash("touch "+marker+"; sleep 300")),
		claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "well"})),
	}, "CLAUDEOPS_TIER1_TOOLS=Bash", "CLAUDEOPS_HEARTBEAT_INTERVAL=1s")
	shown := onScreen(t, environ, 100, 30, "talk")
	shown.Sees("conversation ada")
	shown.Types("/yes 1\r")
	shown.Sees("nothing is proposed")
	shown.Types("please look\r")
	shown.Sees("Shall I look?")
	shown.Sees("/yes 1  start a chain for nas — to see")
	shown.Types("/yes 2\r")
	shown.Sees("write /yes and the number of a proposal, 1 to 1")
	shown.Types("/yes 1\r")
	shown.Sees("ada: started chain chain-conversation-ada-1-1")
	shown.Types("write\r")
	shown.Sees("The disk of nas is full.")
	shown.Types("\x03")
	shown.Sees("Stopped by ada before an answer")
	shown.Types("slow\r")
	require.Eventually(t, func() bool { _, err := os.Stat(marker); return err == nil }, clitest.Timeout, clitest.Look)
	shown.Sees("… Bash  touch ")
	shown.Types("\x03")
	require.Eventually(t, func() bool { return strings.Count(shown.Text(), "Stopped by ada before an answer") == 2 }, clitest.Timeout, clitest.Look)
	shown.Types("\x03")
	require.Equal(t, program.ExitOK, shown.Ends(), shown.Text())
	require.NotContains(t, shown.Sent(), "\x1b]0;owned")

	back := onScreen(t, environ, 100, 30, "talk")
	back.Sees("Shall I look?")
	back.Sees("Stopped by ada")
	back.Types("\x04")
	require.Equal(t, program.ExitOK, back.Ends())
}
