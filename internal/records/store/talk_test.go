package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

const adasTalk = "conversation-ada"

func talkMessage(id string) escalation.TalkMessage {
	return escalation.TalkMessage{MessageID: id, Text: "how is jellyfin?\x00 " + id, Actor: "ada"}
}

func ofTalk(turn int, sessionID string) escalation.TalkSession {
	return escalation.TalkSession{ConversationID: adasTalk, Turn: turn, SessionID: sessionID}
}

func addMessage(t *testing.T, s *store.Store, id string) int {
	t.Helper()
	stored, err := s.AddMessage(bounded(t), adasTalk, talkMessage(id), 0, noon)
	require.NoError(t, err)
	return stored.Turn
}

// talkSession returns a session of a conversation.
func talkSession(sessionID string, parent int64) escalation.Session {
	session := opening(adasTalk, sessionID, parent)
	session.Purpose, session.Trigger = escalation.PurposeTalk, escalation.TriggerTalk
	return session
}

func testTalkTurn(t *testing.T, database backend) {
	s := database(t)()
	require.Equal(t, 1, addMessage(t, s, "m-1"))
	require.Equal(t, 2, addMessage(t, s, "m-2"))
	require.Equal(t, 1, addMessage(t, s, "m-1"), "the same message is the same turn")
	stored, err := s.AddMessage(bounded(t), adasTalk, talkMessage("m-3"), 7, noon)
	require.NoError(t, err)
	require.Equal(t, escalation.TalkStored{Turn: 8}, stored, "a conversation knows turns that restored records lack")
	_, err = s.AddMessage(bounded(t), adasTalk, escalation.TalkMessage{MessageID: "m-4"}, 0, noon)
	require.ErrorIs(t, err, store.ErrInvalid)

	require.NoError(t, s.BeginTurn(bounded(t), ofTalk(1, "s-1"), "<context>", noon))
	kept, err := s.KeptReport(bounded(t), ofTalk(1, "s-1"))
	require.NoError(t, err)
	require.Nil(t, kept)
	reply := escalation.TalkReply{
		Reply: "It is well.", Proposals: []escalation.Proposal{{Kind: escalation.ProposeChain, Why: "w", Services: []string{"jellyfin"}}},
		Memories: []escalation.MemoryProposal{{Kind: escalation.MemoryCorrection, Text: "t"}},
	}
	report := escalation.Report{Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.25}, Turns: 2}
	require.NoError(t, s.KeepReply(bounded(t), ofTalk(1, "s-1"), reply, report))
	kept, err = s.KeptReport(bounded(t), ofTalk(1, "s-1"))
	require.NoError(t, err)
	require.Equal(t, &report, kept)
	kept, err = s.KeptReport(bounded(t), ofTalk(1, "s-2"))
	require.NoError(t, err)
	require.Nil(t, kept, "the reply of another session does not count")
	require.NoError(t, s.EndTurn(bounded(t), adasTalk, 1, escalation.TalkEnd{
		State: escalation.TalkAnswered, Note: "n", Cost: escalation.Cost{CostUSD: 0.5, CostEstimated: true}, EndedAt: noon.Add(time.Minute),
	}))
	require.ErrorIs(t, s.BeginTurn(bounded(t), ofTalk(1, "s-9"), "late", noon), store.ErrNotFound, "the turn has ended")
	require.ErrorIs(t, s.KeepReply(bounded(t), ofTalk(1, "s-9"), escalation.TalkReply{Reply: "late"}, report), store.ErrNotFound)
	stored, err = s.AddMessage(bounded(t), adasTalk, talkMessage("m-1"), 0, noon)
	require.NoError(t, err)
	require.Equal(t, escalation.TalkStored{Turn: 1, Ended: true}, stored)
	stored, err = s.AddMessage(bounded(t), adasTalk, talkMessage("m-5"), 1, noon)
	require.NoError(t, err)
	missed := []escalation.TalkPending{{Turn: 2, MessageID: "m-2", Head: "how is jellyfin?\ufffd m-2", Actor: "ada"}, {Turn: 8, MessageID: "m-3", Head: "how is jellyfin?\ufffd m-3", Actor: "ada"}}
	require.Equal(t, escalation.TalkStored{Turn: 9, Missed: missed}, stored, "the conversation does not know the turns between")

	found, err := s.TalkTurn(bounded(t), adasTalk, 1)
	require.NoError(t, err)
	require.Equal(t, escalation.TalkTurn{
		ConversationID: adasTalk, Turn: 1,
		TalkMessage: escalation.TalkMessage{MessageID: "m-1", Text: "how is jellyfin?\ufffd m-1", Actor: "ada"},
		ReceivedAt:  noon, State: escalation.TalkAnswered, SessionID: "s-1", Context: "<context>", SeenAt: noon, TalkReply: reply, Note: "n",
		Cost: escalation.Cost{CostUSD: 0.5, CostEstimated: true}, EndedAt: noon.Add(time.Minute), Confirmed: []escalation.Confirmation{},
	}, found)
	turns, err := s.TalkTurns(bounded(t), adasTalk, 2)
	require.NoError(t, err)
	require.Equal(t, []int{8, 9}, []int{turns[0].Turn, turns[1].Turn})

	_, err = s.TalkTurn(bounded(t), adasTalk, 3)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorIs(t, s.BeginTurn(bounded(t), ofTalk(3, "s"), "", noon), store.ErrNotFound)
}

