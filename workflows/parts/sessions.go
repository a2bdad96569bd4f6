package parts

import (
	"cmp"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// Sessions runs the sessions of a workflow, one at a time. It admits and records each session before its agent starts.
// Then it runs the agent, and records the end of the session.
type Sessions struct {
	Log    *EventLog
	Policy *escalation.Policy
	// incidents receives the incidents that the records return; nil if the workflow has none.
	incidents *Incidents
	// people is told of a limit for which an author or a reviewer waits; nil if no session of the workflow waits.
	people *Notifier
	// WaitingSince is the time at which an author's or a reviewer's session began to wait; zero if none waits.
	WaitingSince time.Time
	// HasRequest reports whether the workflow's input contains a request of an operator.
	HasRequest bool
	// directory is the agents' working directory; empty for the default one.
	Directory string
	// InFlight holds the tool calls that had no result when the last session ended.
	InFlight []activities.ToolCall
	// closing is the end of the last session, which the next activity must record; nil if the end is recorded.
	Closing *activities.CloseSessionInput
	// notes holds what the records know of the gate after the last session; nil if none follows.
	notes *escalation.GateNotes
	// opened counts the sessions whose admission this run has requested.
	opened int
	// StoppedBecause is the error of a session that was stopped; empty for "the chain was cancelled".
	StoppedBecause string
}

// SessionRequest describes a session to open.
type SessionRequest struct {
	Tier    escalation.Tier
	Purpose escalation.Purpose
	// context says how the session gets its context.
	Context escalation.ContinuityChoice
	// phase is the number of the phase of a plan; empty if the session works on no plan.
	Phase string
	// origin is the session whose conversation or handoff the new session starts from; nil if there is none.
	Origin *escalation.Session
	// continues reports whether the session continues the interrupted conversation of origin.
	Continues bool
	// corrects reports that the session corrects what the workflow has committed.
	Corrects bool
	// force skips the cooldowns and the limit of the account, and passes lists rules to skip. Each requires a person's
	// decision.
	Force  bool
	Passes []escalation.Rule
	// actor is the person whose message a session of a conversation answers.
	Actor string
	// WaitingSince is the time at which the workflow began to wait for this admission; zero if it has not waited.
	WaitingSince time.Time
}

// Open requests admission of a session and stores its record, so that the session has a record before it has a process.
// If admission is refused, the result contains the reason. If the record of the previous session is still open, the
// same activity closes that record.
//
// If the workflow is cancelled before the session is open, Open withdraws the record and returns the error of ctx. In
// this case no agent has run.
func (s *Sessions) Open(ctx workflow.Context, request SessionRequest) (escalation.AdmissionResult, error) {
	if ctx.Err() != nil {
		return escalation.AdmissionResult{}, cmp.Or(s.Flush(ctx), ctx.Err())
	}
	session := s.newSession(ctx, request)
	policy := s.Policy.OfPurpose(request.Purpose)
	recording := WithOpening(ctx, "open record: "+summarize(session))
	events := s.Log.take()
	input := activities.OpenSessionInput{
		Session: session, Request: s.admission(ctx, request), Policy: policy.OfSession(request.Tier), Events: events,
		Closing: s.Closing,
	}
	opening, err := s.record(recording, &input)
	if err != nil && ctx.Err() != nil {
		s.Log.unrecorded = events // some may be recorded; their keys prevent duplicates
		s.withdraw(ctx, input.Session)
		return opening, cmp.Or(s.Flush(ctx), ctx.Err())
	}
	if err != nil {
		return opening, err
	}
	s.Closing = nil
	brief := opening.IncidentBrief
	if opening.Refusal == nil && request.Tier == escalation.TierObserve {
		brief.Incidents = nil // these incidents are not the chain's own
	}
	s.incidents.update(brief)
	if opening.Refusal != nil {
		s.notes = s.notesOf(opening)
		return opening, nil
	}
	kind := escalation.EventSessionCreated
	if request.Continues {
		kind = escalation.EventSessionReused
	}
	s.Log.Chain.Sessions = append(s.Log.Chain.Sessions, opening.Session)
	s.Log.Add(ctx, escalation.Event{
		Kind: kind, SessionID: opening.Session.SessionID, Message: describeSession(opening.Session, request),
	})
	return opening, s.Log.Publish(ctx)
}

// notesOf returns what a gate after a refused session shows.
func (s *Sessions) notesOf(refused escalation.AdmissionResult) *escalation.GateNotes {
	notes := escalation.GateNotes{}
	for _, state := range refused.Services {
		if escalation.HasService(s.Log.Chain.Services, state.Service) {
			notes.Cooldowns = append(notes.Cooldowns, state)
		}
	}
	return &notes
}

// record admits and stores a session. For some sessions it first tries a local activity, which saves a round trip. If
// the local activity fails, and for every other session, record runs an ordinary activity.
//
// Other writes must not be local, because a repeated workflow task may decide differently from what is already written
// (see localFirst). The first session of a chain depends only on the input, and its ID depends only on the run. So a
// repeated workflow task opens the same session again, which changes nothing. In a conversation, another message or a
// stop may have arrived before the task is repeated. If so, the next session to open has the same ID. If it cannot use
// the record, record withdraws it, and opens one with the next ID.
func (s *Sessions) record(
	ctx workflow.Context, input *activities.OpenSessionInput,
) (opening escalation.AdmissionResult, err error) {
	var records *activities.Records
	if s.opensLocally(*input) {
		// a cancelled one could commit after its record was withdrawn
		local, cancel := workflow.NewDisconnectedContext(ctx)
		defer cancel()
		err := workflow.ExecuteLocalActivity(local, records.OpenSession, *input).Get(local, &opening)
		if err == nil && (opening.Refusal != nil || !isLeftOver(opening.Session, input.Session)) {
			return opening, nil
		}
		if err == nil {
			s.withdraw(ctx, opening.Session)
			input.Session.SessionID = s.newSessionID(ctx)
		}
	}
	opening = escalation.AdmissionResult{}
	err = workflow.ExecuteActivity(ctx, records.OpenSession, *input).Get(ctx, &opening)
	return opening, err
}

// opensLocally reports whether a local activity may open a session: it must only observe, and write nothing else.
func (s *Sessions) opensLocally(input activities.OpenSessionInput) bool {
	switch session := input.Session; {
	case session.Tier != escalation.TierObserve:
		return false
	case session.Purpose == escalation.PurposeTalk:
		return len(input.Events) == 0 && input.Closing == nil
	default:
		return session.Purpose == escalation.PurposeTier && s.opened == 1 && s.Log.Chain.Last() == nil
	}
}

// isLeftOver reports whether a recorded session was opened for another turn, by a workflow task that was lost.
func isLeftOver(recorded, wanted escalation.Session) bool {
	sameTask := recorded.StartedAt.UnixMilli() == wanted.StartedAt.UnixMilli()
	return wanted.Purpose == escalation.PurposeTalk && !sameTask &&
		(recorded.Continuity != wanted.Continuity || recorded.ParentID != wanted.ParentID ||
			recorded.Model != wanted.Model)
}

// newSession returns the requested session before its admission.
func (s *Sessions) newSession(ctx workflow.Context, request SessionRequest) escalation.Session {
	session := escalation.Session{
		ChainID:          s.Log.Chain.ID,
		FirstRunID:       s.Log.FirstRun(ctx),
		SessionID:        s.newSessionID(ctx),
		Tier:             request.Tier,
		Model:            s.Policy.OfPurpose(request.Purpose).For(request.Tier).Model,
		Trigger:          s.Log.Chain.Trigger,
		Continuity:       request.Context.Continuity,
		ContinuityReason: request.Context.Reason,
		Purpose:          request.Purpose,
		Phase:            request.Phase,
		Scope:            s.Log.Chain.Services,
		HasRequest:       s.HasRequest,
		StartedAt:        workflow.Now(ctx),
		Report:           escalation.Report{Status: escalation.SessionRunning},
	}
	if request.Continues {
		if !request.Purpose.HasRole() {
			session.Purpose = escalation.PurposeContinuation
		}
		session.Continuity, session.ContinuityReason = escalation.ContinuityResume, escalation.ReasonContinued
		if reason := request.Context.Reason; reason == escalation.ReasonCorrection ||
			reason == escalation.ReasonInterrupted {
			session.ContinuityReason = reason // no person has chosen it
		}
	}
	if request.Origin != nil {
		session.ParentID = request.Origin.ID
	}
	return session
}

// newSessionID returns the ID of the next conversation. The ID is derived from the run ID and the number of the
// session, so it needs no history event. After a reset, the run ID and therefore the IDs of conversations are
// different.
func (s *Sessions) newSessionID(ctx workflow.Context) string {
	s.opened++
	execution := workflow.GetInfo(ctx).WorkflowExecution
	return uuid.NewSHA1(sessionNamespace, fmt.Appendf(nil, "%s/%s/%d", execution.ID, execution.RunID,
		s.opened)).String()
}

// sessionNamespace is the UUID namespace (RFC 9562, section 6.6) of session IDs. Its value is random.
var sessionNamespace = uuid.MustParse("0c5d4f3e-8c0b-4d0e-9a53-5f0c4f6a7d21")

// Review returns the admission that the session would get now.
func (s *Sessions) Review(ctx workflow.Context, request SessionRequest) (escalation.Admission, error) {
	if err := s.Flush(ctx); err != nil {
		return escalation.Admission{}, err
	}
	var records *activities.Records
	var admission escalation.Admission
	err := ReadRecords(WithRecords(ctx, "may "+request.Tier.String()+" start now?"), records.Review,
		activities.ReviewInput{
			Request: s.admission(ctx, request), Policy: s.Policy.OfSession(request.Tier),
		}, &admission)
	return admission, err
}

// admission returns the request for admission of a session.
func (s *Sessions) admission(ctx workflow.Context, request SessionRequest) escalation.AdmissionRequest {
	admission := escalation.AdmissionRequest{
		ChainID:       s.Log.Chain.ID,
		FirstRunID:    s.Log.FirstRun(ctx),
		Tier:          request.Tier,
		Purpose:       request.Purpose,
		At:            workflow.Now(ctx),
		Services:      s.Log.Chain.Services,
		ChainSpentUSD: s.Log.Chain.SpentAtMostUSD(),
		Correction:    request.Corrects,
		Force:         request.Force,
		Passes:        request.Passes,
		Actor:         request.Actor,
		Incidents:     s.Log.Chain.OwnIncidents(),
		WaitingSince:  request.WaitingSince,
	}
	if last := s.Log.Chain.Last(); last != nil {
		admission.Previous = last.SessionID
	}
	if origin := request.Origin; origin != nil && origin.ID != 0 {
		admission.Parent = origin.SessionID
		if origin.ChainID != admission.ChainID {
			admission.ParentChain = origin.ChainID
		}
	}
	return admission
}

// withdraw closes the record of a session that will not run. A missing record is not an error. withdraw tries only
// once. If that fails, the workers' sweep closes the record later.
func (s *Sessions) withdraw(ctx workflow.Context, session escalation.Session) {
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	var records *activities.Records
	recording := WithOneTry(disconnected, "withdraw record: "+summarize(session))
	err := workflow.ExecuteActivity(recording, records.WithdrawSession, activities.CloseSessionInput{
		ChainID:    session.ChainID,
		FirstRunID: session.FirstRunID,
		SessionID:  session.SessionID,
		EndedAt:    workflow.Now(ctx),
		Report:     escalation.Report{Status: escalation.SessionStopped, Error: CancelledBeforeSession},
		Release:    true,
	}).Get(recording, nil)
	if err != nil {
		workflow.GetLogger(ctx).Warn("the record could not be withdrawn", "session_id", session.SessionID, "error", err)
	}
}

// CancelledBeforeSession is the reason for a session that did not run.
const CancelledBeforeSession = "the chain was cancelled before the session began"

// Run executes the activity that runs the agent of a session, decodes the activity's return value into result, and
// returns the ended session. If the activity failed after all retries, the session has the status failed. If it was
// cancelled, the session has the status stopped. In both cases judged is false.
//
// If the workflow is cancelled, Run stops the agent. A running agent reports its spending. If the activity is waiting
// for its next attempt, Temporal cancels the activity without a report. So Run looks up the spending of the earlier
// attempts before it stops the agent.
func (s *Sessions) Run(
	ctx workflow.Context, session escalation.Session, activity, input, result any,
) (ended escalation.Session, judged bool) {
	if ctx.Err() != nil {
		session.SetReport(s.stopped(escalation.Report{}))
		session.EndedAt = workflow.Now(ctx)
		return session, false
	}
	options := WithTier(ctx, s.Policy.OfPurpose(session.Purpose), session.Tier, summarize(session))
	if session.Purpose == escalation.PurposeTalk {
		options = workflow.WithTaskQueue(options, TalksTaskQueue(workflow.GetInfo(ctx).TaskQueueName))
	}
	agent, stop := workflow.NewDisconnectedContext(options)
	defer stop()
	running := workflow.ExecuteActivity(agent, activity, input)
	// the cost is unknown if a client cancels the activity
	spent := escalation.Report{Cost: escalation.Cost{CostEstimated: true}}
	workflow.NewSelector(ctx).
		AddFuture(running, func(workflow.Future) {}).
		AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {
			spent = spentSoFar(ctx, session.SessionID)
			stop()
		}).
		Select(ctx)
	var end activities.SessionEnd
	err := cmp.Or(running.Get(agent, result), running.Get(agent, &end))
	session.EndedAt = cmp.Or(end.EndedAt, workflow.Now(ctx))
	switch {
	case err == nil:
	case temporal.IsCanceledError(err):
		end.Report = s.stopped(spent)
	default:
		end.Report = activities.SpentBefore(err)
		end.Report.Status, end.Report.Error = escalation.SessionFailed, RootMessage(err)
	}
	session.SetReport(end.Report)
	return session, err == nil
}

