package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows/parts"
	"github.com/claudeops/claudeops/workflows/talk"
)

// talkBook keeps the records of conversations in memory.
type talkBook struct {
	keeper

	mu      sync.Mutex
	turns   []escalation.TalkTurn
	opening escalation.TalkOpening
	// answers holds the sessions of answered turns.
	answers map[int]*escalation.Session
	refuse  *escalation.Admission
	// addErr is the error of the next call of AddMessage. While away is set, all calls of it fail.
	addErr error
	away   bool
	// change changes the session that the next call of OpenSession returns; nil for none.
	change func(*escalation.Session)
}

var _ activities.Recorder = (*talkBook)(nil)

func (b *talkBook) OpenSession(
	ctx context.Context, session escalation.Session, request escalation.AdmissionRequest, policy escalation.Policy,
) (escalation.AdmissionResult, error) {
	if b.refuse != nil {
		return escalation.AdmissionResult{Refusal: b.refuse}, nil
	}
	opening, err := b.keeper.OpenSession(ctx, session, request, policy)
	if b.change != nil {
		b.change(&opening.Session)
		b.change = nil
	}
	return opening, err
}

func (b *talkBook) OpenTalk(context.Context, string) (escalation.TalkOpening, error) {
	return b.opening, nil
}

func (b *talkBook) AddMessage(_ context.Context, id string, message escalation.TalkMessage, after int, at time.Time) (escalation.TalkStored, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.addErr; err != nil {
		b.addErr = nil
		return escalation.TalkStored{}, err
	}
	if b.away {
		return escalation.TalkStored{}, errors.New("the database is away")
	}
	var missed []escalation.TalkPending
	for i := range b.turns {
		turn := &b.turns[i]
		if turn.MessageID == message.MessageID {
			other := turn.Digest() != message.Digest()
			return escalation.TalkStored{Turn: turn.Turn, Ended: turn.State.Final(), Missed: missed, Other: other}, nil
		}
		if turn.Turn > after && !turn.State.Final() {
			missed = append(missed, escalation.TalkPending{Turn: turn.Turn, MessageID: turn.MessageID})
		}
	}
	turn := max(after, len(b.turns)) + 1
	b.turns = append(b.turns, escalation.TalkTurn{ConversationID: id, Turn: turn, TalkMessage: message, ReceivedAt: at})
	return escalation.TalkStored{Turn: turn, Missed: missed}, nil
}

func (b *talkBook) TalkTurn(_ context.Context, _ string, turn int) (escalation.TalkTurn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.turns {
		if b.turns[i].Turn == turn {
			return b.turns[i], nil
		}
	}
	return escalation.TalkTurn{}, errors.New("no such turn")
}

func (b *talkBook) EndTurn(_ context.Context, _ string, turn int, end escalation.TalkEnd) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.turns {
		if b.turns[i].Turn == turn {
			b.turns[i].State, b.turns[i].Note, b.turns[i].Failure, b.turns[i].Cost = end.State, end.Note, end.Failure, end.Cost
			b.turns[i].EndedAt = end.EndedAt
		}
	}
	return nil
}

func (b *talkBook) AnswerSession(_ context.Context, _ string, turn int) (*escalation.Session, error) {
	return b.answers[turn], nil
}

// talkStage runs a conversation in the workflow environment.
type talkStage struct {
	*testsuite.TestWorkflowEnvironment

	t    *testing.T
	book *talkBook
	ran  []activities.RunTalkInput
	// answer returns the result of the nth session, from 1.
	answer func(n int, input activities.RunTalkInput) (activities.RunTalkResult, error)
}

func newTalkStage(t *testing.T) *talkStage {
	t.Helper()
	return newSlowTalkStage(t, time.Second)
}

// newSlowTalkStage returns a stage on which each session takes some time.
func newSlowTalkStage(t *testing.T, takes time.Duration) *talkStage {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	s := &talkStage{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t, book: &talkBook{}}
	s.SetTestTimeout(5 * time.Minute) // both for a busy machine
	s.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute})
	s.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "conversation-ada"})
	s.RegisterWorkflow(talk.Conversation)
	policy := escalation.Policy{Tiers: []escalation.TierPolicy{{Model: "sonnet", BudgetUSD: 1, Timeout: escalation.Duration(time.Minute)}}, ResumeThreshold: 0.8}
	s.RegisterActivity(&activities.Settings{TalkPolicy: policy, Windows: s.book})
	s.RegisterActivity(&activities.Records{Store: s.book})
	s.RegisterActivity(&activities.Attempts{Reader: noAgents{}})
	s.answer = func(int, activities.RunTalkInput) (activities.RunTalkResult, error) { return replied(), nil }
	tiers := &activities.Tiers{}
	s.RegisterActivity(tiers)
	s.OnActivity(tiers.RunTalk, mock.Anything, mock.Anything).After(takes).Return(
		func(_ context.Context, input activities.RunTalkInput) (activities.RunTalkResult, error) {
			s.ran = append(s.ran, input)
			result, err := s.answer(len(s.ran), input)
			result.Report.ReportedSessionID = input.SessionID
			return result, err
		})
	return s
}