// testTalkBranches checks what a message needs that follows an earlier answer.
func testTalkBranches(t *testing.T, database backend) {
	s := database(t)()
	add := func(id, key string, after *int) {
		message := talkMessage(id)
		message.Key, message.After, message.About = key, after, "chain-1"
		_, err := s.AddMessage(bounded(t), adasTalk, message, 0, noon)
		require.NoError(t, err)
	}
	add("m-1", "key", nil)
	add("m-2", "key", new(0))
	add("m-3", "kez", nil)
	var turns []escalation.TalkTurn
	see := func(limit int) func(escalation.TalkTurn) bool {
		turns = nil
		return func(turn escalation.TalkTurn) bool {
			turns = append(turns, turn)
			return len(turns) < limit
		}
	}
	require.NoError(t, s.TurnsOf(bounded(t), adasTalk, "key", see(9)))
	require.Len(t, turns, 2)
	require.Equal(t, []int{2, 1}, []int{turns[0].Turn, turns[1].Turn}, "the latest first")
	require.Equal(t, new(0), turns[0].After)
	require.Nil(t, turns[1].After)
	require.NoError(t, s.TurnsOf(bounded(t), adasTalk, "key", see(1)))
	require.Len(t, turns, 1)
	found3, err := s.MessageTurn(bounded(t), "m-3")
	require.NoError(t, err)
	require.Equal(t, []any{adasTalk, 3, "kez", "how is jellyfin?\ufffd m-3"}, []any{found3.ConversationID, found3.Turn, found3.Key, found3.Text})
	_, err = s.MessageTurn(bounded(t), "m-4")
	require.ErrorIs(t, err, store.ErrNotFound)
	opened, err := s.OpenTalk(bounded(t), adasTalk)
	require.NoError(t, err)
	require.Equal(t, new(0), opened.Unanswered[1].After)
	require.Equal(t, "chain-1", opened.About)

	session := mustOpen(t, s, talkSession("s-1", 0))
	require.NoError(t, s.BeginTurn(bounded(t), ofTalk(1, "s-1"), "", noon))
	none, err := s.AnswerSession(bounded(t), adasTalk, 1)
	require.NoError(t, err)
	require.Nil(t, none, "it has no answer yet")
	require.NoError(t, s.EndTurn(bounded(t), adasTalk, 1, escalation.TalkEnd{State: escalation.TalkAnswered, EndedAt: noon}))
	found, err := s.AnswerSession(bounded(t), adasTalk, 1)
	require.NoError(t, err)
	require.Equal(t, session, *found)
}

// testOtherMessages stores messages with the ID of another one.
func testOtherMessages(t *testing.T, database backend) {
	s := database(t)()
	addMessage(t, s, "m-1")
	text, person, again := talkMessage("m-1"), talkMessage("m-1"), talkMessage("m-1")
	text.Text, person.Actor, again.Key = "and nas?", "bob", "key"
	for message, other := range map[*escalation.TalkMessage]bool{&text: true, &person: true, &again: false} {
		stored, err := s.AddMessage(bounded(t), adasTalk, *message, 0, noon)
		require.NoError(t, err)
		require.Equal(t, escalation.TalkStored{Turn: 1, Other: other}, stored)
	}
	require.Equal(t, 2, addMessage(t, s, "m-2"), "nothing was stored")
}

