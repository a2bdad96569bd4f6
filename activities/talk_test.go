package activities_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
	"github.com/claudeops/claudeops/prompts"
)

// talkBook keeps one turn of a conversation, and has memories.
type talkBook struct {
	begun  escalation.TalkSession
	text   string
	reply  *escalation.TalkReply
	report *escalation.Report

	// after is that of the message, and earlier is the number of turns before it; 0 means 1.
	after   *int
	earlier int

	recalled memory.Recall
	proposed []escalation.MemoryProposal
	source   memory.Source
	away     error // the error of the memories
	ended    error // the error of KeepReply
	broken   bool  // makes TalkFacts panic
}

var (
	_ activities.TalkKeeper     = (*talkBook)(nil)
	_ activities.Memories       = (*talkBook)(nil)
	_ activities.MemoryProposer = (*talkBook)(nil)
)

func (b *talkBook) TalkTurn(context.Context, string, int) (escalation.TalkTurn, error) {
	return escalation.TalkTurn{Turn: 3, TalkMessage: escalation.TalkMessage{MessageID: "m-3", Text: "/how is nas?", Actor: "ada", After: b.after}}, nil
}

func (b *talkBook) TalkFacts(_ context.Context, _ string, _ time.Time, cold bool) (facts escalation.TalkFacts, err error) {
	if b.broken {
		panic("broken facts")
	}
	if cold {
		for turn := 1; turn <= max(b.earlier, 1); turn++ {
			facts.Recalled = append(facts.Recalled, escalation.TalkTurn{
				Turn: turn, TalkMessage: escalation.TalkMessage{Text: "earlier", Actor: "ada"},
			})
		}
	}
	return facts, nil
}

func (b *talkBook) BeginTurn(_ context.Context, of escalation.TalkSession, text string, _ time.Time) error {
	b.begun, b.text = of, text
	return nil
}

func (b *talkBook) KeepReply(_ context.Context, _ escalation.TalkSession, reply escalation.TalkReply, report escalation.Report) error {
	if b.ended != nil {
		return b.ended
	}
	b.reply, b.report = &reply, &report
	return nil
}

func (b *talkBook) AllowedCalls(context.Context, string) ([]string, error) {
	return []string{"call-1"}, nil
}

func (b *talkBook) KeptReport(context.Context, escalation.TalkSession) (*escalation.Report, error) {
	return b.report, nil
}

func (b *talkBook) RecallMemories(_ context.Context, recall memory.Recall) (memory.Brief, error) {
	b.recalled = recall
	return memory.Brief{Markdown: "- `nas` sleeps on Sundays"}, b.away
}

func (b *talkBook) ProposeMemories(_ context.Context, source memory.Source, proposals []escalation.MemoryProposal) ([]memory.Memory, error) {
	b.source, b.proposed = source, proposals
	var known []memory.Memory
	for i, one := range proposals {
		known = append(known, memory.Memory{
			ID: fmt.Sprint("memory-", i+1), Status: memory.StatusCandidate, Kind: one.Kind, Service: one.Service, Subject: one.Subject, Text: one.Text,
		})
	}
	return known, b.away
}

var errEnded = errors.New("ended")

func runTalk(
	t *testing.T, book *talkBook, agent *fakeAgent, input activities.RunTalkInput, past *activities.TierProgress,
) (activities.RunTalkResult, error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	tiers := newTiers(t, agent)
	tiers.Memories = book
	tiers.Talk = activities.Talker{
		Store: book, Proposals: book,
		IsUnknown: func(err error) bool { return errors.Is(err, errEnded) },
		Persona:   prompts.Persona{Identity: "You are Bubba."}, Project: "/srv",
	}
	env.RegisterActivity(tiers)
	if past != nil {
		env.SetHeartbeatDetails(*past)
	}
	input.ConversationID, input.Turn, input.SessionID = "conversation-ada", 3, ownID
	input.Policy = escalation.Policy{Tiers: []escalation.TierPolicy{{Model: "sonnet", Tools: []string{"Bash"}, BudgetUSD: 1}}}
	encoded, err := env.ExecuteActivity(tiers.RunTalk, input)
	var result activities.RunTalkResult
	if err == nil {
		require.NoError(t, encoded.Get(&result))
	}
	return result, err
}

const yes = `{"reply":"yes","memories":[{"kind":"correction","service":"nas","subject":"sleep","text":"it sleeps on Sundays"}]}`