type noAgents struct{}

func (noAgents) PendingAgents(context.Context, string, string) ([]activities.PendingAgent, error) {
	return nil, nil
}

func replied() activities.RunTalkResult {
	return activities.RunTalkResult{Replied: true, Report: escalation.Report{Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.25}, Attempts: 1}}
}

// update sends an update at a time, and returns its result when the workflow has ended.
func (s *talkStage) update(at time.Duration, name string, payload any) *updateOutcome {
	outcome := &updateOutcome{}
	s.RegisterDelayedCallback(func() {
		s.UpdateWorkflow(name, fmt.Sprintf("%s-%s", name, at), outcome, payload)
	}, at)
	return outcome
}

// updateOutcome is what became of an update.
type updateOutcome struct {
	rejected, err error
	result        any
	done          bool
}

func (o *updateOutcome) Accept()                        {}
func (o *updateOutcome) Reject(err error)               { o.rejected = err }
func (o *updateOutcome) Complete(result any, err error) { o.result, o.err, o.done = result, err, true }

// run runs the conversation until it is cancelled after a day.
func (s *talkStage) run() {
	s.t.Helper()
	s.RegisterDelayedCallback(s.CancelWorkflow, 24*time.Hour)
	s.ExecuteWorkflow(talk.Conversation, talk.ConversationInput{})
	require.True(s.t, temporal.IsCanceledError(s.GetWorkflowError()), "%v", s.GetWorkflowError())
}

func message(id string) escalation.TalkMessage {
	return escalation.TalkMessage{MessageID: id, Text: "how is jellyfin?", Actor: "ada"}
}

// TestConversationForksTheAnswerBefore sends three messages. The second turn fails, so the third forks the first.
func TestConversationForksTheAnswerBefore(t *testing.T) {
	t.Parallel()
	s := newTalkStage(t)
	s.answer = func(n int, _ activities.RunTalkInput) (activities.RunTalkResult, error) {
		if n == 2 {
			report := escalation.Report{Status: escalation.SessionTimedOut, Cost: escalation.Cost{CostUSD: 0.5, CostEstimated: true}, Attempts: 1}
			return activities.RunTalkResult{Report: report}, nil
		}
		return replied(), nil
	}
	var sent []*updateOutcome
	for i, id := range []string{"m-1", "m-2", "m-1", "m-3"} {
		sent = append(sent, s.update(time.Duration(i)*time.Minute, talk.SendMessage, message(id)))
	}
	s.RegisterDelayedCallback(func() {
		answer, err := s.QueryWorkflow(talk.ConversationQuery)
		require.NoError(t, err)
		var state talk.ConversationState
		require.NoError(t, answer.Get(&state))
		require.Len(t, state.Turns, 3)
		require.Equal(t, escalation.TalkFailed, state.Turns[1].State)
		require.Equal(t, []string{"$0.25", "about $0.50", "$0.25"},
			[]string{state.Turns[0].CostText(), state.Turns[1].CostText(), state.Turns[2].CostText()})
		require.Equal(t, "about $1.00", state.CostText())
	}, 2*time.Hour)
	s.run()

	for i, want := range []int{1, 2, 1, 3} {
		require.NoError(t, sent[i].err)
		require.Equal(t, talk.Sent{Turn: want}, sent[i].result)
	}
	require.Len(t, s.ran, 3, "the same message runs once")
	require.Empty(t, s.ran[0].ParentSessionID)
	require.Equal(t, s.ran[0].SessionID, s.ran[1].ParentSessionID)
	require.Equal(t, s.ran[0].SessionID, s.ran[2].ParentSessionID, "a turn that failed left no mark")
	require.Equal(t, []string{s.ran[0].SessionID, s.ran[1].SessionID, s.ran[2].SessionID}, s.book.closed)
	require.Equal(t, escalation.PurposeTalk, s.book.opened[0].Purpose)
	require.Equal(t, escalation.TierObserve, s.book.opened[2].Tier)
	require.Equal(t, escalation.TalkAnswered, s.book.turns[0].State)
	require.Equal(t, escalation.TalkFailed, s.book.turns[1].State)
	require.Contains(t, s.book.turns[1].Failure, "time for a turn")
	require.Equal(t, escalation.Cost{CostUSD: 0.5, CostEstimated: true}, s.book.turns[1].Cost)
}

// TestConversationEndsUnused sends a message after six days, and then none. A week later the conversation ends by
// itself.
func TestConversationEndsUnused(t *testing.T) {
	t.Parallel()
	s := newTalkStage(t)
	s.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "conversation-ada", WorkflowExecutionTimeout: 30 * 24 * time.Hour})
	began := s.Now()
	s.update(0, talk.SendMessage, message("m-1"))
	late := s.update(6*24*time.Hour, talk.SendMessage, message("m-2"))
	s.ExecuteWorkflow(talk.Conversation, talk.ConversationInput{})
	require.NoError(t, s.GetWorkflowError())
	require.NoError(t, late.err)
	require.Len(t, s.ran, 2)
	require.InDelta(t, 13*24, s.Now().Sub(began).Hours(), 1)
}