// testTalkList reads the list of conversations in pages.
func testTalkList(t *testing.T, database backend) {
	s := database(t)()
	const conversations = 23
	for i := range conversations {
		for turn := range i%3 + 1 {
			at := noon.Add(time.Duration(turn*conversations+i/2) * time.Minute) // some at the same time
			_, err := s.AddMessage(bounded(t), fmt.Sprintf("conversation-%02d", i), talkMessage(fmt.Sprint("m-", turn)), 0, at)
			require.NoError(t, err)
		}
	}
	all := func(escalation.TalkTurn) bool { return true }
	whole, err := s.LatestTurns(bounded(t), store.TalkPlace{}, 100, all)
	require.NoError(t, err)
	require.Len(t, whole, conversations)
	var paged []escalation.TalkTurn
	for place := (store.TalkPlace{}); ; {
		page, err := s.LatestTurns(bounded(t), place, 4, all)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		paged = append(paged, page...)
		last := page[len(page)-1]
		place = store.TalkPlace{ReceivedAt: last.ReceivedAt, ConversationID: last.ConversationID}
	}
	require.Equal(t, whole, paged)
	for i, turn := range whole[1:] {
		require.False(t, turn.ReceivedAt.After(whole[i].ReceivedAt), "the latest first")
	}
	one, err := s.LatestTurns(bounded(t), store.TalkPlace{}, 1, func(turn escalation.TalkTurn) bool { return turn.ConversationID == "conversation-00" })
	require.NoError(t, err)
	require.Equal(t, 1, one[0].Turn)
}

// testTalksOfPerson admits sessions of several conversations of one person, and of another.
func testTalksOfPerson(t *testing.T, database backend) {
	s := database(t)()
	policy := lenient()
	policy.TalksPerPerson = 1
	open := func(conversation, actor, id string) escalation.AdmissionResult {
		message := escalation.TalkMessage{MessageID: "of " + id, Text: "hello", Actor: actor}
		_, err := s.AddMessage(bounded(t), conversation, message, 0, noon)
		require.NoError(t, err)
		session := talkSession(id, 0)
		session.ChainID = conversation
		opened, err := s.OpenSession(bounded(t), session, escalation.AdmissionRequest{Actor: actor}, policy)
		require.NoError(t, err)
		return opened
	}
	require.Nil(t, open("conversation-ada", "ada", "s-1").Refusal)
	refused := open("conversation-chat-1", "ada", "s-2").Refusal
	require.Equal(t, escalation.RuleTalksOfPerson, refused.Rule)
	require.Nil(t, open("conversation-bob", "bob", "s-3").Refusal, "another person is answered")
	require.Nil(t, open("conversation-ada", "ada", "s-4").Refusal, "a conversation has one session at a time itself")
	for _, id := range []string{"s-1", "s-4"} {
		require.NoError(t, s.CloseSession(bounded(t), id, escalation.Report{Status: escalation.SessionCompleted}, noon))
	}
	require.NoError(t, s.EndTurn(bounded(t), "conversation-ada", 1, escalation.TalkEnd{State: escalation.TalkAnswered, EndedAt: noon}))
	require.Nil(t, open("conversation-chat-1", "ada", "s-5").Refusal)
}

// testTalkUnanswered checks that a turn that ends without an answer has no reply, even if its session has kept one.
func testTalkUnanswered(t *testing.T, database backend) {
	s := database(t)()
	addMessage(t, s, "m-1")
	require.NoError(t, s.KeepReply(bounded(t), ofTalk(1, "s-1"), escalation.TalkReply{Reply: "late"}, escalation.Report{}))
	require.NoError(t, s.EndTurn(bounded(t), adasTalk, 1, escalation.TalkEnd{
		State: escalation.TalkStopped, Failure: "Stopped.", EndedAt: noon,
	}))
	found, err := s.TalkTurn(bounded(t), adasTalk, 1)
	require.NoError(t, err)
	require.Empty(t, found.Reply)
	require.Equal(t, "Stopped.", found.Failure)
}

func testOpenTalk(t *testing.T, database backend) {
	s := database(t)()
	opened, err := s.OpenTalk(bounded(t), adasTalk)
	require.NoError(t, err)
	require.Equal(t, escalation.TalkOpening{}, opened)

	for _, id := range []string{"m-1", "m-2", "m-3"} {
		addMessage(t, s, id)
	}
	session := mustOpen(t, s, talkSession("s-1", 0))
	require.NoError(t, s.BeginTurn(bounded(t), ofTalk(1, "s-1"), "", noon))
	require.NoError(t, s.EndTurn(bounded(t), adasTalk, 1, escalation.TalkEnd{State: escalation.TalkAnswered, EndedAt: noon}))
	opened, err = s.OpenTalk(bounded(t), adasTalk)
	require.NoError(t, err)
	require.Equal(t, 3, opened.Turn)
	require.Equal(t, session, *opened.Last)
	require.Equal(t, []escalation.TalkPending{
		{Turn: 2, MessageID: "m-2", Head: "how is jellyfin?\ufffd m-2", Actor: "ada"}, {Turn: 3, MessageID: "m-3", Head: "how is jellyfin?\ufffd m-3", Actor: "ada"},
	}, opened.Unanswered)
}

