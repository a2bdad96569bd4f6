package systemtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// These tests run whole conversations on a real Temporal server, with the stand-in for claude.

// talk is a conversation of one person under test.
type talk struct {
	*site
	name string
}

// talks returns a conversation with a name of its own.
func (s *site) talk() talk { return talk{s, nameOf(s.t)} }

func (c talk) id() string { return workflows.ConversationWorkflowID(c.name) }

// trySend sends a message, and begins the conversation if there is none.
func (c talk) trySend(ctx context.Context, messageID, text string, input workflows.ConversationInput) (int, error) {
	begin := c.client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: c.id(), TaskQueue: c.cfg.Worker.TaskQueue, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, workflows.ConversationWorkflow, input)
	update, err := c.client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: begin,
		UpdateOptions: client.UpdateWorkflowOptions{
			WorkflowID: c.id(), UpdateName: workflows.SendMessage, WaitForStage: client.WorkflowUpdateStageCompleted,
			Args: []any{escalation.TalkMessage{MessageID: messageID, Text: text, Actor: "ada"}},
		},
	})
	var sent workflows.Sent
	if err == nil {
		err = update.Get(ctx, &sent)
	}
	return sent.Turn, err
}

// send sends a message, and tries again while the server or the worker is away.
func (c talk) send(messageID, text string) int {
	c.t.Helper()
	for began := time.Now(); ; {
		ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
		turn, err := c.trySend(ctx, messageID, text, workflows.ConversationInput{})
		cancel()
		_, refused := errors.AsType[*temporal.ApplicationError](err)
		if err == nil {
			return turn
		}
		if refused || time.Since(began) > testTimeout {
			require.NoError(c.t, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// await waits until the records have the end of a turn.
func (c talk) await(turn int) escalation.TalkTurn {
	c.t.Helper()
	records := c.reader()
	for began := time.Now(); ; {
		found, err := records.TalkTurn(c.t.Context(), c.id(), turn)
		if err == nil && found.State.Final() {
			return found
		}
		require.Less(c.t, time.Since(began), testTimeout, "turn %d does not end: %v", turn, err)
		time.Sleep(20 * time.Millisecond)
	}
}

// say sends a message, and waits for its answer.
func (c talk) say(messageID, text string) escalation.TalkTurn {
	c.t.Helper()
	return c.await(c.send(messageID, text))
}

// end cancels the conversation, and waits for its end.
func (c talk) end() client.WorkflowRun {
	c.t.Helper()
	require.NoError(c.t, c.client.CancelWorkflow(c.t.Context(), c.id(), ""))
	run := c.client.GetWorkflow(c.t.Context(), c.id(), "")
	ctx, cancel := context.WithTimeout(c.t.Context(), testTimeout)
	defer cancel()
	require.True(c.t, temporal.IsCanceledError(run.Get(ctx, nil)), "the request is not lost with a new run")
	return run
}

// saying returns the turn of a model that answers prompts with a text.
func saying(prompt, reply string) claudesim.Turn {
	return claudesim.On(claudesim.Match{Prompt: prompt}, claudesim.Conclude(escalation.TalkReply{Reply: reply}))
}

// sessionsOf returns the recorded sessions of the conversation.
func (c talk) sessionsOf(records *store.Store) []escalation.Session {
	c.t.Helper()
	sessions, err := records.Chain(c.t.Context(), c.id())
	require.NoError(c.t, err)
	return sessions
}

// TestConversation holds a conversation of three turns. The second one fails.
func TestConversation(t *testing.T) {
	t.Parallel()
	persona := t.TempDir()
	for name, text := range map[string]string{"identity": "You are Bubba.", "soul": "Be brief.", "user": "Ada runs the homelab."} {
		require.NoError(t, os.WriteFile(filepath.Join(persona, name), []byte(text), 0o600))
	}
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "first?"}, claudesim.Conclude(escalation.TalkReply{
			Reply: "**one**", Proposals: []escalation.Proposal{{Kind: escalation.ProposeChain, Why: "to see", Services: []string{"jellyfin"}}},
			Memories: []escalation.MemoryProposal{{
				Kind: escalation.MemoryCorrection, Text: "the nas sleeps on Sundays", Subject: "sleep", Service: "nas",
			}},
		})),
		claudesim.On(claudesim.Match{Prompt: "second?"}, claudesim.Say("no structure")),
		saying("missing, or cannot be used", ""),
		saying("third?", "three")))
	s := startSite(t, startTemporal(t), environment(t, claude,
		"CLAUDEOPS_IDENTITY_FILE="+persona+"/identity", "CLAUDEOPS_SOUL_FILE="+persona+"/soul", "CLAUDEOPS_USER_FILE="+persona+"/user"))
	c := s.talk()
	first := c.say("m-1", "first?")
	require.Equal(t, escalation.TalkAnswered, first.State, first.Failure)
	require.Equal(t, "**one**", first.Reply)
	require.Len(t, first.Proposals, 2, "and one for the memory")
	require.Equal(t, escalation.ProposeMemory, first.Proposals[1].Kind)
	require.Len(t, first.Memories, 1)
	require.Empty(t, first.Note)
	second := c.say("m-2", "second?")
	require.Equal(t, escalation.TalkFailed, second.State)
	require.Contains(t, second.Failure, "no reply that can be read")
	require.Equal(t, 1, c.send("m-1", "first?"), "the same message")
	third := c.say("m-3", "third?")
	require.Equal(t, "three", third.Reply, third.Failure)

	records := s.records()
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(c.sessionsOf(records), func(s escalation.Session) bool { return s.EndedAt.IsZero() })
	}, testTimeout, 10*time.Millisecond, "a turn has its answer before its session's end is recorded")
	sessions := c.sessionsOf(records)
	require.Len(t, sessions, 3)
	for _, session := range sessions {
		require.Equal(t, escalation.PurposeTalk, session.Purpose)
		require.Equal(t, escalation.TriggerTalk, session.Trigger)
		require.Equal(t, escalation.TierObserve, session.Tier)
		require.Equal(t, "sonnet", session.Model)
		require.Positive(t, session.CostUSD)
	}
	require.Equal(t, sessions[0].ID, sessions[2].ParentID, "the turn that failed left no mark")
	recorded, err := records.TalkTurn(t.Context(), c.id(), 1)
	require.NoError(t, err)
	require.Contains(t, recorded.Context, "<voice>\nYou are Bubba.")
	require.Contains(t, recorded.Context, "This is the beginning of a conversation")
	require.Equal(t, "first?", recorded.Text, "the context is not in the stored message")
	recorded, err = records.TalkTurn(t.Context(), c.id(), 3)
	require.NoError(t, err)
	require.NotContains(t, recorded.Context, "This is the beginning of a conversation")

	requests := simtest.Requests(t, claude)
	last := requests[len(requests)-1]
	require.Len(t, last.Prompts(), 2, "the conversation goes on from the answer before")
	require.Contains(t, last.Prompts()[0], "first?")
	require.Contains(t, last.Prompts()[1], recorded.Context+"\n\nthird?")
	launches := simtest.Launches(t, claude)
	require.Contains(t, strings.Join(launches[0].Args, " "), "# How you behave\n\nBe brief.")
	incidents, err := records.Incidents(t.Context(), store.IncidentFilter{Since: time.Unix(0, 0)})
	require.NoError(t, err)
	require.Empty(t, incidents, "a turn that fails is no incident")
	recordHistory(t, s, c.end(), "conversation")
}