// TestConversationKnowsAnAnsweredMessage begins anew with a message that an earlier turn has answered. The records are
// slow to say so.
func TestConversationKnowsAnAnsweredMessage(t *testing.T) {
	t.Parallel()
	s := newTalkStage(t)
	s.book.turns = []escalation.TalkTurn{{Turn: 1, TalkMessage: message("m-1"), State: escalation.TalkAnswered}}
	var records *activities.Records
	s.OnActivity(records.OpenTalk, mock.Anything, mock.Anything).After(time.Second).Return(escalation.TalkOpening{Turn: 1}, nil)
	again := s.update(0, talk.SendMessage, message("m-1"))
	next := s.update(time.Minute, talk.SendMessage, message("m-2"))
	s.run()
	require.Equal(t, talk.Sent{Turn: 1}, again.result)
	require.Equal(t, talk.Sent{Turn: 2}, next.result)
	require.Len(t, s.ran, 1, "only the new message is answered")
}

// TestConversationAnswersMissedMessages sends a message after workflow tasks were lost that had stored two others. The
// records do not answer the first time.
func TestConversationAnswersMissedMessages(t *testing.T) {
	t.Parallel()
	s := newTalkStage(t)
	s.RegisterDelayedCallback(func() {
		s.book.addErr = errors.New("locked")
		for turn := 1; turn <= 2; turn++ {
			s.book.turns = append(s.book.turns, escalation.TalkTurn{Turn: turn, TalkMessage: message(fmt.Sprint("m-", turn))})
		}
	}, time.Minute)
	again := s.update(2*time.Minute, talk.SendMessage, message("m-2"))
	next := s.update(3*time.Minute, talk.SendMessage, message("m-3"))
	s.run()
	require.Equal(t, talk.Sent{Turn: 2}, again.result)
	require.Equal(t, talk.Sent{Turn: 3}, next.result)
	require.Len(t, s.ran, 3)
	for i, input := range s.ran {
		require.Equal(t, i+1, input.Turn, "in order")
	}
}

// TestConversationWithdrawsALeftover opens a session that a lost workflow task has opened already, for the same turn or
// for another one.
func TestConversationWithdrawsALeftover(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*escalation.Session)
		usable bool
	}{
		"the same turn":      {func(*escalation.Session) {}, true},
		"another parent":     {func(left *escalation.Session) { left.ParentID = 9 }, false},
		"a new conversation": {func(left *escalation.Session) { left.Continuity = escalation.ContinuityResume }, false},
		"another model":      {func(left *escalation.Session) { left.Model = "opus" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTalkStage(t)
			s.book.change = func(left *escalation.Session) {
				left.StartedAt = left.StartedAt.Add(-10 * time.Second)
				tt.change(left)
			}
			s.update(0, talk.SendMessage, message("m-1"))
			s.run()
			require.Len(t, s.ran, 1)
			require.Equal(t, escalation.TalkAnswered, s.book.turns[0].State)
			first := s.book.opened[0].SessionID
			if tt.usable {
				require.Len(t, s.book.opened, 1)
				require.Equal(t, []string{first}, s.book.closed)
				return
			}
			require.Len(t, s.book.opened, 2)
			require.NotEqual(t, first, s.ran[0].SessionID)
			require.Equal(t, []string{first, s.ran[0].SessionID}, s.book.closed)
		})
	}
}

// TestConversationGoesBack sends messages that follow the first answer, none, and an answer that is no longer recorded.
func TestConversationGoesBack(t *testing.T) {
	t.Parallel()
	s := newTalkStage(t)
	s.book.answers = map[int]*escalation.Session{}
	s.answer = func(n int, input activities.RunTalkInput) (activities.RunTalkResult, error) {
		s.book.answers[n] = &escalation.Session{
			ChainID: "conversation-ada", SessionID: input.SessionID, Report: escalation.Report{ReportedSessionID: input.SessionID},
		}
		return replied(), nil
	}
	for i, after := range []*int{nil, nil, new(1), new(0), new(9), nil} {
		next := message(fmt.Sprint("m-", i))
		next.After = after
		s.update(time.Duration(i)*time.Minute, talk.SendMessage, next)
	}
	s.run()
	require.Len(t, s.ran, 6)
	for i, parent := range []string{
		"", s.ran[0].SessionID, s.ran[0].SessionID, "", "", s.ran[4].SessionID,
	} {
		require.Equal(t, parent, s.ran[i].ParentSessionID, "turn %d", i+1)
	}
	require.Empty(t, s.book.turns[3].Note, "it wanted a new conversation")
	require.Contains(t, s.book.turns[4].Note, "neither on this host nor in the archive")
}

