package talk

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows/parts"
)

// answer runs a turn to its end. A turn always ends with a reply or with a sentence that says why there is none.
func (c *conversationRun) answer(ctx workflow.Context, turn *talkTurn) {
	working, stop := workflow.WithCancel(ctx)
	defer stop()
	c.interrupt = stop
	if turn.StoppedBy != "" { // it was stopped while it waited
		stop()
	}
	decision, cost := c.converse(working, turn)
	c.conclude(ctx, turn, decision, cost)
}

// refusedConversation is the latest conversation that a session could not continue, and why. Later turns do not try it
// again.
type refusedConversation struct {
	ID      string `json:"id"`
	Because string `json:"because,omitempty"`
}

// converse runs the session of a turn. If that session cannot use the conversation, converse runs one more session, in
// a new conversation, and at most another one without the earlier turns. It returns how the turn ends, and its cost.
// The end of ctx stops the session.
func (c *conversationRun) converse(
	ctx workflow.Context, turn *talkTurn,
) (decision escalation.TalkDecision, cost escalation.Cost) {
	var input escalation.TalkInput
	before, err := c.precedingSession(ctx, turn)
	if c.before = before.Parent; c.before != nil {
		input.LostHost = c.before.Host
	}
	if err == nil {
		err = c.loadPolicy(ctx)
	}
	if err != nil {
		input.Session.Error = parts.RootMessage(err)
	} else {
		tier := c.Policy.For(escalation.TierObserve)
		before.Window, before.Threshold, before.MaxTokens = c.Sessions.Window(tier), c.Policy.ResumeThreshold,
			c.Policy.ResumeMaxTokens
		input.Limit = tier
		if c.before != nil && c.refused.ID != "" && c.refused.ID == c.before.ReportedSessionID {
			before.Parent, input.LostBecause = c.before.Disown(escalation.Session{}), c.refused.Because
		}
		choice := escalation.ChooseTalkContinuity(before)
		input.Lost = choice.LostBy()
		cost = c.attempt(ctx, turn, choice, &input)
	}
	for {
		input.StoppedBy, input.Ended = turn.StoppedBy, turn.StoppedBy == "" && ctx.Err() != nil
		decision = escalation.DecideTalk(input)
		if !decision.Again {
			if input.Again && input.Session.Ending == escalation.EndingRequest {
				c.refused = refusedConversation{} // a new conversation is refused, too: the old one was not to blame
			}
			return decision, cost
		}
		input.Again, input.Forgets, input.Lost = true, decision.Forgets, decision.Lost
		if !decision.Forgets {
			before.Parent = c.before.Disown(input.Session)
		}
		if !decision.Forgets || input.LostBecause == "" {
			input.LostBecause = input.Session.Error
		}
		cost = cost.Plus(c.attempt(ctx, turn, escalation.ChooseTalkContinuity(before), &input))
	}
}

// precedingSession returns the session whose conversation a turn continues: that of the answer that the message
// follows. If that session is no longer recorded, its conversation is lost.
func (c *conversationRun) precedingSession(ctx workflow.Context, turn *talkTurn) (escalation.ContinuityInput, error) {
	switch {
	case turn.After == nil:
		return escalation.ContinuityInput{Parent: c.last}, nil
	case *turn.After == 0:
		return escalation.ContinuityInput{}, nil
	}
	var records *activities.Records
	var session *escalation.Session
	err := parts.ReadRecords(parts.WithRecords(ctx, fmt.Sprintf("the session of turn %d", *turn.After)),
		records.ReadAnswerSession,
		activities.TurnInput{ConversationID: c.Log.Chain.ID, Turn: *turn.After}, &session)
	if session == nil {
		unknown := &escalation.Session{
			Unusable: escalation.ReasonTranscriptLost,
			Report:   escalation.Report{ReportedSessionID: "unknown"},
		}
		return escalation.ContinuityInput{Parent: unknown}, err
	}
	return escalation.ContinuityInput{Parent: session}, err
}

// loadPolicy takes a snapshot of the policy for a turn.
func (c *conversationRun) loadPolicy(ctx workflow.Context) error {
	var settings *activities.Settings
	var policy escalation.Policy
	err := parts.ReadRecords(parts.WithRecords(ctx, "policy snapshot"), settings.LoadTalkPolicy, struct{}{}, &policy)
	if err == nil {
		*c.Policy = policy
	}
	return err
}