// TestConversationOfTwoClients sends 30 messages from two clients at once.
func TestConversationOfTwoClients(t *testing.T) {
	t.Parallel()
	claude := simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Conclude(escalation.TalkReply{Reply: "yes"}))))
	s := startSite(t, startTemporal(t), environment(t, claude))
	c := s.talk()
	const each = 15
	turns := make([][]int, 2)
	var sending sync.WaitGroup
	for number := range turns {
		sending.Go(func() {
			for i := range each {
				id := fmt.Sprintf("client-%d-%d", number, i)
				turns[number] = append(turns[number], c.send(id, "message "+id))
			}
		})
	}
	sending.Wait()
	all := slices.Concat(turns...)
	require.True(t, slices.IsSorted(turns[0]) && slices.IsSorted(turns[1]), "each client's messages keep their order")
	slices.Sort(all)
	for i, turn := range all {
		require.Equal(t, i+1, turn)
	}
	require.Equal(t, escalation.TalkAnswered, c.await(2*each).State)
	launches := simtest.Launches(t, claude)
	require.Len(t, launches, 2*each, "each message is answered once")
	for i := range 2 * each {
		recorded, err := s.records().TalkTurn(t.Context(), c.id(), i+1)
		require.NoError(t, err)
		require.Equal(t, escalation.TalkAnswered, recorded.State)
		require.Contains(t, launches[i].Stdin, recorded.Text, "in the order of the turns")
	}
	c.end()
}