// TestConversationAfterANight has a gap of ten hours before the second message, and loses the conversation after
// another night. Only then a turn begins a new conversation, once.
func TestConversationAfterANight(t *testing.T) {
	t.Parallel()
	s := newTalkStage(t)
	s.answer = func(n int, _ activities.RunTalkInput) (activities.RunTalkResult, error) {
		if n == 3 {
			return activities.RunTalkResult{Report: escalation.Report{Status: escalation.SessionTranscriptLost, Attempts: 1}}, nil
		}
		return replied(), nil
	}
	for i, at := range []time.Duration{0, 10 * time.Hour, 20 * time.Hour, 21 * time.Hour, 23 * time.Hour} {
		s.update(at, talk.SendMessage, message(fmt.Sprint("m-", i+1)))
	}
	s.run()
	var cold []int
	for _, input := range s.ran {
		if input.ParentSessionID == "" {
			cold = append(cold, input.Turn)
		}
	}
	require.Equal(t, []int{1, 3}, cold)
	require.Len(t, s.ran, 6)
	for _, turn := range s.book.turns {
		require.Equal(t, turn.Turn == 3, turn.Note != "", "turn %d", turn.Turn)
	}
}

// TestConversationStartsAnew loses the conversation before the second turn. The turn runs once more, in a new
// conversation.
func TestConversationStartsAnew(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status escalation.SessionStatus
		second bool
		want   string
	}{
		"transcript_lost": {escalation.SessionTranscriptLost, true, "the last 2 turns in short"},
		"resume_failed":   {escalation.SessionResumeFailed, true, "Claude could not load"},
		"second_failure":  {escalation.SessionResumeFailed, false, "a new one failed, too"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTalkStage(t)
			s.answer = func(n int, _ activities.RunTalkInput) (activities.RunTalkResult, error) {
				switch {
				case n == 2:
					return activities.RunTalkResult{Report: escalation.Report{Status: tt.status, Attempts: 1}}, nil
				case n == 3 && !tt.second:
					return activities.RunTalkResult{Report: escalation.Report{Status: escalation.SessionFailed, Error: "no", Attempts: 1}}, nil
				}
				result := replied()
				result.Recalled = 2
				return result, nil
			}
			s.update(0, talk.SendMessage, message("m-1"))
			s.update(time.Minute, talk.SendMessage, message("m-2"))
			s.run()
			require.Len(t, s.ran, 3)
			require.NotEmpty(t, s.ran[1].ParentSessionID)
			require.Empty(t, s.ran[2].ParentSessionID)
			require.Contains(t, s.book.turns[1].Note+s.book.turns[1].Failure, tt.want)
			require.Equal(t, tt.second, s.book.turns[1].State == escalation.TalkAnswered)
			require.Len(t, s.book.closed, 3)
		})
	}
}

// TestConversationRemembersARefusal has the provider refuse the conversation of the first answer for good, and the new
// one fail. The third turn must not try the refused conversation again: it begins anew, and says so.
func TestConversationRemembersARefusal(t *testing.T) {
	t.Parallel()
	s := newTalkStage(t)
	s.answer = func(n int, _ activities.RunTalkInput) (activities.RunTalkResult, error) {
		report := escalation.Report{Attempts: 1}
		switch n {
		case 2:
			report.Status, report.Ending, report.Error = escalation.SessionResumeFailed, escalation.EndingUnusable, "400: thinking blocks"
		case 3:
			report.Status, report.Ending, report.Error = escalation.SessionFailed, escalation.EndingProvider, "overloaded"
		default:
			return replied(), nil
		}
		return activities.RunTalkResult{Report: report}, nil
	}
	s.update(0, talk.SendMessage, message("m-1"))
	s.update(time.Minute, talk.SendMessage, message("m-2"))
	s.update(time.Hour, talk.SendMessage, message("m-3"))
	s.run()
	require.Len(t, s.ran, 4)
	require.NotEmpty(t, s.ran[1].ParentSessionID)
	require.Empty(t, s.ran[3].ParentSessionID, "the provider has refused that conversation for good")
	require.Contains(t, s.book.turns[2].Note, "400: thinking blocks")
}

// TestConversationForgetsAWrongRequest has the provider refuse the conversation and then a new one: the model or the
// address is wrong. When that is corrected, the conversation goes on.
func TestConversationForgetsAWrongRequest(t *testing.T) {
	t.Parallel()
	s := newTalkStage(t)
	s.answer = func(n int, _ activities.RunTalkInput) (activities.RunTalkResult, error) {
		report := escalation.Report{Attempts: 1, Error: "API Error: 404 no such model"}
		switch n {
		case 2:
			report.Status, report.Ending = escalation.SessionResumeFailed, escalation.EndingUnusable
		case 3:
			report.Status, report.Ending = escalation.SessionFailed, escalation.EndingRequest
		default:
			return replied(), nil
		}
		return activities.RunTalkResult{Report: report}, nil
	}
	s.update(0, talk.SendMessage, message("m-1"))
	s.update(time.Minute, talk.SendMessage, message("m-2"))
	s.update(time.Hour, talk.SendMessage, message("m-3"))
	s.run()
	require.Len(t, s.ran, 4)
	require.Equal(t, s.ran[0].SessionID, s.ran[3].ParentSessionID)
	require.Contains(t, s.book.turns[1].Failure, "correct what it names, such as the model, the address or the account, and send the message again")
}

