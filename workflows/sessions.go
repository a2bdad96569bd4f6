package workflows

import (
	"cmp"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// sessions runs the sessions of a workflow, one at a time: it has each admitted and recorded before its agent starts, runs
// the agent, and records how the session ended.
type sessions struct {
	log    *eventLog
	policy *escalation.Policy
	// directory is where the agents work; empty for the usual one.
	directory string
	// inFlight are the tool calls that the last session left without a result.
	inFlight []activities.ToolCall
	// closing is the end of the last session, which the next record takes along; nil if it is recorded.
	closing *activities.CloseSessionInput
	// opened counts the sessions that this run has asked for.
	opened int
}

// sessionRequest asks for a session.
type sessionRequest struct {
	tier    escalation.Tier
	purpose escalation.Purpose
	// context says how the session gets its context.
	context escalation.ContinuityChoice
	// origin is the session whose conversation, or whose handoff, it starts from; nil if none.
	origin *escalation.Session
	// continues says that it continues the conversation of origin, which was interrupted.
	continues bool
	// force passes the cooldowns, and approved the limit of escalations, because a person said so.
	force, approved bool
	// waitingSince is when the workflow began to wait for this admission; zero if it has not.
	waitingSince time.Time
}

// open has a session admitted and stores its record, so that it has an ID before it has a process. The result says why, if
// it is refused. The record of the session before is closed with it, if that is still to be done.
//
// If the workflow is cancelled before the session is open, open withdraws the record and returns the error of ctx: no agent has
// run.
func (s *sessions) open(ctx workflow.Context, request sessionRequest) (escalation.AdmissionResult, error) {
	if ctx.Err() != nil {
		return escalation.AdmissionResult{}, cmp.Or(s.flush(ctx), ctx.Err())
	}
	session := s.newSession(ctx, request)
	recording := withOpening(ctx, "open record: "+summarize(session))
	events := s.log.take()
	var records *activities.Records
	var opening escalation.AdmissionResult
	err := workflow.ExecuteActivity(recording, records.OpenSession, activities.OpenSessionInput{
		Session: session, Request: s.admission(ctx, request), Policy: *s.policy, Events: events, Closing: s.closing,
	}).Get(recording, &opening)
	if err != nil && ctx.Err() != nil {
		s.log.unrecorded = events // those of them that are recorded are known by their keys
		s.withdraw(ctx, session)
		return opening, cmp.Or(s.flush(ctx), ctx.Err())
	}
	if err != nil {
		return opening, err
	}
	s.closing = nil
	if opening.Refusal != nil {
		return opening, nil
	}
	kind := escalation.EventSessionStarted
	if request.continues {
		kind = escalation.EventSessionReused
	}
	s.log.add(ctx, escalation.Event{
		Kind: kind, SessionID: opening.Session.SessionID, Message: describeSession(opening.Session, request),
	})
	s.log.chain.Sessions = append(s.log.chain.Sessions, opening.Session)
	return opening, s.log.publish(ctx)
}

// newSession returns the session that is asked for, as it is before it is admitted.
func (s *sessions) newSession(ctx workflow.Context, request sessionRequest) escalation.Session {
	session := escalation.Session{
		ChainID:          s.log.chain.ID,
		FirstRunID:       workflow.GetInfo(ctx).FirstRunID,
		SessionID:        s.newSessionID(ctx),
		Tier:             request.tier,
		Model:            s.policy.For(request.tier).Model,
		Trigger:          s.log.chain.Trigger,
		Continuity:       request.context.Continuity,
		ContinuityReason: request.context.Reason,
		Purpose:          request.purpose,
		StartedAt:        workflow.Now(ctx),
		Report:           escalation.Report{Status: escalation.SessionRunning},
	}
	if request.continues {
		session.Purpose = escalation.PurposeContinuation
		session.Continuity, session.ContinuityReason = escalation.ContinuityResume, escalation.ReasonContinued
	}
	if request.origin != nil {
		session.ParentID = request.origin.ID
	}
	return session
}

// newSessionID returns the ID of the next conversation. It follows from the run and the number of the session, which takes no
// event of the history. A reset makes a new run, and so new IDs.
func (s *sessions) newSessionID(ctx workflow.Context) string {
	s.opened++
	execution := workflow.GetInfo(ctx).WorkflowExecution
	return uuid.NewSHA1(sessionNamespace, fmt.Appendf(nil, "%s/%s/%d", execution.ID, execution.RunID, s.opened)).String()
}

// sessionNamespace is the namespace (RFC 9562, section 6.6) of the IDs of sessions. It was drawn at random.
var sessionNamespace = uuid.MustParse("0c5d4f3e-8c0b-4d0e-9a53-5f0c4f6a7d21")

// review reports whether the session would be admitted now.
func (s *sessions) review(ctx workflow.Context, request sessionRequest) (escalation.Admission, error) {
	if err := s.flush(ctx); err != nil {
		return escalation.Admission{}, err
	}
	var records *activities.Records
	var admission escalation.Admission
	err := readRecords(withRecords(ctx, "may "+request.tier.String()+" start now?"), records.Review, activities.ReviewInput{
		Request: s.admission(ctx, request), Policy: *s.policy,
	}, &admission)
	return admission, err
}

// admission returns what the admission of a session depends on.
func (s *sessions) admission(ctx workflow.Context, request sessionRequest) escalation.AdmissionRequest {
	return escalation.AdmissionRequest{
		ChainID:       s.log.chain.ID,
		FirstRunID:    workflow.GetInfo(ctx).FirstRunID,
		Tier:          request.tier,
		Purpose:       request.purpose,
		At:            workflow.Now(ctx),
		Services:      s.log.chain.Services,
		ChainSpentUSD: s.log.chain.SpentAtMostUSD(),
		Force:         request.force,
		Approved:      request.approved,
		WaitingSince:  request.waitingSince,
	}
}

// withdraw closes the record of a session that will not run, if there is one. It tries once: what is left open the
// workers' sweep closes.
func (s *sessions) withdraw(ctx workflow.Context, session escalation.Session) {
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	var records *activities.Records
	recording := withOneTry(disconnected, "withdraw record: "+summarize(session))
	err := workflow.ExecuteActivity(recording, records.WithdrawSession, activities.CloseSessionInput{
		ChainID:   session.ChainID,
		SessionID: session.SessionID,
		EndedAt:   workflow.Now(ctx),
		Report:    escalation.Report{Status: escalation.SessionStopped, Error: cancelledBeforeSession},
		Release:   true,
	}).Get(recording, nil)
	if err != nil {
		workflow.GetLogger(ctx).Warn("the record could not be withdrawn", "session_id", session.SessionID, "error", err)
	}
}

// cancelledBeforeSession is why a session did not run.
const cancelledBeforeSession = "the chain was cancelled before the session began"

// run has an activity run the agent of a session, and decodes what it returns into result. It returns the report of an agent
// that could not be judged; nil if it could.
//
// When the workflow is cancelled, the agent is stopped and reports what it has spent. Temporal drops an attempt that waits
// for its retry without a report: so run looks up first what the attempts before have spent.
func (s *sessions) run(ctx workflow.Context, session escalation.Session, activity, input, result any) (unjudged *escalation.Report) {
	if ctx.Err() != nil {
		return stopped(escalation.Report{})
	}
	agent, stop := workflow.NewDisconnectedContext(withTier(ctx, s.policy.For(session.Tier), summarize(session)))
	defer stop()
	running := workflow.ExecuteActivity(agent, activity, input)
	spent := escalation.Report{CostEstimated: true} // unknown, if somebody else cancels it
	workflow.NewSelector(ctx).
		AddFuture(running, func(workflow.Future) {}).
		AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {
			spent = spentSoFar(ctx, session.SessionID)
			stop()
		}).
		Select(ctx)
	switch err := running.Get(agent, result); {
	case err == nil:
		return nil
	case temporal.IsCanceledError(err):
		return stopped(spent)
	default:
		report := activities.SpentBefore(err)
		report.Status, report.Error = escalation.SessionFailed, rootMessage(err)
		return &report
	}
}