// TestConversationStopped stops a turn that runs a command, and one that waits.
func TestConversationStopped(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "started")
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "slow?"}, claudesim.Bash("touch "+marker+"; sleep 300")),
		saying("", "yes")))
	s := startSite(t, startTemporal(t), environment(t, claude, "CLAUDEOPS_TIER1_TOOLS=Bash"))
	c := s.talk()
	c.say("m-0", "hello")
	slow, waiting, last := c.send("m-1", "slow?"), c.send("m-2", "wait?"), c.send("m-3", "last?")
	require.Eventually(t, exists(marker), testTimeout, 20*time.Millisecond)
	for _, turn := range []int{waiting, slow} {
		update, err := s.client.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
			WorkflowID: c.id(), UpdateName: workflows.StopTurn, WaitForStage: client.WorkflowUpdateStageCompleted,
			Args: []any{workflows.TurnRequest{Turn: turn, Actor: "bob"}},
		})
		require.NoError(t, err)
		require.NoError(t, update.Get(t.Context(), nil))
	}
	for _, turn := range []int{slow, waiting} {
		ended := c.await(turn)
		require.Equal(t, escalation.TalkStopped, ended.State)
		require.Contains(t, ended.Failure, "Stopped by bob")
	}
	require.Equal(t, escalation.TalkAnswered, c.await(last).State)
	sessions := c.sessionsOf(s.records())
	require.Len(t, sessions, 3, "the turn that waited had no session")
	require.Equal(t, escalation.SessionStopped, sessions[1].Status)
	require.Equal(t, sessions[0].ID, sessions[2].ParentID, "a turn that was stopped left no mark")
	recordHistory(t, s, c.end(), "conversation_stopped")
}

// TestConversationLost damages the transcript between two turns.
func TestConversationLost(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	for name, tt := range map[string]struct {
		damage func(t *testing.T, path string)
		note   string
		// history is the name under which the history is recorded; empty if it is not recorded.
		history string
	}{
		"deleted": {
			damage: func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
			note:   "neither on this host nor in the archive", history: "conversation_anew",
		},
		"emptied": {
			damage: func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 0)) },
			note:   "This is a new conversation",
		},
		"truncated": { // the CLI skips a broken last line
			damage: func(t *testing.T, path string) {
				info, err := os.Stat(path)
				require.NoError(t, err)
				require.NoError(t, os.Truncate(path, info.Size()-20))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claude := simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Conclude(escalation.TalkReply{Reply: "yes"}))))
			s := startSite(t, temporalServer, environment(t, claude, "CLAUDEOPS_TRANSCRIPTS=none"))
			c := s.talk()
			c.say("m-1", "remember the word plum")
			sessions := c.sessionsOf(s.records())
			tt.damage(t, conversationOf(s.cfg, sessions[0].SessionID))
			second := c.say("m-2", "which word?")
			require.Equal(t, escalation.TalkAnswered, second.State, second.Failure)
			recorded, err := s.records().TalkTurn(t.Context(), c.id(), 2)
			require.NoError(t, err)
			if tt.note == "" {
				require.Empty(t, second.Note)
				require.NotContains(t, recorded.Context, "the last turns with this person")
			} else {
				require.Contains(t, second.Note, tt.note)
				require.Contains(t, second.Note, "kept are the last turn in short")
				require.Contains(t, recorded.Context, "remember the word plum", "the new conversation knows the last turns in short")
			}
			third := c.say("m-3", "and now?")
			require.Empty(t, third.Note, "the conversation is alive again")
			recorded, err = s.records().TalkTurn(t.Context(), c.id(), 3)
			require.NoError(t, err)
			require.NotContains(t, recorded.Context, "This is the beginning")
			if tt.history != "" {
				recordHistory(t, s, c.end(), tt.history)
			}
		})
	}
}

// TestConversationFails checks the sentences for a provider that is away, a spent budget and a turn that takes too
// long.
func TestConversationFails(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	for name, tt := range map[string]struct {
		turn    claudesim.Turn
		env     []string
		want    string
		history string
	}{
		"login": {claudesim.Always(claudesim.Fail(401, "invalid x-api-key")), []string{"CLAUDEOPS_API_RETRIES=0"}, "refused the worker's key or login", ""},
		"day_budget": {
			saying("", "yes"), []string{"CLAUDEOPS_DAY_BUDGET_USD=0.000001"}, "a new day begins at 00:00 UTC", "conversation_day_budget",
		},
		"turn_budget": {claudesim.Always(claudesim.Bash("true")), []string{"CLAUDEOPS_TALK_BUDGET_USD=0.0001", "CLAUDEOPS_TIER1_TOOLS=Bash"}, "used up its budget", ""},
		"timeout":     {claudesim.Always(claudesim.Bash("sleep 300")), []string{"CLAUDEOPS_TALK_TIMEOUT=15s", "CLAUDEOPS_TIER1_TOOLS=Bash"}, "the time for a turn (15 s) is over", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claude := simtest.Install(t, claudesim.Play(tt.turn))
			s := startSite(t, temporalServer, environment(t, claude, tt.env...))
			c := s.talk()
			ended := c.say("m-1", "hello")
			require.Equal(t, escalation.TalkFailed, ended.State)
			require.Contains(t, ended.Failure, tt.want)
			run := c.end()
			if tt.history != "" {
				recordHistory(t, s, run, tt.history)
			}
		})
	}
}