// TestConversationForgetsWhatIsRefused has the provider refuse the conversation, and the earlier turns in a new one.
// The turn runs once more without them, and not more often if that is refused, too.
func TestConversationForgetsWhatIsRefused(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]escalation.TalkState{"answered": escalation.TalkAnswered, "refused again": escalation.TalkFailed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTalkStage(t)
			s.answer = func(n int, _ activities.RunTalkInput) (activities.RunTalkResult, error) {
				report := escalation.Report{Attempts: 1, Error: "400: too large", Status: escalation.SessionFailed, Ending: escalation.EndingRequest}
				switch {
				case n == 1, n == 4 && last == escalation.TalkAnswered:
					return replied(), nil
				case n == 2:
					report.Status, report.Ending = escalation.SessionResumeFailed, escalation.EndingUnusable
				}
				return activities.RunTalkResult{Report: report, Recalled: map[bool]int{true: 1}[n == 3]}, nil
			}
			s.update(0, talk.SendMessage, message("m-1"))
			s.update(time.Minute, talk.SendMessage, message("m-2"))
			s.run()
			require.Len(t, s.ran, 4)
			require.False(t, s.ran[2].Forgets)
			require.True(t, s.ran[3].Forgets)
			require.Empty(t, s.ran[3].ParentSessionID)
			require.Equal(t, last, s.book.turns[1].State)
			require.Contains(t, s.book.turns[1].Note+s.book.turns[1].Failure, "400: too large")
		})
	}
}

// TestConversationOutgrowsTheWindow begins a new conversation before the session, because the one before is too large.
func TestConversationOutgrowsTheWindow(t *testing.T) {
	t.Parallel()
	s := newTalkStage(t)
	s.answer = func(int, activities.RunTalkInput) (activities.RunTalkResult, error) {
		result := replied()
		result.Report.ContextTokens, result.Report.ContextWindow = 190_000, 200_000
		return result, nil
	}
	s.update(0, talk.SendMessage, message("m-1"))
	s.update(time.Minute, talk.SendMessage, message("m-2"))
	s.run()
	require.Len(t, s.ran, 2)
	require.Empty(t, s.ran[1].ParentSessionID)
	require.Contains(t, s.book.turns[1].Note, "too large for the model")
	require.Equal(t, escalation.ReasonContextPressure, s.book.opened[1].ContinuityReason)
}

// TestConversationIsRefused checks turns whose session may not start or fails for good.
func TestConversationIsRefused(t *testing.T) {
	t.Parallel()
	t.Run("budget", func(t *testing.T) {
		t.Parallel()
		s := newTalkStage(t)
		s.book.refuse = &escalation.Admission{Rule: escalation.RuleDayBudget, Reason: "the budget is spent"}
		s.update(0, talk.SendMessage, message("m-1"))
		s.run()
		require.Empty(t, s.ran)
		require.Contains(t, s.book.turns[0].Failure, "a new day begins")
	})
	t.Run("provider", func(t *testing.T) {
		t.Parallel()
		s := newTalkStage(t)
		s.answer = func(int, activities.RunTalkInput) (activities.RunTalkResult, error) {
			return activities.RunTalkResult{}, temporal.NewNonRetryableApplicationError("overloaded", activities.ErrorTypeAgent, nil,
				escalation.Report{Cost: escalation.Cost{CostUSD: 0.75}, Attempts: 3, Ending: escalation.EndingProvider})
		}
		s.update(0, talk.SendMessage, message("m-1"))
		s.run()
		require.Contains(t, s.book.turns[0].Failure, "provider did not answer in 3 attempts (overloaded)")
		require.InDelta(t, 0.75, s.book.turns[0].CostUSD, 1e-9)
	})
}

// TestConversationRefusesMessages checks the messages that the validator refuses.
func TestConversationRefusesMessages(t *testing.T) {
	t.Parallel()
	s := newTalkStage(t)
	refused := map[string]*updateOutcome{
		"text is empty":  s.update(time.Second, talk.SendMessage, escalation.TalkMessage{MessageID: "m", Actor: "ada"}),
		"unknown field":  s.update(2*time.Second, talk.SendMessage, map[string]any{"message_id": "m", "text": "x", "actor": "ada", "tier": 3}),
		"no turn is run": s.update(4*time.Second, talk.StopTurn, talk.TurnRequest{Actor: "ada"}),
		"actor is empty": s.update(5*time.Second, talk.StopTurn, talk.TurnRequest{Turn: 1}),
	}
	s.run()
	for want, outcome := range refused {
		require.ErrorContains(t, outcome.rejected, want)
	}
	require.Empty(t, s.book.turns)
}