// Waits sleeps until a session may be requested again that was refused, or that the limit of the account has ended, and
// reports whether it may. If the decision is no wait, Waits returns false: a person decides, and the longest wait
// begins anew. An author's and a reviewer's session wait so; the tiers of a chain can be requested meanwhile (see
// waitStep of package chain). When ctx ends, Waits returns.
func (s *Sessions) Waits(ctx workflow.Context, decision escalation.Decision) (again bool, err error) {
	if decision.Action != escalation.DecisionWait {
		s.WaitingSince = time.Time{}
		return false, nil
	}
	if err := s.Flush(ctx); err != nil {
		return false, err
	}
	if s.WaitingSince.IsZero() {
		s.WaitingSince = workflow.Now(ctx)
	}
	s.people.NotifyOfLimit(ctx, decision)
	chain := &s.Log.Chain
	chain.Wait = &escalation.Wait{
		Rule: decision.Rule, Reason: decision.Reason, Since: workflow.Now(ctx),
		Until: decision.Until,
	}
	s.Log.Add(ctx, escalation.Event{
		Kind: escalation.EventWaitStarted, Severity: decision.Severity(), Message: "waiting: " + decision.Reason,
	})
	if err := s.Log.StoreUnlessCancelled(ctx, "record the wait", true); err != nil {
		return false, err
	}
	if err := s.Log.Publish(ctx); err != nil {
		return false, err
	}
	timer := workflow.NewTimerWithOptions(ctx, decision.Until.Sub(workflow.Now(ctx)), workflow.TimerOptions{
		Summary: Clip(plaintext.Compact(fmt.Sprintf("%s: %s", decision.Rule, decision.Reason))),
	})
	_ = timer.Get(ctx, nil) // an error means that the workflow is cancelled, which the caller's next step handles
	chain.Wait = nil
	s.Log.Add(ctx, escalation.Event{Kind: escalation.EventWaitEnded, Message: "the wait is over"})
	return true, nil
}

