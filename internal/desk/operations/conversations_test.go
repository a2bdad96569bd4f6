package operations

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

// fakeTemporal knows one namespace, or nothing while away is set.
type fakeTemporal struct {
	client.Client

	service fakeService
}

// fakeService describes a namespace.
type fakeService struct {
	workflowservice.WorkflowServiceClient

	away error
}

func (f *fakeTemporal) WorkflowService() workflowservice.WorkflowServiceClient { return &f.service }

func (f *fakeTemporal) Close() {}

func (f *fakeService) DescribeNamespace(
	context.Context, *workflowservice.DescribeNamespaceRequest, ...grpc.CallOption,
) (*workflowservice.DescribeNamespaceResponse, error) {
	if f.away != nil {
		return nil, f.away
	}
	return &workflowservice.DescribeNamespaceResponse{NamespaceInfo: &namespacepb.NamespaceInfo{Id: "ns-1"}}, nil
}

// TestConfirmNeedsItsNamespace confirms nothing, and shows nothing, before the namespace is known. A client that leaves
// does not keep what it has confirmed from being done and recorded.
func TestConfirmNeedsItsNamespace(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	temporal := &fakeTemporal{}
	s.operations.backend.connection = &Connection{Client: temporal, Namespace: "default"}
	source := memory.Source{Trust: memory.TrustOutput, At: chaintest.Noon, ChainID: "conversation-ada", SessionID: "s-1"}
	known, err := s.records.ProposeMemories(t.Context(), source, []escalation.MemoryProposal{{
		Kind: escalation.MemoryCorrection, Subject: "sleep", Text: "it sleeps on Sundays",
	}})
	require.NoError(t, err)
	said := known[0].Proposal()
	hello := escalation.TalkMessage{MessageID: "m-1", Text: "hello", Actor: "ada"}
	_, err = s.records.AddMessage(t.Context(), "conversation-ada", hello, 0, chaintest.Noon)
	require.NoError(t, err)
	reply := escalation.TalkReply{Reply: "yes", Proposals: []escalation.Proposal{
		{Kind: escalation.ProposeMemory, Why: "w", MemoryID: known[0].ID, Memory: &said},
	}}
	of := escalation.TalkSession{ConversationID: "conversation-ada", Turn: 1, SessionID: "s-1"}
	require.NoError(t, s.records.KeepReply(t.Context(), of, reply, escalation.Report{}))
	end := escalation.TalkEnd{State: escalation.TalkAnswered, EndedAt: chaintest.Noon}
	require.NoError(t, s.records.EndTurn(t.Context(), "conversation-ada", 1, end))

	temporal.service.away = errors.New("denied")
	talks := Conversations{s.operations.backend}
	_, err = talks.Confirm(t.Context(), "ada", 1, 1, Actor{Name: "ada"})
	require.ErrorContains(t, err, "look up the id of namespace")
	for name, read := range map[string]func() error{
		"turn":    func() error { _, err := talks.Turn(t.Context(), "ada", 1); return err },
		"history": func() error { _, err := talks.History(t.Context(), "ada", 9); return err },
		"wait":    func() error { _, err := talks.Wait(t.Context(), "ada", 1); return err },
		"list": func() error {
			_, _, err := talks.List(t.Context(), func(string) bool { return true }, "", 9)
			return err
		},
	} {
		require.ErrorContains(t, read(), "it is unknown whether the records are those of this namespace", name)
	}

	temporal.service.away = nil
	caller, leave := context.WithCancel(t.Context())
	s.operations.backend.Clock = func() time.Time { // the caller leaves between the checks and the record
		leave()
		return chaintest.Noon
	}
	result, err := talks.Confirm(caller, "ada", 1, 1, Actor{Name: "ada"})
	require.NoError(t, err)
	require.Contains(t, result, "agents are told of")
	turn, err := talks.Turn(t.Context(), "ada", 1)
	require.NoError(t, err)
	require.Equal(t, result, turn.Confirmed[0].Result)
}

// TestConversationAboutNoChain begins conversations that are named as ones about chains.
func TestConversationAboutNoChain(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.operations.backend.connection = &Connection{Client: &fakeTemporal{}, Namespace: "default"}
	talks := Conversations{s.operations.backend}
	s.close(s.open("a", chaintest.Noon, nil), escalation.Report{Status: escalation.SessionCompleted, ReportedSessionID: "a"})
	s.open("busy", chaintest.Noon, nil)
	hello := escalation.TalkMessage{MessageID: "m-1", Text: "hello", Actor: "ada"}
	_, err := s.records.AddMessage(t.Context(), "conversation-about-chain-old", hello, 0, chaintest.Noon)
	require.NoError(t, err)
	for _, tt := range []struct{ name, about, want string }{
		{"about-chain-a", "chain-a", ""},
		{"about-chain-old", "", ""}, // it has begun
		{"about-chain-b", "chain-b", "there is no chain chain-b to talk about"},
		{"about-chain-b", "", "conversation about-chain-b has not begun: begin it from the chain that it is about"},
		{"about-chain-busy", "chain-busy", "chain chain-busy has no session that has ended, and so no conversation to begin from"},
		{"about-chain-b", "chain-a", "conversation about-chain-b has not begun: begin it from the chain that it is about"},
	} {
		err := talks.checkAbout(t.Context(), tt.name, tt.about)
		if tt.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, tt.want)
		require.Contains(t, []Kind{KindNotFound, KindConflict}, KindOf(err))
		_, err = talks.Send(t.Context(), tt.name, tt.about, hello)
		require.ErrorContains(t, err, tt.want)
	}
}