// TestConversationQueueIsBounded sends more messages than may wait, while a turn runs.
func TestConversationQueueIsBounded(t *testing.T) {
	t.Parallel()
	s := newSlowTalkStage(t, 5*time.Minute)
	s.update(0, talk.SendMessage, message("m-0"))
	var sent []*updateOutcome
	for i := range talk.MaxWaitingTurns + 1 {
		sent = append(sent, s.update(time.Minute+time.Duration(i)*time.Millisecond, talk.SendMessage, message(fmt.Sprintf("m-%d", i+1))))
	}
	again := s.update(2*time.Minute, talk.SendMessage, message("m-1"))
	s.run()
	require.NoError(t, sent[talk.MaxWaitingTurns-1].rejected)
	require.ErrorContains(t, sent[talk.MaxWaitingTurns].rejected, "100 messages wait")
	require.Equal(t, talk.Sent{Turn: 2}, again.result, "a known message is no new one")
	require.Len(t, s.ran, talk.MaxWaitingTurns+1)
	for i, input := range s.ran {
		require.Equal(t, i+1, input.Turn, "in order")
	}
}

// TestConversationStops stops a turn that waits and one that runs.
func TestConversationStops(t *testing.T) {
	t.Parallel()
	s := newSlowTalkStage(t, time.Hour)
	s.update(0, talk.SendMessage, message("m-1"))
	s.update(time.Minute, talk.SendMessage, message("m-2"))
	waiting := s.update(2*time.Minute, talk.StopTurn, talk.TurnRequest{Turn: 2, Actor: "bob"})
	s.RegisterDelayedCallback(func() { s.CancelWorkflow() }, 20*time.Hour)
	running := s.update(3*time.Minute, talk.StopTurn, talk.TurnRequest{Actor: "ada"})
	s.run()
	require.Equal(t, talk.Sent{Turn: 2}, waiting.result)
	require.Equal(t, talk.Sent{Turn: 1}, running.result)
	require.Equal(t, escalation.TalkStopped, s.book.turns[0].State)
	require.Contains(t, s.book.turns[0].Failure, "Stopped by ada")
	require.Equal(t, escalation.TalkStopped, s.book.turns[1].State)
	require.Contains(t, s.book.turns[1].Failure, "Stopped by bob")
	require.LessOrEqual(t, len(s.ran), 1)
}

// TestConversationRecallsUnanswered begins a conversation whose earlier workflow was terminated.
func TestConversationRecallsUnanswered(t *testing.T) {
	t.Parallel()
	s := newTalkStage(t)
	last := escalation.Session{ID: 7, SessionID: "00000000-0000-4000-8000-000000000001", ChainID: "conversation-ada"}
	last.ReportedSessionID = last.SessionID
	s.book.opening = escalation.TalkOpening{Last: &last, Turn: 2, Unanswered: []escalation.TalkPending{{Turn: 2, MessageID: "m-2"}}}
	s.book.turns = []escalation.TalkTurn{
		{Turn: 1, TalkMessage: message("m-1"), State: escalation.TalkAnswered}, {Turn: 2, TalkMessage: message("m-2")},
	}
	again := s.update(time.Minute, talk.SendMessage, message("m-1"))
	next := s.update(2*time.Minute, talk.SendMessage, message("m-3"))
	s.run()
	require.Equal(t, talk.Sent{Turn: 1}, again.result, "an earlier workflow has answered it")
	require.Equal(t, talk.Sent{Turn: 3}, next.result)
	require.Len(t, s.ran, 2)
	require.Equal(t, 2, s.ran[0].Turn)
	require.Equal(t, last.SessionID, s.ran[0].ParentSessionID)
}

// TestConversationSignals sends messages and a refused one by signals.
func TestConversationSignals(t *testing.T) {
	t.Parallel()
	s := newTalkStage(t)
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(talk.SendMessage, message("m-1")) }, time.Second)
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(talk.SendMessage, message("m-1")) }, 2*time.Second)
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(talk.SendMessage, map[string]any{"text": 7}) }, 3*time.Second)
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(talk.StopTurn, talk.TurnRequest{Actor: "ada"}) }, 4*time.Second)
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(talk.SendMessage, message("m-2")) }, time.Minute)
	s.run()
	require.Len(t, s.ran, 2)
	var refused []string
	for _, event := range s.book.events {
		if event.Kind == escalation.EventSignal {
			refused = append(refused, event.Message)
		}
	}
	require.Len(t, refused, 2)
	require.Contains(t, strings.Join(refused, "\n"), "text must not be a number")
	require.Contains(t, strings.Join(refused, "\n"), "no turn is running")
}

