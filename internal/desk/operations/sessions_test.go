package operations

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

// secret has the form of a secret that is masked.
const secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"

// said returns a line of a transcript.
func said(uuid, role string, at time.Time, content any) string {
	text, err := json.Marshal(map[string]any{
		"type": role, "uuid": uuid, "timestamp": at, "message": map[string]any{
			"id": "msg-" + uuid, "model": map[string]string{"assistant": "haiku"}[role], "content": content,
			"usage": map[string]int{"input_tokens": 10, "output_tokens": 5},
		},
	})
	if err != nil {
		panic(err)
	}
	return string(text) + "\n"
}

// converse writes this host's copy of a conversation.
func (s *stage) converse(sessionID, text string) {
	s.t.Helper()
	dir := s.config.ConversationsDir()
	require.NoError(s.t, os.MkdirAll(dir, 0o700))
	require.NoError(s.t, os.WriteFile(filepath.Join(dir, sessionID+".jsonl"), []byte(text), 0o600))
}

// archive saves this host's copy of a conversation in the archive, and removes it.
func (s *stage) archive(sessionID string) {
	s.t.Helper()
	archive, err := supervisor.OpenArchive(s.t.Context(), s.config)
	require.NoError(s.t, err)
	path := filepath.Join(s.config.ConversationsDir(), sessionID+".jsonl")
	saved, err := archive.Copy(sessionID, path)
	require.NoError(s.t, err)
	_, err = saved.Save(s.t.Context())
	require.NoError(s.t, err)
	require.NoError(s.t, archive.Close())
	require.NoError(s.t, os.Remove(path))
}

