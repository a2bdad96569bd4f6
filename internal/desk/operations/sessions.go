package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// Sessions shows sessions. The records answer, and the archive of conversations.
type Sessions struct{ *backend }

// SessionDetail is a session, with all that is recorded about it. Texts of agents are masked.
type SessionDetail struct {
	Session escalation.Session `json:"session"`
	// Parent is the session whose context this one continues; nil if there is none. Children are those that continue
	// this one, at most 1,000.
	Parent   *SessionRef  `json:"parent,omitempty"`
	Children []SessionRef `json:"children"`
	// Calls lists the decisions on the session's calls: first the denied ones, then the others, each in order.
	Calls []escalation.CallDecision `json:"calls"`
	// Denied and Allowed count all decisions. If there are more than 1,000, Calls lacks the latest allowed ones.
	Denied  int `json:"denied"`
	Allowed int `json:"allowed"`
	// Actions lists the restarts and redeployments of the session, oldest first.
	Actions []ServiceAction `json:"actions"`
	// Events lists the events of the session, oldest first.
	Events []escalation.Event `json:"events"`
	// Attempts lists what is known of the attempts at the session that did not become its report, oldest first.
	Attempts []PastAttempt `json:"attempts"`
	// Attempt is the current attempt at a running session; nil if the session has ended, or if Temporal cannot tell.
	Attempt *Attempt `json:"attempt,omitempty"`
	// Doing is one line about what a running session does now; empty if nobody knows.
	Doing string `json:"doing,omitempty"`
	// SoFarUSD is the cost of a running session until now, in US dollars; 0 if nobody knows.
	SoFarUSD     float64    `json:"so_far_usd,omitempty"`
	Conversation Transcript `json:"conversation"`
}

// SessionRef names another session.
type SessionRef struct {
	Number  int64           `json:"number"`
	ChainID string          `json:"chain_id"`
	Tier    escalation.Tier `json:"tier"`
	Model   string          `json:"model"`
	// Purpose and Phase are those of the session; empty for the usual work of its tier.
	Purpose    escalation.Purpose          `json:"purpose,omitempty"`
	Phase      string                      `json:"phase,omitempty"`
	Status     escalation.SessionStatus    `json:"status"`
	Continuity escalation.Continuity       `json:"continuity"`
	Reason     escalation.ContinuityReason `json:"continuity_reason"`
	CostUSD    float64                     `json:"cost_usd"`
	// CostEstimated reports whether a part of the cost is an estimate.
	CostEstimated bool `json:"cost_estimated,omitempty"`
}

// PastAttempt is an attempt at a session, and why it ended.
type PastAttempt struct {
	At time.Time `json:"at"`
	// Why says in a sentence why the attempt ended, or why there was another one.
	Why string `json:"why"`
	// CostUSD is the cost of a report that another one has replaced after a reset, in US dollars; 0 for other attempts,
	// whose cost is part of the session's.
	CostUSD float64 `json:"cost_usd,omitempty"`
}

// maxSessionCalls limits the decisions on calls of a SessionDetail.
const maxSessionCalls = 1_000

// Get returns the session with this number. The error is KindNotFound if there is none. Only for a running
// session it asks Temporal, and it does without the answer if there is none.
func (s Sessions) Get(ctx context.Context, number int64) (SessionDetail, error) {
	records, _, err := s.openRecords(ctx)
	if err != nil {
		return SessionDetail{}, err
	}
	found, err := records.SessionDetail(ctx, number)
	if err != nil {
		return SessionDetail{}, unknownSession(number, err)
	}
	detail := SessionDetail{
		Session: found.Session, Events: found.Events, Attempts: attemptsOf(found),
		Children: []SessionRef{},
	}
	if found.Parent != nil {
		parent := refOf(*found.Parent)
		detail.Parent = &parent
	}
	for _, child := range found.Children {
		detail.Children = append(detail.Children, refOf(child))
	}
	if err := s.addCalls(ctx, records, &detail); err != nil {
		return SessionDetail{}, err
	}
	if detail, err = masked(s.backend, detail); err != nil {
		return SessionDetail{}, err
	}
	if found.Session.Status == escalation.SessionRunning {
		var progress *activities.TierProgress
		detail.Attempt, progress = s.now(ctx, found.Session)
		if progress != nil {
			detail.SoFarUSD = progress.Now.CostUSD
		}
		if detail.Attempt != nil {
			detail.Doing = doing(detail.Attempt, progress)
		}
	}
	detail.Conversation = s.transcript(ctx, found.Session, found.Parent)
	return detail, nil
}