// stopped returns the report of an agent that was not running when the workflow was cancelled. The argument spent is
// the spending of the earlier attempts.
func (s *Sessions) stopped(spent escalation.Report) escalation.Report {
	spent.Status, spent.Error = escalation.SessionStopped, cmp.Or(s.StoppedBecause, "the chain was cancelled")
	return spent
}

// spentSoFar returns the recorded spending of all attempts at a session. If the lookup fails, the report says that the
// cost is unknown.
func spentSoFar(ctx workflow.Context, sessionID string) escalation.Report {
	looking, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	var attempts *activities.Attempts
	var spent escalation.Report
	err := workflow.ExecuteActivity(withSpending(looking, "what the agent has spent"), attempts.SpentSoFar,
		activities.SpentSoFarInput{SessionID: sessionID}).Get(looking, &spent)
	if err != nil {
		workflow.GetLogger(ctx).Warn("nobody can tell what a session has spent", "session_id", sessionID, "error", err)
		return escalation.Report{Cost: escalation.Cost{CostEstimated: true}}
	}
	return spent
}

// Ended updates the visible state after the end of a session. It does not record the end, which the method close
// does.
func (s *Sessions) Ended(ctx workflow.Context, session escalation.Session) {
	session.SetReport(session.Report)
	if session.Ending != escalation.EndingLimited {
		s.WaitingSince = time.Time{}
	}
	chain := &s.Log.Chain
	*chain.Last() = session
	chain.CostUSD = chain.Earlier.CostUSD + escalation.TotalCostUSD(chain.Sessions)
	if chain.Plan != nil {
		chain.Plan.Add(session)
	}
	if session.Verdict != nil && len(session.Verdict.Services) > 0 {
		chain.Services = session.Verdict.Services
	}
	s.Log.Add(ctx, escalation.Event{
		Kind: escalation.EventSessionEnded, SessionID: session.SessionID, Message: describeEnd(session),
	})
	if left := session.Worktree.Describe(session.Host); left != "" {
		kept := escalation.Event{Kind: escalation.EventWorktreeKept, SessionID: session.SessionID, Message: left}
		if session.Worktree.Missing != "" {
			kept.Severity = escalation.SeverityWarning
		}
		s.Log.Add(ctx, kept)
	}
}