// TestConversationContinuesAsNew checks what a conversation with a long history passes to its next run.
func TestConversationContinuesAsNew(t *testing.T) {
	t.Parallel()
	s := newTalkStage(t)
	s.update(0, talk.SendMessage, message("m-1"))
	s.RegisterDelayedCallback(func() { s.SetCurrentHistoryLength(talk.MaxTalkHistory) }, time.Minute)
	s.update(2*time.Minute, talk.SendMessage, message("m-1"))
	s.RegisterDelayedCallback(func() { s.SetCurrentHistoryLength(talk.MaxTalkHistory + 1) }, 2*time.Minute+100*time.Millisecond)
	s.ExecuteWorkflow(talk.Conversation, talk.ConversationInput{})
	var anew *workflow.ContinueAsNewError
	require.ErrorAs(t, s.GetWorkflowError(), &anew)
	var input talk.ConversationInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(anew.Input, &input))
	carried := input.Carried
	require.Equal(t, []talk.KnownMessage{{MessageID: "m-1", Turn: 1, Digest: message("m-1").Digest()}}, carried.Known)
	require.Equal(t, 1, carried.Latest)
	require.Len(t, carried.State.Sessions, 1)
	require.Empty(t, carried.State.Events)
	require.Equal(t, s.ran[0].SessionID, carried.Last.SessionID)
	require.InDelta(t, 0.25, carried.State.CostUSD, 1e-9)
}

// TestConversationRefusesAnotherMessageWithAKnownID sends messages with the ID of another one: to a conversation that
// knows the ID, and to one of which only the records do.
func TestConversationRefusesAnotherMessageWithAKnownID(t *testing.T) {
	t.Parallel()
	s := newTalkStage(t)
	old := message("m-0")
	s.book.turns = []escalation.TalkTurn{{Turn: 1, TalkMessage: old, State: escalation.TalkAnswered}}
	s.book.opening.Turn = 1
	s.update(0, talk.SendMessage, message("m-1"))
	var refused []*updateOutcome
	for i, id := range []string{"m-0", "m-1"} {
		text, person := message(id), message(id)
		text.Text, person.Actor = "and nas?", "bob"
		at := time.Duration(i+1) * time.Minute
		refused = append(refused, s.update(at, talk.SendMessage, text), s.update(at+time.Second, talk.SendMessage, person))
	}
	again := []*updateOutcome{s.update(time.Hour, talk.SendMessage, old), s.update(2*time.Hour, talk.SendMessage, message("m-1"))}
	s.run()
	for _, outcome := range refused {
		require.ErrorContains(t, outcome.err, "which has another text or sender")
		application, ok := errors.AsType[*temporal.ApplicationError](outcome.err)
		require.True(t, ok && application.Type() == talk.ErrorTypeOther)
	}
	require.Equal(t, talk.Sent{Turn: 1}, again[0].result)
	require.Equal(t, talk.Sent{Turn: 2}, again[1].result)
	require.Len(t, s.ran, 1)
	require.Len(t, s.book.turns, 2)
}

// TestConversationThatCannotBeginStoresNothing begins a conversation about a chain without a conversation.
func TestConversationThatCannotBeginStoresNothing(t *testing.T) {
	t.Parallel()
	s := newTalkStage(t)
	var records *activities.Records
	s.OnActivity(records.OpenTalk, mock.Anything, mock.Anything).After(time.Second).Return(escalation.TalkOpening{},
		temporal.NewNonRetryableApplicationError("chain chain-1 has no session that has ended", activities.ErrorTypeNoConversation, nil))
	sent := s.update(0, talk.SendMessage, message("m-1"))
	s.ExecuteWorkflow(talk.Conversation, talk.ConversationInput{About: "chain-1"})
	require.ErrorContains(t, s.GetWorkflowError(), "no session that has ended")
	require.ErrorContains(t, sent.err, "no session that has ended", "its sender is told why")
	require.Empty(t, s.book.turns)
}

// TestConversationStaysAboutItsChain begins a conversation anew whose records say that it is about a chain.
func TestConversationStaysAboutItsChain(t *testing.T) {
	t.Parallel()
	s := newTalkStage(t)
	last := &escalation.Session{ChainID: "chain-1", SessionID: "00000000-0000-4000-8000-000000000001"}
	s.book.opening = escalation.TalkOpening{About: "chain-1", Turn: 1, Last: last}
	s.book.turns = []escalation.TalkTurn{{Turn: 1, TalkMessage: message("m-1"), State: escalation.TalkFailed}}
	same, other := message("m-3"), message("m-4")
	same.About, other.About = "chain-1", "chain-2"
	s.update(0, talk.SendMessage, message("m-2"))
	s.update(time.Minute, talk.SendMessage, same)
	refused := s.update(2*time.Minute, talk.SendMessage, other)
	s.run()
	require.ErrorContains(t, refused.err, "is about chain chain-1, and not about chain-2")
	require.Len(t, s.book.turns, 3)
	require.Equal(t, "chain-1", s.book.turns[1].About, "each turn says what it is about")
}