// attempt runs one session of a turn, and puts into input what came of it. It returns the cost of the session.
func (c *conversationRun) attempt(
	ctx workflow.Context, turn *talkTurn, choice escalation.ContinuityChoice, input *escalation.TalkInput,
) (cost escalation.Cost) {
	input.Refusal, input.Session, input.Replied, input.Unarchived = nil, escalation.Session{}, false, false
	opening, err := c.admit(ctx, turn, parts.SessionRequest{
		Tier: escalation.TierObserve, Purpose: escalation.PurposeTalk, Context: choice, Origin: c.origin(choice),
		Actor: turn.Actor,
	})
	switch {
	case err != nil:
		input.Session.Status, input.Session.Error = escalation.SessionFailed, parts.RootMessage(err)
		return cost
	case opening.Refusal != nil:
		input.Refusal = opening.Refusal
		return cost
	}
	session, result := c.runTalk(ctx, turn, opening.Session, input.Forgets)
	c.Sessions.Ended(ctx, session)
	c.Sessions.CloseWithNext(session)
	input.Session, input.Replied, input.Recalled, input.Unarchived = session, result.Replied, result.Recalled,
		result.Unarchived
	if result.Replied {
		c.last = parts.Brief(session)
	}
	if c.before != nil && session.Status == escalation.SessionResumeFailed { // even if somebody has stopped the turn
		c.refused = refusedConversation{c.before.ReportedSessionID, session.Error}
	}
	return session.Cost
}

// The pauses between two requests for admission of a session while other conversations answer the same person.
const (
	firstAdmissionPause = time.Second
	maxAdmissionPause   = 30 * time.Second
)

// admit opens a session. It waits while other conversations answer the same person. The end of ctx ends the wait.
func (c *conversationRun) admit(
	ctx workflow.Context, turn *talkTurn, request parts.SessionRequest,
) (escalation.AdmissionResult, error) {
	defer func() { turn.Waits = "" }()
	for pause := firstAdmissionPause; ; pause = min(2*pause, maxAdmissionPause) {
		opening, err := c.Sessions.Open(ctx, request)
		if err != nil || opening.Refusal == nil || opening.Refusal.Rule != escalation.RuleTalksOfPerson {
			return opening, err
		}
		turn.Waits = opening.Refusal.Reason
		if err := workflow.NewTimerWithOptions(ctx, pause, workflow.TimerOptions{
			Summary: "other conversations answer the same person",
		}).Get(ctx, nil); err != nil {
			return escalation.AdmissionResult{}, err
		}
	}
}

// origin returns the session that the next session forks; nil if the choice is a new conversation.
func (c *conversationRun) origin(choice escalation.ContinuityChoice) *escalation.Session {
	if choice.Continuity != escalation.ContinuityResume {
		return nil
	}
	return c.before
}

// runTalk runs the agent of a session, and returns the ended session. The argument forgets keeps the earlier turns from
// a new conversation.
func (c *conversationRun) runTalk(
	ctx workflow.Context, turn *talkTurn, session escalation.Session, forgets bool,
) (escalation.Session, activities.RunTalkResult) {
	input := activities.RunTalkInput{
		ConversationID: session.ChainID, FirstRunID: session.FirstRunID, Turn: turn.Turn, SessionID: session.SessionID,
		Policy: c.Policy.OfSession(escalation.TierObserve), BudgetUSD: session.BudgetUSD, Forgets: forgets,
	}
	if session.Continuity == escalation.ContinuityResume {
		input.ParentSessionID = c.before.SessionID
		if c.before.ChainID != session.ChainID {
			input.About = c.before.ChainID
		}
	}
	var tiers *activities.Tiers
	var result activities.RunTalkResult
	ended, _ := c.Sessions.Run(ctx, session, tiers.RunTalk, input, &result)
	return ended, result
}

// conclude records the end of a turn and of its session. If the records refuse it, conclude logs that, and the
// conversation goes on. Cancelling ctx does not prevent the recording.
func (c *conversationRun) conclude(
	ctx workflow.Context, turn *talkTurn, decision escalation.TalkDecision, cost escalation.Cost,
) {
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	recording := parts.WithRecords(disconnected, fmt.Sprintf("end of turn %d: %s", turn.Turn, decision.State))
	if ctx.Err() != nil { // a cancelled conversation must not wait for an unavailable database
		recording = parts.WithOneTry(recording, "end of a turn")
	}
	var records *activities.Records
	ended := workflow.ExecuteActivity(recording, records.EndTurn, activities.EndTurnInput{
		TurnInput: activities.TurnInput{ConversationID: c.Log.Chain.ID, Turn: turn.Turn},
		End: escalation.TalkEnd{
			State: decision.State, Note: decision.Note, Failure: decision.Failure, Cost: cost,
			EndedAt: workflow.Now(ctx),
		},
	})
	for _, err := range []error{c.Sessions.Flush(ctx), ended.Get(recording, nil)} {
		if err != nil {
			workflow.GetLogger(ctx).Error("the end of a turn was not recorded", "turn", turn.Turn, "error", err)
		}
	}
	c.turns.end(decision.State, cost)
	if err := c.Log.Publish(ctx); err != nil {
		workflow.GetLogger(ctx).Error("a conversation could not be published", "error", err)
	}
}