func testTalkFacts(t *testing.T, database backend) {
	s := database(t)()
	working := mustOpen(t, s, opening("chain-1", "c-1", 0))
	mustOpen(t, s, talkSession("s-1", 0))
	mustOpen(t, s, opening("chain-2", "c-2", 0))
	verdict := escalation.Verdict{
		Status: escalation.VerdictEscalate, Summary: "jellyfin answers 502", Services: []string{"jellyfin"}, Kind: "down",
	}
	require.NoError(t, s.CloseSession(bounded(t), "c-2", escalation.Report{Status: escalation.SessionCompleted, Verdict: &verdict}, noon))
	event := func(key, chain string, kind escalation.EventKind) escalation.Event {
		return escalation.Event{Key: key, ChainID: chain, Kind: kind, Severity: escalation.SeverityInfo, Message: key, At: noon}
	}
	require.NoError(t, s.AppendEvents(bounded(t), []escalation.Event{
		event("e-1", "chain-2", escalation.EventGateOpened), event("e-2", "chain-3", escalation.EventGateOpened),
		event("e-3", "chain-3", escalation.EventGateClosed), event("e-4", "chain-4", escalation.EventGateOpened),
		event("e-5", "chain-4", escalation.EventChainEnded),
	}))
	addMessage(t, s, "m-1")
	addMessage(t, s, "m-2")
	require.NoError(t, s.EndTurn(bounded(t), adasTalk, 1, escalation.TalkEnd{State: escalation.TalkFailed, Failure: "f", EndedAt: noon}))

	facts, err := s.TalkFacts(bounded(t), adasTalk, noon.Add(time.Hour), false)
	require.NoError(t, err)
	require.Len(t, facts.Incidents, 1)
	require.Equal(t, []escalation.Session{working}, facts.Working, "a conversation is no chain at work")
	require.Equal(t, []escalation.WaitingGate{{ChainID: "chain-2", Message: "e-1", At: noon}}, facts.Gates)
	require.Empty(t, facts.Recent)
	require.Empty(t, facts.Recalled)

	facts, err = s.TalkFacts(bounded(t), adasTalk, noon.Add(time.Hour), true)
	require.NoError(t, err)
	require.Len(t, facts.Recent, 1)
	require.Equal(t, "chain-2", facts.Recent[0].ChainID)
	require.Len(t, facts.Recalled, 1)
	facts, err = s.TalkFacts(bounded(t), adasTalk, noon.Add(escalation.RecentChains+time.Hour), true)
	require.NoError(t, err)
	require.Empty(t, facts.Recent, "too long ago")
}

func testConfirmations(t *testing.T, database backend) {
	s := database(t)()
	addMessage(t, s, "m-1")
	confirmation := escalation.Confirmation{Proposal: 1, Actor: "ada", At: noon}
	require.NoError(t, s.ConfirmProposal(bounded(t), adasTalk, 1, confirmation))
	require.ErrorIs(t, s.ConfirmProposal(bounded(t), adasTalk, 1, confirmation), store.ErrConflict)
	require.NoError(t, s.SettleConfirmation(bounded(t), adasTalk, 1, 1, "done"))
	found, err := s.TalkTurn(bounded(t), adasTalk, 1)
	require.NoError(t, err)
	confirmation.Result = "done"
	require.Equal(t, []escalation.Confirmation{confirmation}, found.Confirmed)

	second := escalation.Confirmation{Proposal: 2, Actor: "bob", At: noon}
	require.NoError(t, s.ConfirmProposal(bounded(t), adasTalk, 1, second))
	require.NoError(t, s.SettleConfirmation(bounded(t), adasTalk, 1, 2, ""))
	require.NoError(t, s.ConfirmProposal(bounded(t), adasTalk, 1, second), "what was not done can be confirmed again")
}