// TestConversationWithoutRecords sends messages to a conversation with a long history while the database is away, for
// ten minutes. It starts no timers but those of its retries, and its running turn can be stopped.
func TestConversationWithoutRecords(t *testing.T) {
	t.Parallel()
	s := newSlowTalkStage(t, time.Hour)
	timers := 0
	s.SetOnTimerScheduledListener(func(string, time.Duration) { timers++ })
	s.update(0, talk.SendMessage, message("m-0"))
	s.RegisterDelayedCallback(func() {
		s.SetCurrentHistoryLength(talk.MaxTalkHistory + 1)
		s.book.away = true
	}, time.Second)
	var sent []*updateOutcome
	for i := range talk.MaxArriving + 1 {
		sent = append(sent, s.update(time.Minute+time.Duration(i)*time.Millisecond, talk.SendMessage, message(fmt.Sprint("m-", i+1))))
	}
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(talk.SendMessage, message("m-signal")) }, 61*time.Second)
	stopped := s.update(2*time.Minute, talk.StopTurn, talk.TurnRequest{Actor: "ada"})
	var before, after int
	s.RegisterDelayedCallback(func() { before = timers }, 3*time.Minute)
	s.RegisterDelayedCallback(func() { after = timers }, 10*time.Minute) // then the test environment gives up the activities
	s.RegisterDelayedCallback(func() { s.CancelWorkflow() }, 13*time.Minute)
	s.run()
	require.NoError(t, sent[0].rejected)
	require.ErrorContains(t, sent[talk.MaxArriving].rejected, "messages are being stored already")
	require.True(t, stopped.done)
	require.Equal(t, talk.Sent{Turn: 1}, stopped.result)
	require.LessOrEqual(t, after-before, 2, "it does not spin")
	require.Len(t, s.book.turns, 1, "what was not stored is not answered")
}

// TestConversationStopsAfterManyMessages sends a message again and again while a turn runs, more often than Temporal
// accepts updates in a run. The turn can be stopped, and the next run takes messages.
func TestConversationStopsAfterManyMessages(t *testing.T) {
	t.Parallel()
	s := newSlowTalkStage(t, 3*time.Hour)
	sent := make([]*updateOutcome, 2*talk.MaxTalkUpdates+1)
	const batch = 100 // the environment holds 1,000 callbacks
	for from := 0; from < len(sent); from += batch {
		s.RegisterDelayedCallback(func() {
			for i := from; i < min(from+batch, len(sent)); i++ {
				at := time.Duration(i-from)*time.Second + time.Duration(i) // names the update, so each has another
				sent[i] = s.update(at, talk.SendMessage, message("m-1"))
			}
		}, time.Duration(from)*time.Second)
	}
	stopped := s.update(time.Hour, talk.StopTurn, talk.TurnRequest{Actor: "ada"})
	s.RegisterDelayedCallback(func() { s.SetCurrentHistoryLength(100) }, time.Hour+100*time.Millisecond)
	s.ExecuteWorkflow(talk.Conversation, talk.ConversationInput{})
	var anew *workflow.ContinueAsNewError
	require.ErrorAs(t, s.GetWorkflowError(), &anew)
	require.NoError(t, sent[2*talk.MaxTalkUpdates-1].rejected)
	require.ErrorContains(t, sent[2*talk.MaxTalkUpdates].rejected, "send it again when the running turn has ended")
	require.Equal(t, talk.Sent{Turn: 1}, stopped.result)
	require.Len(t, s.book.turns, 1)
}

// TestConversationCancelledWhileAMessageIsStored cancels a conversation while a message is on its way to the records.
// Its turn ends.
func TestConversationCancelledWhileAMessageIsStored(t *testing.T) {
	t.Parallel()
	s := newTalkStage(t)
	var records *activities.Records
	s.OnActivity(records.StoreMessage, mock.Anything, mock.Anything).After(10 * time.Second).Return(
		func(ctx context.Context, input activities.StoreMessageInput) (escalation.TalkStored, error) {
			return s.book.AddMessage(ctx, input.ConversationID, input.Message, input.After, input.At)
		})
	sent := s.update(time.Minute, talk.SendMessage, message("m-1"))
	s.RegisterDelayedCallback(s.CancelWorkflow, time.Minute+time.Second)
	s.run()
	if sent.err == nil {
		require.Len(t, s.book.turns, 1)
		require.Equal(t, escalation.TalkStopped, s.book.turns[0].State)
		require.Contains(t, s.book.turns[0].Failure, "the conversation was ended")
		return
	}
	require.Empty(t, s.book.turns, "a refused message leaves nothing")
}

// TestConversationInputIsChecked checks inputs that a conversation refuses.
func TestConversationInputIsChecked(t *testing.T) {
	t.Parallel()
	for want, tt := range map[string]struct{ id, input string }{
		"must begin with conversation-": {"chain-1", `{}`},
		"must name a chain":             {"conversation-ada", `{"about":"conversation-bob"}`},
		"carried is not for people":     {"conversation-ada", `{"carried":{}}`},
		"unknown field":                 {"conversation-ada", `{"tier":3}`},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			s := newTalkStage(t)
			s.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: tt.id})
			s.ExecuteWorkflow(talk.ConversationWorkflow, json.RawMessage(tt.input))
			require.ErrorContains(t, s.GetWorkflowError(), want)
			require.True(t, parts.Permanent(s.GetWorkflowError()))
		})
	}
}