// stopped returns the report of an agent that was not at work when the workflow was cancelled.
func stopped(spent escalation.Report) *escalation.Report {
	spent.Status, spent.Error = escalation.SessionStopped, "the chain was cancelled"
	return &spent
}

// spentSoFar returns the recorded spending of a session's attempts. If the lookup fails, the cost is marked unknown.
func spentSoFar(ctx workflow.Context, sessionID string) escalation.Report {
	looking, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	var attempts *activities.Attempts
	var spent escalation.Report
	err := workflow.ExecuteActivity(withSpending(looking, "what the agent has spent"), attempts.SpentSoFar,
		activities.SpentSoFarInput{SessionID: sessionID}).Get(looking, &spent)
	if err != nil {
		workflow.GetLogger(ctx).Warn("nobody can tell what a session has spent", "session_id", sessionID, "error", err)
		return escalation.Report{CostEstimated: true}
	}
	return spent
}

// ended updates the visible state with a session that has ended. close records it.
func (s *sessions) ended(ctx workflow.Context, session escalation.Session) {
	session.SetReport(session.Report)
	chain := &s.log.chain
	*chain.Last() = session
	chain.CostUSD = chain.Earlier.CostUSD + escalation.TotalCostUSD(chain.Sessions)
	if session.Verdict != nil && len(session.Verdict.Services) > 0 {
		chain.Services = session.Verdict.Services
	}
	s.log.add(ctx, escalation.Event{
		Kind: escalation.EventSessionEnded, SessionID: session.SessionID, Message: describeEnd(session),
	})
}