// Close records the end of a session, together with the events that explain the next step. If release is true, Close
// also unlocks the services of this chain, so that other chains can repair them. Cancelling ctx does not prevent the
// recording.
func (s *Sessions) Close(ctx workflow.Context, session escalation.Session, release bool) error {
	s.CloseWithNext(session)
	s.Closing.Release = release
	return s.Flush(ctx)
}

// CloseForGate does the same as Close, and asks for what a person needs to know at the gate that follows.
func (s *Sessions) CloseForGate(ctx workflow.Context, session escalation.Session) error {
	s.CloseWithNext(session)
	s.Closing.Release = true
	s.Closing.Notes = &escalation.NotesRequest{
		SessionID: session.SessionID, Services: s.Log.Chain.Services, Limits: s.Policy.Cooldowns, At: session.EndedAt,
	}
	return s.Flush(ctx)
}

// CloseWithNext keeps the end of a session until the next session is opened. One activity then records both the end and
// the opening.
func (s *Sessions) CloseWithNext(session escalation.Session) {
	s.Closing = &activities.CloseSessionInput{
		ChainID:    session.ChainID,
		FirstRunID: session.FirstRunID,
		SessionID:  session.SessionID,
		EndedAt:    session.EndedAt,
		Report:     session.Report,
		Events:     s.Log.take(),
		Progress:   s.Log.takeProgress(),
	}
}

// Flush records the end of the last session, if that end is not recorded yet. Cancelling ctx does not prevent the
// recording.
func (s *Sessions) Flush(ctx workflow.Context) error {
	if s.Closing == nil {
		return nil
	}
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	recording := WithRecords(disconnected, "close record: "+summarize(*s.Log.Chain.Last()))
	var records *activities.Records
	var brief escalation.IncidentBrief
	if err := workflow.ExecuteActivity(recording, records.CloseSession, *s.Closing).Get(recording, &brief); err != nil {
		return err
	}
	s.Closing = nil
	s.notes = brief.Notes
	s.incidents.update(brief)
	return nil
}