// TestConversationAboutAChain forks the last session of a chain.
func TestConversationAboutAChain(t *testing.T) {
	t.Parallel()
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Bash("echo seen by tier 1"), claudesim.Conclude(allWell())),
		saying("why?", "because")))
	s := startSite(t, startTemporal(t), environment(t, claude, "CLAUDEOPS_TIER1_TOOLS=Bash"))
	run := s.start(nil)
	chain, err := s.finish(run)
	require.NoError(t, err)
	c := s.talk()
	turn, err := c.trySend(t.Context(), "m-1", "why?", workflows.ConversationInput{About: chain.ID})
	require.NoError(t, err)
	ended := c.await(turn)
	require.Equal(t, "because", ended.Reply, ended.Failure)
	requests := simtest.Requests(t, claude)
	last := requests[len(requests)-1]
	require.Contains(t, strings.Join(last.ToolResults(), "\n"), "seen by tier 1", "it has the conversation of the chain")
	require.Contains(t, last.Prompt(), "From here on you look and change nothing")
	sessions := c.sessionsOf(s.records())
	require.Equal(t, chain.Sessions[0].ID, sessions[0].ParentID)
	ended = c.say("m-2", "why?")
	require.Equal(t, "because", ended.Reply)
	recorded, err := s.records().TalkTurn(t.Context(), c.id(), 2)
	require.NoError(t, err)
	require.NotContains(t, recorded.Context, "a copy of the last session", "it was told once")
	after, err := s.records().Chain(t.Context(), chain.ID)
	require.NoError(t, err)
	require.Len(t, after, 1, "the chain's records are as before")
	c.end()

	bob := talk{s, c.name + "-bob"}
	_, err = bob.trySend(t.Context(), "m-1", "why?", workflows.ConversationInput{About: "chain-none"})
	require.Error(t, err)
}

// TestConversationAndChainsKeepApart runs a chain and a conversation beside each other, and tries to mix them.
func TestConversationAndChainsKeepApart(t *testing.T) {
	t.Parallel()
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Conclude(allWell())), saying("", "yes")))
	s := startSite(t, startTemporal(t), environment(t, claude))
	c := s.talk()
	c.say("m-1", "hello")
	run := s.start(nil)
	_, err := s.finish(run)
	require.NoError(t, err)
	require.Empty(t, c.say("m-2", "still there?").Note, "a chain does not touch the conversation")
	own := c.sessionsOf(s.records())
	require.Equal(t, own[0].ID, own[1].ParentID)
	for _, request := range simtest.Requests(t, claude) {
		if strings.Contains(request.Model, "haiku") {
			require.Len(t, request.Prompts(), 1, "a chain has a conversation of its own")
			require.NotContains(t, request.Prompts()[0], "hello")
		}
	}

	_, err = s.finish(s.startAs(c.id()+"-chain", nil))
	require.ErrorContains(t, err, "must not begin with conversation-")
	_, err = s.finish(s.startAs("chain-"+nameOf(t)+"-resumes", map[string]any{"resume_from": map[string]any{"session_id": own[0].SessionID}}))
	require.ErrorContains(t, err, "chains do not continue conversations of people")
	stranger, err := s.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: "chain-" + nameOf(t) + "-talk", TaskQueue: s.cfg.Worker.TaskQueue,
	}, workflows.ConversationWorkflow, workflows.ConversationInput{})
	require.NoError(t, err)
	require.ErrorContains(t, stranger.Get(t.Context(), nil), "must begin with conversation-")
	c.end()
}

// TestConversationGoesOnAfterItsEnd terminates a conversation. The next message begins it anew where it was.
func TestConversationGoesOnAfterItsEnd(t *testing.T) {
	t.Parallel()
	claude := simtest.Install(t, claudesim.Play(saying("", "yes")))
	s := startSite(t, startTemporal(t), environment(t, claude))
	c := s.talk()
	c.say("m-1", "hello")
	require.NoError(t, s.client.TerminateWorkflow(t.Context(), c.id(), "", "a test"))
	second := c.say("m-2", "still there?")
	require.Equal(t, 2, second.Turn)
	require.Empty(t, second.Note)
	require.Equal(t, 1, c.send("m-1", "hello"), "the records know the message")
	sessions := c.sessionsOf(s.records())
	require.Len(t, sessions, 2)
	require.Equal(t, sessions[0].ID, sessions[1].ParentID)
	c.end()
}