// close records how a session ended, together with the events that explain what follows. With release other chains may
// repair the services of this one. It works when ctx is cancelled, too.
func (s *sessions) close(ctx workflow.Context, session escalation.Session, release bool) error {
	s.closeWithNext(session)
	s.closing.Release = release
	return s.flush(ctx)
}

// closeWithNext is close for a session that another one follows: the record of that takes the end along, so that both take one
// activity.
func (s *sessions) closeWithNext(session escalation.Session) {
	s.closing = &activities.CloseSessionInput{
		ChainID:   session.ChainID,
		SessionID: session.SessionID,
		EndedAt:   session.EndedAt,
		Report:    session.Report,
		Events:    s.log.take(),
	}
}

// flush records the end of the last session, if that is still to be done. It works when ctx is cancelled, too.
func (s *sessions) flush(ctx workflow.Context) error {
	if s.closing == nil {
		return nil
	}
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	recording := withRecords(disconnected, "close record: "+summarize(*s.log.chain.Last()))
	var records *activities.Records
	if err := workflow.ExecuteActivity(recording, records.CloseSession, *s.closing).Get(recording, nil); err != nil {
		return err
	}
	s.closing = nil
	return nil
}

// find returns what is recorded about a conversation.
func (s *sessions) find(ctx workflow.Context, sessionID string) (activities.FindSessionResult, error) {
	var records *activities.Records
	var known activities.FindSessionResult
	err := readRecords(withRecords(ctx, "look up the conversation to resume"), records.FindSession, sessionID, &known)
	return known, err
}

// transcript asks the agents' workers whether one of them can resume a conversation.
func (s *sessions) transcript(ctx workflow.Context, sessionID string) escalation.TranscriptState {
	var tiers *activities.Tiers
	var found activities.FindTranscriptResult
	err := workflow.ExecuteActivity(withTranscript(ctx, "is the conversation still there?"), tiers.FindTranscript,
		activities.FindTranscriptInput{SessionID: sessionID, Directory: s.directory}).Get(ctx, &found)
	switch {
	case err != nil:
		workflow.GetLogger(ctx).Warn("nobody can tell whether a transcript is there", "session_id", sessionID, "error", err)
		return escalation.TranscriptUnknown
	case found.Reachable:
		return escalation.TranscriptReachable
	default:
		return escalation.TranscriptGone
	}
}

// window returns the context window of a tier's model: as the CLI reported it last to this workflow, else as configured.
func (s *sessions) window(policy escalation.TierPolicy) int {
	window := policy.ContextWindow
	for i := range s.log.chain.Sessions {
		if session := &s.log.chain.Sessions[i]; session.Model == policy.Model && session.ContextWindow > 0 {
			window = session.ContextWindow
		}
	}
	return window
}