// Calls returns the decisions on the calls of the session with this number, in order, the first 5,000 at most.
func (s Sessions) Calls(ctx context.Context, number int64) ([]escalation.CallDecision, error) {
	records, _, err := s.openRecords(ctx)
	if err != nil {
		return nil, err
	}
	line, err := records.Backward(ctx, number)
	if err != nil {
		return nil, unknownSession(number, err)
	}
	return records.DecisionsOf(ctx, []string{line[0].SessionID})
}

// addCalls adds the decisions on the session's calls, and its actions on services.
func (s Sessions) addCalls(ctx context.Context, records *store.Store, detail *SessionDetail) error {
	calls, err := records.SessionCalls(ctx, detail.Session.SessionID, maxSessionCalls)
	if err != nil {
		return err
	}
	detail.Calls, detail.Denied, detail.Allowed = calls.Decisions, calls.Denied, calls.Allowed
	actions, err := records.SessionActions(ctx, detail.Session.SessionID)
	detail.Actions = []ServiceAction{} // an empty list is [] in JSON
	for _, action := range actions {
		detail.Actions = append(detail.Actions, s.action(action))
	}
	return err
}

// masked returns a value with the secrets in all its texts masked. The value must come back from JSON unchanged.
func masked[T any](b *backend, value T) (clean T, err error) {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(b.mask.JSON(text), &clean)
	}
	return clean, err
}

func refOf(session escalation.Session) SessionRef {
	return SessionRef{
		Number: session.ID, ChainID: session.ChainID, Tier: session.Tier, Model: session.Model, Status: session.Status,
		Continuity: session.Continuity, Reason: session.ContinuityReason, CostUSD: session.CostUSD,
		CostEstimated: session.CostEstimated, Purpose: session.Purpose, Phase: session.Phase,
	}
}

// attemptsOf lists what is known of the attempts at a session: the reports that were replaced, the events that say that
// it was begun again, and its own end if that was no verdict.
func attemptsOf(found store.SessionDetail) []PastAttempt {
	attempts := []PastAttempt{} // an empty list is [] in JSON
	for _, replaced := range found.Replaced {
		why := fmt.Sprintf("the report %s was replaced after a reset of the chain", replaced.Report.Status)
		if replaced.Report.Error != "" {
			why += ": " + replaced.Report.Error
		}
		attempts = append(attempts, PastAttempt{At: replaced.EndedAt, Why: why, CostUSD: replaced.Report.CostUSD})
	}
	for _, event := range found.Events {
		if event.Kind == escalation.EventSessionReused {
			attempts = append(attempts, PastAttempt{At: event.At, Why: event.Message})
		}
	}
	if session := found.Session; session.Error != "" {
		attempts = append(attempts, PastAttempt{
			At:  session.EndedAt,
			Why: fmt.Sprintf("%s: %s", session.Status, session.Error),
		})
	}
	slices.SortStableFunc(attempts, func(a, b PastAttempt) int { return a.At.Compare(b.At) })
	return attempts
}

// now returns the current attempt at a running session, and its last heartbeat; nil if Temporal cannot tell.
func (b *backend) now(ctx context.Context, session escalation.Session) (*Attempt, *activities.TierProgress) {
	ctx, cancel := context.WithTimeout(ctx, b.Patience)
	defer cancel()
	connection, _, err := b.connect(ctx)
	if err != nil {
		return nil, nil
	}
	return AttemptAt(ctx, connection, session.ChainID, escalation.Chain{Sessions: []escalation.Session{session}})
}