// TestRunTalk answers a message in a new conversation, and in one that is alive.
func TestRunTalk(t *testing.T) {
	t.Parallel()
	for name, parent := range map[string]string{"new": "", "alive": parentID} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			book, agent := &talkBook{}, &fakeAgent{replies: []agentReply{finished(yes, 0.25)}}
			result, err := runTalk(t, book, agent, activities.RunTalkInput{ParentSessionID: parent}, nil)
			require.NoError(t, err)
			require.True(t, result.Replied)
			require.Equal(t, "yes", book.reply.Reply)
			require.InDelta(t, 0.25, book.report.CostUSD, 1e-9)
			run := agent.runs[0]
			require.True(t, run.First)
			require.Equal(t, parent, run.Resume)
			require.Equal(t, escalation.TierObserve, run.Tier)
			require.False(t, run.Repairs)
			require.Equal(t, escalation.TalkSchema, run.Schema)
			require.Equal(t, "reply", run.TextField)
			require.Contains(t, run.SystemPrompt, "# Who you are\n\nYou are Bubba.")
			require.Contains(t, run.SystemPrompt, "- what is granted to tier 1")
			require.Equal(t, book.text+"\n\n/how is nas?", run.Prompt, "a slash is no command, because the context comes first")
			require.Contains(t, book.text, "`nas` sleeps on Sundays")
			require.Equal(t, ownID, book.begun.SessionID)
			require.Equal(t, parent == "", result.Recalled == 1, "only a new conversation learns of the turns before")
			require.True(t, book.recalled.Matching)
			require.Equal(t, parent, book.recalled.ParentSessionID)
			require.Len(t, book.proposed, 1)
			require.Equal(t, memory.TrustOutput, book.source.Trust)
			require.Equal(t, escalation.ProposeMemory, book.reply.Proposals[0].Kind, "a person confirms it")
		})
	}
}

// TestRunTalkAgain runs a second attempt at a session.
func TestRunTalkAgain(t *testing.T) {
	t.Parallel()
	t.Run("that has replied", func(t *testing.T) {
		t.Parallel()
		book := &talkBook{report: &escalation.Report{Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.5}}}
		agent := &fakeAgent{}
		result, err := runTalk(t, book, agent, activities.RunTalkInput{}, nil)
		require.NoError(t, err)
		require.True(t, result.Replied)
		require.InDelta(t, 0.5, result.Report.CostUSD, 1e-9)
		require.Empty(t, agent.runs, "no answer is paid for twice")
	})
	t.Run("whose process died with the reply, after a call of which the guard does not know", func(t *testing.T) {
		t.Parallel()
		reply := finished(yes, 0.6).report
		reply.Calls = []string{"call-1", "call-2"}
		book, agent := &talkBook{}, &fakeAgent{
			conversations: map[string]bool{ownID: true}, concluded: map[string]*activities.AgentReport{ownID: &reply},
			replies: []agentReply{finished(yes, 0.25)},
		}
		_, err := runTalk(t, book, agent, activities.RunTalkInput{}, &activities.TierProgress{Spent: escalation.Report{Turns: 1}})
		require.NoError(t, err)
		require.Len(t, agent.runs, 1, "the agent is asked again, and its calls are compared with the decisions")
	})
	t.Run("whose process died with the reply", func(t *testing.T) {
		t.Parallel()
		reply := finished(yes, 0.6).report
		reply.Calls = []string{"call-1"}
		book, agent := &talkBook{}, &fakeAgent{
			conversations: map[string]bool{ownID: true}, concluded: map[string]*activities.AgentReport{ownID: &reply},
		}
		past := activities.TierProgress{Spent: escalation.Report{Turns: 1, Cost: escalation.Cost{CostUSD: 0.5}, Tokens: escalation.TokenUsage{Input: 10}}}
		result, err := runTalk(t, book, agent, activities.RunTalkInput{ParentSessionID: parentID}, &past)
		require.NoError(t, err)
		require.Empty(t, agent.runs, "no answer is paid for twice")
		require.Equal(t, "yes", book.reply.Reply)
		require.InDelta(t, 0.6, result.Report.CostUSD, 1e-9, "what the heartbeat had not told is added")
		require.Equal(t, escalation.TokenUsage{Input: 10, Output: 5}, result.Report.Tokens)
		require.True(t, result.Report.Interrupted)
	})
	t.Run("that was in the middle of a call", func(t *testing.T) {
		t.Parallel()
		book, agent := &talkBook{}, &fakeAgent{replies: []agentReply{finished(yes, 0.25)}, conversations: map[string]bool{ownID: true}}
		past := activities.TierProgress{
			Spent: escalation.Report{Turns: 1, Cost: escalation.Cost{CostUSD: 0.5}}, InFlight: []activities.ToolCall{{Name: "Bash", Input: "docker logs nas"}},
		}
		result, err := runTalk(t, book, agent, activities.RunTalkInput{ParentSessionID: parentID}, &past)
		require.NoError(t, err)
		require.False(t, agent.runs[0].First, "two agents never work on one conversation")
		require.Equal(t, ownID, agent.runs[0].Resume)
		require.Contains(t, agent.runs[0].Prompt, "docker logs nas")
		require.NotContains(t, agent.runs[0].Prompt, "how is nas", "the conversation has the message")
		require.InDelta(t, 0.5, agent.runs[0].Policy.BudgetUSD, 1e-9)
		require.InDelta(t, 0.75, result.Report.CostUSD, 1e-9)
		require.True(t, result.Report.Interrupted)
	})
	t.Run("that has read nothing", func(t *testing.T) {
		t.Parallel()
		book, agent := &talkBook{}, &fakeAgent{replies: []agentReply{finished(yes, 0.25)}, conversations: map[string]bool{ownID: true}}
		_, err := runTalk(t, book, agent, activities.RunTalkInput{}, &activities.TierProgress{})
		require.NoError(t, err)
		require.Contains(t, agent.runs[0].Prompt, "ended before it was done")
		require.Contains(t, agent.runs[0].Prompt, "how is nas?")
	})
}