// TestMaskedTurnFails has a secret that looks like the time of a turn. The turn is shown without its texts.
func TestMaskedTurnFails(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 20, 12, 0, 0, 0, time.UTC)
	s := newStage(t, "", "API_TOKEN=2026-07-20T12:00:00Z", "OTHER_TOKEN=9f86d081884c7d65")
	turn := escalation.TalkTurn{
		ConversationID: "conversation-ada", Turn: 3, TalkMessage: escalation.TalkMessage{MessageID: "m-3", Text: "9f86d081884c7d65"},
		State: escalation.TalkAnswered, ReceivedAt: at, TalkReply: escalation.TalkReply{Reply: "9f86d081884c7d65"},
	}
	shown := s.operations.backend.maskedTurn(turn)
	require.Empty(t, shown.Text+shown.Reply)
	require.Contains(t, shown.Failure, "cannot be masked")
	require.Equal(t, 3, shown.Turn)
	turn.ReceivedAt = at.Add(time.Second)
	require.Equal(t, "[masked: OTHER_TOKEN]", s.operations.backend.maskedTurn(turn).Reply)
}

// TestListFiltersFirst lists the conversations of a person who has the oldest of three.
func TestListFiltersFirst(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	for i, name := range []string{"ada", "bob", "eve"} {
		hello := escalation.TalkMessage{MessageID: "m-1", Text: "hello", Actor: name}
		_, err := s.records.AddMessage(t.Context(), "conversation-"+name, hello, 0, chaintest.Noon.Add(time.Duration(i)*time.Minute))
		require.NoError(t, err)
	}
	turns, err := s.records.LatestTurns(t.Context(), store.TalkPlace{}, 1, func(turn escalation.TalkTurn) bool { return turn.Actor == "ada" })
	require.NoError(t, err)
	require.Len(t, turns, 1)
	require.Equal(t, "conversation-ada", turns[0].ConversationID)
	turns, err = s.records.LatestTurns(t.Context(), store.TalkPlace{}, 2, func(escalation.TalkTurn) bool { return true })
	require.NoError(t, err)
	require.Equal(t, "conversation-eve", turns[0].ConversationID)
	require.Len(t, turns, 2)
}

// TestListPages reads a list of conversations in pages, and refuses keys that no page has returned.
func TestListPages(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.operations.backend.connection = &Connection{Client: &fakeTemporal{}, Namespace: "default"}
	records := s.records
	const conversations = 25
	for i := range conversations {
		hello := escalation.TalkMessage{MessageID: "m-1", Text: "hello", Actor: "ada"}
		_, err := records.AddMessage(t.Context(), fmt.Sprintf("conversation-chat-%02d", i), hello, 0, chaintest.Noon.Add(time.Duration(i/4)*time.Second))
		require.NoError(t, err)
	}
	talks := Conversations{s.operations.backend}
	seen := map[string]bool{}
	pages := 0
	for after := ""; ; pages++ {
		rows, next, err := talks.List(t.Context(), func(name string) bool { return name != "chat-07" }, after, 6)
		require.NoError(t, err)
		for _, row := range rows {
			require.False(t, seen[row.Name], row.Name)
			seen[row.Name] = true
		}
		if after = next; next == "" {
			break
		}
	}
	require.Len(t, seen, conversations-1)
	require.Equal(t, 3, pages)
	for _, invalid := range []string{"x", "7", "-ada", "9999999999999999999-ada", "7-a/b"} {
		_, _, err := talks.List(t.Context(), func(string) bool { return true }, invalid, 6)
		require.Equal(t, KindInvalid, KindOf(err), invalid)
	}
}

// TestFailsAgain looks up whether a failed turn would fail again, by how its session has ended.
func TestFailsAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, "", "TEMPORAL_ADDRESS=127.0.0.1:1")
	for ending, want := range map[escalation.Ending]bool{escalation.EndingOurLimit: true, escalation.EndingProvider: false} {
		report := ended(0.5, "")
		report.Status, report.Ending = escalation.SessionBudgetExhausted, ending
		id := "talk-" + string(ending)
		s.close(s.open(id, chaintest.Noon, nil), report)
		for state, want := range map[escalation.TalkState]bool{escalation.TalkFailed: want, escalation.TalkStopped: false} {
			again, err := s.operations.Conversations.FailsAgain(t.Context(), escalation.TalkTurn{State: state, SessionID: id})
			require.NoError(t, err)
			require.Equal(t, want, again, "%s %s", ending, state)
		}
	}
	for _, gone := range []string{"", "removed"} {
		again, err := s.operations.Conversations.FailsAgain(t.Context(), escalation.TalkTurn{State: escalation.TalkFailed, SessionID: gone})
		require.NoError(t, err)
		require.False(t, again)
	}
}