func testTalkRetention(t *testing.T, database backend) {
	s := database(t)()
	mustOpen(t, s, talkSession("s-1", 0))
	require.NoError(t, s.CloseSession(bounded(t), "s-1", escalation.Report{Status: escalation.SessionCompleted}, noon))
	first, err := s.BySessionID(bounded(t), "s-1")
	require.NoError(t, err)
	later := talkSession("s-2", first.ID)
	later.StartedAt = noon.Add(48 * time.Hour)
	mustOpen(t, s, later)
	for _, id := range []string{"m-1", "m-2"} {
		addMessage(t, s, id)
	}
	require.NoError(t, s.EndTurn(bounded(t), adasTalk, 1, escalation.TalkEnd{State: escalation.TalkAnswered, EndedAt: noon}))
	require.NoError(t, s.ConfirmProposal(bounded(t), adasTalk, 1, escalation.Confirmation{Proposal: 1, Actor: "ada", At: noon}))
	require.NoError(t, s.AppendEvents(bounded(t), []escalation.Event{
		{Key: "k-1", ChainID: adasTalk, Kind: escalation.EventSessionEnded, Severity: "info", Message: "m", At: noon},
		{Key: "k-2", ChainID: "chain-1", Kind: escalation.EventSessionEnded, Severity: "info", Message: "m", At: noon},
	}))

	before := noon.Add(24 * time.Hour)
	old, err := s.OldTalkSessions(bounded(t), before, store.OldTalkSession{})
	require.NoError(t, err)
	require.Len(t, old, 1)
	require.Equal(t, "s-1", old[0].SessionID)
	more, err := s.OldTalkSessions(bounded(t), before, old[0])
	require.NoError(t, err)
	require.Empty(t, more)
	require.NoError(t, s.RemoveTalkSession(bounded(t), "s-1"))
	turns, err := s.RemoveTurns(bounded(t), before)
	require.NoError(t, err)
	require.EqualValues(t, 1, turns)

	_, err = s.BySessionID(bounded(t), "s-1")
	require.ErrorIs(t, err, store.ErrNotFound)
	kept, err := s.BySessionID(bounded(t), "s-2")
	require.NoError(t, err)
	require.Zero(t, kept.ParentID)
	left, err := s.TalkTurns(bounded(t), adasTalk, 10)
	require.NoError(t, err)
	require.Len(t, left, 1, "a turn that has not ended stays")
	events, err := s.Events(bounded(t), adasTalk)
	require.NoError(t, err)
	require.Empty(t, events)
	events, err = s.Events(bounded(t), "chain-1")
	require.NoError(t, err)
	require.Len(t, events, 1, "the records of chains have their own retention")
	require.Equal(t, 3, addMessage(t, s, "m-3"))
}

// testTalkBesideChains checks that sessions of conversations do not touch what concerns chains: incidents, locks and
// the limit of escalations. Only the day's budget counts them.
func testTalkBesideChains(t *testing.T, database backend) {
	s := database(t)()
	policy := lenient()
	policy.DayBudgetUSD = 1
	policy.Tiers[0].BudgetUSD = 0.6
	talk := talkSession("s-1", 0)
	opened, err := s.OpenSession(bounded(t), talk, escalation.AdmissionRequest{}, policy)
	require.NoError(t, err)
	require.Nil(t, opened.Refusal)
	require.NoError(t, s.CloseSession(bounded(t), "s-1", escalation.Report{Status: escalation.SessionFailed, Cost: escalation.Cost{CostUSD: 0.97}, Error: "e"}, noon))

	incidents, err := s.Incidents(bounded(t), store.IncidentFilter{Since: time.Unix(0, 0)})
	require.NoError(t, err)
	require.Empty(t, incidents, "a turn that fails is no look that fails")
	locks, err := s.ServiceLocks(bounded(t))
	require.NoError(t, err)
	require.Empty(t, locks)
	refused, err := s.OpenSession(bounded(t), opening("chain-1", "c-1", 0), escalation.AdmissionRequest{}, policy)
	require.NoError(t, err)
	require.NotNil(t, refused.Refusal)
	require.Equal(t, escalation.RuleDayBudget, refused.Refusal.Rule)
}

func testConcurrentMessages(t *testing.T, database backend) {
	open := database(t)
	stores := []*store.Store{open(), open()}
	var wait sync.WaitGroup
	turns := make([]int, 40)
	for i := range turns {
		wait.Go(func() {
			stored, err := stores[i%2].AddMessage(bounded(t), adasTalk, talkMessage(fmt.Sprintf("m-%d", i/2)), 0, noon)
			if err == nil {
				turns[i] = stored.Turn
			}
		})
	}
	wait.Wait()
	seen := map[int]bool{}
	for i := 0; i < len(turns); i += 2 {
		require.Equal(t, turns[i], turns[i+1], "one message, two senders")
		seen[turns[i]] = true
	}
	require.Len(t, seen, 20)
	require.False(t, seen[0])
	require.True(t, seen[20], "no number is left out")
}