// TestRunTalkAsksAgain checks replies that are missing or invalid.
func TestRunTalkAsksAgain(t *testing.T) {
	t.Parallel()
	book, agent := &talkBook{away: errors.New("away")}, &fakeAgent{replies: []agentReply{finished(`{"reply":""}`, 0.25), finished(yes, 0.25)}}
	result, err := runTalk(t, book, agent, activities.RunTalkInput{}, nil)
	require.NoError(t, err, "a conversation works without memories")
	require.True(t, result.Replied)
	require.Contains(t, agent.runs[1].Prompt, "reply is empty")
	require.Equal(t, ownID, agent.runs[1].Resume)
	require.False(t, agent.runs[1].First)
	require.Empty(t, agent.runs[1].Policy.Tools)
	require.InDelta(t, 0.5, book.report.CostUSD, 1e-9)

	book, agent = &talkBook{}, &fakeAgent{replies: []agentReply{finished("", 0.25), finished("", 0.25)}}
	result, err = runTalk(t, book, agent, activities.RunTalkInput{}, nil)
	require.NoError(t, err)
	require.False(t, result.Replied)
	require.Nil(t, book.reply)
	require.Equal(t, escalation.EndingNoResult, result.Report.Ending)
}

// TestRunTalkFails checks the causes that the workflow gets.
func TestRunTalkFails(t *testing.T) {
	t.Parallel()
	refused := agentReply{report: activities.AgentReport{Report: escalation.Report{Status: escalation.SessionFailed, Ending: escalation.EndingAccount}}}
	result, err := runTalk(t, &talkBook{}, &fakeAgent{replies: []agentReply{refused}}, activities.RunTalkInput{}, nil)
	require.NoError(t, err)
	require.Equal(t, escalation.EndingAccount, result.Report.Ending, "no attempt follows")

	_, err = runTalk(t, &talkBook{broken: true}, &fakeAgent{}, activities.RunTalkInput{}, nil)
	require.ErrorContains(t, err, "broken facts", "a panic ends the activity, and not the worker")

	late := &talkBook{ended: errEnded}
	_, err = runTalk(t, late, &fakeAgent{replies: []agentReply{finished(yes, 0.25)}}, activities.RunTalkInput{}, nil)
	var ended *temporal.ApplicationError
	require.ErrorAs(t, err, &ended)
	require.True(t, ended.NonRetryable(), "the turn has ended, and the agent must not run again")

	away := agentReply{report: activities.AgentReport{Report: escalation.Report{
		Status: escalation.SessionFailed, Error: "overloaded", Ending: escalation.EndingProvider,
	}}}
	_, err = runTalk(t, &talkBook{}, &fakeAgent{replies: []agentReply{away}}, activities.RunTalkInput{}, &activities.TierProgress{Failures: 2})
	var failure *temporal.ApplicationError
	require.ErrorAs(t, err, &failure)
	require.Equal(t, escalation.EndingProvider, activities.SpentBefore(err).Ending)
	require.True(t, failure.NonRetryable(), "a person waits, so the third failure is the last")
}

// TestRecalledTurns checks that a message that goes back to an earlier answer recalls nothing that came later.
func TestRecalledTurns(t *testing.T) {
	t.Parallel()
	for want, after := range map[int]*int{2: nil, 1: new(1), 0: new(0)} {
		book, agent := &talkBook{after: after, earlier: 2}, &fakeAgent{replies: []agentReply{finished(yes, 0.25)}}
		result, err := runTalk(t, book, agent, activities.RunTalkInput{}, nil)
		require.NoError(t, err)
		require.Equal(t, want, result.Recalled)
	}
}