// TestSession shows a session that has resumed another one, with everything that is recorded of it.
func TestSession(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	parent := s.open(chaintest.Conversation(1), chaintest.Noon.Add(-time.Hour), nil)
	s.close(parent, ended(0.1, escalation.VerdictEscalate, "web"))
	own := s.open(chaintest.Conversation(2), chaintest.Noon, func(session *escalation.Session) {
		session.ChainID, session.ParentID, session.Tier, session.Model = parent.ChainID, parent.ID, escalation.TierSafeRepair, "sonnet"
		session.Continuity, session.Scope = escalation.ContinuityResume, []string{"web"}
	})
	s.close(own, escalation.Report{Status: escalation.SessionFailed, Cost: escalation.Cost{CostUSD: 0.2}, Error: "its worker died"})
	report := ended(0.3, escalation.VerdictResolved, "web")
	report.Verdict.Summary = "The token was " + secret
	report.Verdict.Actions = []escalation.Action{{Kind: escalation.ActionRestart, Service: "web", Succeeded: true}}
	s.close(own, report)
	child := s.open(chaintest.Conversation(3), chaintest.Noon.Add(time.Hour), func(session *escalation.Session) { session.ParentID = own.ID })
	require.NoError(t, s.records.AppendDecisions(t.Context(), []escalation.CallDecision{
		{ChainID: own.ChainID, SessionID: own.SessionID, Call: "1", Tool: "Bash", Input: `{"command":"ls"}`, Allowed: true, At: chaintest.Noon},
		{ChainID: own.ChainID, SessionID: own.SessionID, Call: "2", Tool: "Bash", Input: `{"command":"cat ` + secret + `"}`, At: chaintest.Noon},
	}))
	require.NoError(t, s.records.AppendEvents(t.Context(), []escalation.Event{
		{Key: "1", ChainID: own.ChainID, SessionID: own.SessionID, Kind: escalation.EventSessionReused, Message: "tier 2 continues", At: chaintest.Noon},
		{Key: "2", ChainID: own.ChainID, SessionID: parent.SessionID, Kind: escalation.EventSessionEnded, Message: "no", At: chaintest.Noon},
	}))
	first := said("a", "user", chaintest.Noon.Add(-time.Hour), "look")
	s.converse(parent.SessionID, first)
	s.archive(parent.SessionID)
	s.converse(own.SessionID, first+said("b", "user", chaintest.Noon, "repair")+
		said("c", "assistant", chaintest.Noon, []map[string]any{
			{"type": "text", "text": "I look.\x1b[31m\u202e"},
			{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": map[string]string{"command": "echo " + secret}},
		})+
		said("d", "user", chaintest.Noon, []map[string]any{
			{"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": "denied"},
		}))

	detail, err := s.operations.Sessions.Get(t.Context(), own.ID)
	require.NoError(t, err)
	require.Equal(t, parent.ID, detail.Parent.Number)
	require.Equal(t, []SessionRef{{
		Number: child.ID, ChainID: child.ChainID, Tier: 1, Model: "haiku", Status: escalation.SessionRunning,
		Continuity: escalation.ContinuityFresh, Reason: escalation.ReasonFirstTier,
	}}, detail.Children)
	require.Equal(t, []string{"2", "1"}, []string{detail.Calls[0].Call, detail.Calls[1].Call}, "the denied one first")
	require.Equal(t, [2]int{1, 1}, [2]int{detail.Denied, detail.Allowed})
	require.Len(t, detail.Events, 1)
	require.Equal(t, []PastAttempt{
		{At: chaintest.Noon, Why: "tier 2 continues"},
		{At: chaintest.Noon.Add(time.Minute), Why: "the report failed was replaced after a reset of the chain: its worker died", CostUSD: 0.2},
	}, detail.Attempts)
	require.Len(t, detail.Actions, 1)
	require.Equal(t, own.ID, detail.Actions[0].Session)
	require.Nil(t, detail.Attempt)

	talk := detail.Conversation
	require.Empty(t, talk.Problem)
	require.Equal(t, 1, talk.Inherited)
	require.Equal(t, []ModelUse{{Model: "haiku", Messages: 1, Tokens: escalation.TokenUsage{Input: 10, Output: 5}, CostUSD: 0.3}}, talk.Models)
	require.Len(t, talk.Messages, 3)
	require.Equal(t, Message{Number: 2, At: chaintest.Noon, Role: RoleUser, Text: "repair"}, talk.Messages[0])
	require.Equal(t, "I look.[31m", talk.Messages[1].Text)
	require.Equal(t, "Bash", talk.Messages[1].Calls[0].Name)
	require.Equal(t, []MessageResult{{CallID: "toolu_1", Text: "denied", IsError: true}}, talk.Messages[2].Results)
	text, err := json.Marshal(detail)
	require.NoError(t, err)
	require.NotContains(t, string(text), secret[4:])
	leftovers, err := filepath.Glob(filepath.Join(s.config.State.Dir, ".reading-*"))
	require.NoError(t, err)
	require.Empty(t, leftovers)

	_, err = s.operations.Sessions.Get(t.Context(), 99)
	require.EqualError(t, err, "there is no session #99")
	require.Equal(t, KindNotFound, KindOf(err))
}

// TestSessionWithoutConversation shows sessions whose conversation, or whose parent's, is gone.
func TestSessionWithoutConversation(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	parent := s.open(chaintest.Conversation(1), chaintest.Noon.Add(-time.Hour), nil)
	own := s.open(chaintest.Conversation(2), chaintest.Noon, func(session *escalation.Session) {
		session.ParentID, session.Continuity = parent.ID, escalation.ContinuityResume
	})
	other := s.open("no UUID", chaintest.Noon, nil)
	s.converse(own.SessionID, said("a", "user", chaintest.Noon.Add(-time.Minute), "look")+said("b", "user", chaintest.Noon, "repair")+"garbage\n")

	detail, err := s.operations.Sessions.Get(t.Context(), parent.ID)
	require.NoError(t, err)
	require.Contains(t, detail.Conversation.Problem, "the conversation is neither on this host nor in the archive")
	require.Empty(t, detail.Conversation.Messages)
	detail, err = s.operations.Sessions.Get(t.Context(), own.ID)
	require.NoError(t, err)
	require.Contains(t, detail.Conversation.Problem, "The conversation of the parent cannot be read.")
	require.Equal(t, [3]int{1, 1, 1}, [3]int{len(detail.Conversation.Messages), detail.Conversation.Inherited, detail.Conversation.Unreadable})
	detail, err = s.operations.Sessions.Get(t.Context(), other.ID)
	require.NoError(t, err)
	require.Contains(t, detail.Conversation.Problem, "no conversation that could be archived")
}

// TestHostileConversation shows conversations of any size and content within the limits.
func TestHostileConversation(t *testing.T) {
	t.Parallel()
	show := func(messages ...string) Transcript {
		t.Helper()
		shown := newShownTranscript(newStage(t, "").operations.backend.mask)
		var err error
		shown.Unreadable, err = claude.ReadMessages(strings.NewReader(strings.Join(messages, "")), shown.add)
		require.NoError(t, err)
		return shown.finish()
	}
	size := func(talk Transcript) (size int) {
		for _, message := range talk.Messages {
			size += sizeOf(message)
		}
		return size
	}
	huge := show(said("a", "assistant", chaintest.Noon, strings.Repeat("é", 3<<20)))
	require.LessOrEqual(t, len(huge.Messages[0].Text), maxMessageText)
	require.Equal(t, 6<<20-maxMessageText, huge.Messages[0].OmittedBytes)

	cut := show(said("a", "assistant", chaintest.Noon, strings.Repeat("x", maxMessageText-10)+" "+secret+" end"))
	require.NotContains(t, cut.Messages[0].Text, secret[:9], "a secret at the cut is masked first")

	var many []string
	for i := range 5_000 {
		many = append(many, said(fmt.Sprint(i), "assistant", chaintest.Noon, "hello"))
	}
	talk := show(many...)
	require.Len(t, talk.Messages, headMessages+tailMessages)
	require.Equal(t, 5_000-headMessages-tailMessages, talk.Omitted)
	require.Equal(t, [3]int{1, headMessages, 5_000}, [3]int{
		talk.Messages[0].Number, talk.Messages[headMessages-1].Number, talk.Messages[len(talk.Messages)-1].Number,
	})
	require.Equal(t, 5_000, talk.Models[0].Messages)

	for i := range many[:300] {
		many[i] = said(fmt.Sprint(i), "assistant", chaintest.Noon, strings.Repeat("y", maxMessageText))
	}
	talk = show(many[:300]...)
	require.LessOrEqual(t, size(talk), headBytes+tailBytes)
	require.Equal(t, 300, len(talk.Messages)+talk.Omitted)

	var blocks []map[string]any
	for range 10_000 {
		blocks = append(blocks, map[string]any{"type": "tool_use", "id": "x", "name": strings.Repeat("n", 1_000), "input": "y"})
	}
	talk = show(said("a", "assistant", chaintest.Noon, blocks))
	require.Len(t, talk.Messages[0].Calls, maxMessageBlocks)
	require.Equal(t, "[9950 blocks are left out]", strings.ReplaceAll(talk.Messages[0].Text, " more", ""))
	require.Len(t, []rune(talk.Messages[0].Calls[0].Name), maxToolName)
}

// Several models share the cost of their session by list prices. Without a price for one of them, no part is stated.
func TestShareCost(t *testing.T) {
	tokens := escalation.TokenUsage{Input: 1_000, Output: 1_000}
	uses := []ModelUse{{Model: "claude-opus-4", Tokens: tokens}, {Model: "claude-haiku-4", Tokens: tokens}}
	shareCost(uses, 0.36)
	require.InDelta(t, 0.30, uses[0].CostUSD, 1e-9, "opus costs five times as much")
	require.InDelta(t, 0.06, uses[1].CostUSD, 1e-9)

	unpriced := []ModelUse{{Model: "claude-opus-4", Tokens: tokens}, {Model: "a model of elsewhere", Tokens: tokens}}
	shareCost(unpriced, 0.36)
	require.Zero(t, unpriced[0].CostUSD)
}
