package escalation

import (
	"cmp"
	"time"
)

// SessionStatus is the state of a session.
type SessionStatus string

// The statuses of a session. All except SessionRunning are final.
const (
	SessionRunning         SessionStatus = "running"
	SessionCompleted       SessionStatus = "completed"        // ended with a verdict
	SessionFailed          SessionStatus = "failed"           // ended without a verdict, or could not run
	SessionTimedOut        SessionStatus = "timed_out"        // stopped by a time limit of the supervisor
	SessionBudgetExhausted SessionStatus = "budget_exhausted" // turns or dollars used up
	SessionResumeFailed    SessionStatus = "resume_failed"    // the CLI could not load the conversation to be resumed
	SessionTranscriptLost  SessionStatus = "transcript_lost"  // the conversation to be resumed is gone
	SessionStopped         SessionStatus = "stopped"          // cancelled by an operator
)

// Purpose names the task of a session.
type Purpose string

// The purposes.
const (
	PurposeTier Purpose = "" // the work of its tier
	// PurposeContinuation: the tier's work, continued in the conversation of an interrupted session
	PurposeContinuation Purpose = "continuation"
	PurposeRecheck      Purpose = "recheck" // look again after a wait, before a more expensive model is started
	PurposeHandoff      Purpose = "handoff" // write the handoff to the next tier
	PurposeTalk         Purpose = "talk"    // answer a person in a conversation
	PurposeReview       Purpose = "review"  // review what another session has committed
	PurposeAuthor       Purpose = "author"  // change a repository after a plan; repairs no service
)

// HasRole reports whether a session with this purpose has a role of its own, with its own model and limits. It keeps
// its purpose when it continues an interrupted session.
func (p Purpose) HasRole() bool { return p == PurposeReview || p == PurposeAuthor }

// judgesServices reports whether the verdict of a session with the purpose says how services are.
func (p Purpose) judgesServices() bool {
	return p == PurposeTier || p == PurposeContinuation || p == PurposeRecheck
}

// Trigger says what started a chain.
type Trigger string

// The triggers.
const (
	TriggerManual    Trigger = "manual"
	TriggerScheduled Trigger = "scheduled"
	TriggerIssue     Trigger = "issue" // one of several issues that another chain found
	TriggerTalk      Trigger = "talk"  // a person's message in a conversation
	TriggerPlan      Trigger = "plan"  // a plan to be reviewed or carried out
	TriggerAlert     Trigger = "alert" // an alert of a monitoring system
)

// Session records one run of an agent in one tier with one model.
type Session struct {
	// ID numbers the record. The store assigns the ID and never uses it twice.
	ID int64 `json:"id,omitempty"`
	// ParentID is the ID of the session whose context this session continues; 0 if there is no such session.
	ParentID int64 `json:"parent_session_id,omitempty"`
	// ChainID is the Temporal workflow ID of the chain.
	ChainID string `json:"chain_id"`
	// FirstRunID is the run ID of the chain's first run. It stays the same when the chain continues as new. Several
	// chains, one after the other, can have the same workflow ID and differ in FirstRunID.
	FirstRunID string `json:"first_run_id,omitempty"`
	// Sequence is the number of the session in its chain, from 1. The store assigns this number.
	Sequence int `json:"sequence,omitempty"`
	// SessionID is the CLI's ID of the conversation, a UUID. The workflow chooses it, and it is unique.
	SessionID string `json:"session_id"`

	Tier    Tier    `json:"tier"`
	Model   string  `json:"model"`
	Trigger Trigger `json:"trigger"`

	Continuity       Continuity       `json:"continuity"`
	ContinuityReason ContinuityReason `json:"continuity_reason"`

	// Scope lists the services that the session had to examine or repair; empty if the session had no such limit.
	Scope []string `json:"scope,omitempty"`

	// Purpose is the session's task; empty for the usual work of its tier.
	Purpose Purpose `json:"purpose,omitempty"`
	// Phase is the number of the phase of a plan on which the session works; empty if it works on no plan.
	Phase string `json:"phase,omitempty"`
	// BudgetUSD is the session's budget in US dollars; 0 sets no cap. While the session runs, this amount is reserved.
	BudgetUSD float64 `json:"budget_usd,omitempty"`
	// Forced reports whether an operator overrode the cooldowns or the escalation limit for this session.
	Forced bool `json:"forced,omitempty"`
	// DryRun reports whether the session ran with the permissions of TierObserve.
	DryRun bool `json:"dry_run,omitempty"`
	// HasRequest reports whether the operator gave the chain a request in words. A session with such a request need not
	// check all services.
	HasRequest bool `json:"has_request,omitempty"`

	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`

	// Unusable says why no session may resume this conversation: another one has tried, and could not. It is empty if
	// none has, and set only where a conversation is about to be resumed.
	Unusable ContinuityReason `json:"unusable,omitempty"`

	Report
}

// Disown returns the session without its conversation, because the session failed could not use it.
func (s *Session) Disown(failed Session) *Session {
	if s == nil {
		return nil
	}
	disowned := *s
	disowned.Unusable = ReasonResumeFailed
	if failed.Status == SessionTranscriptLost {
		disowned.Unusable = ReasonTranscriptLost
	}
	return &disowned
}

// CostUnknown reports whether no attempt at the session has reported a cost. Such a session may have spent all of
// BudgetUSD, so BudgetUSD counts as its cost.
func (s *Session) CostUnknown() bool { return s.CostEstimated && s.Attempts == 0 }

// SetReport stores the final report in the session. If the session resumed its own conversation after an interruption,
// SetReport also sets the continuity. A session that an operator chose to continue keeps that reason, because it is not
// continued again if it fails.
func (s *Session) SetReport(report Report) {
	s.Report = report
	if report.Interrupted && !s.Continued() {
		choice := ChooseContinuity(ContinuityInput{Interrupted: true})
		s.Continuity, s.ContinuityReason = choice.Continuity, choice.Reason
	}
}

// MayHaveActed reports whether the session may have changed services without a report about it. Three conditions must
// hold. The session was allowed to repair. Its model has answered, or it is unknown whether the model has. The session
// left no verdict, or a failed verdict without actions.
func (s *Session) MayHaveActed() bool {
	// The CLI counts a call that the API has refused as a turn.
	answered := s.Turns > 1 || s.ContextTokens > 0 || s.Tokens != (TokenUsage{}) || s.CostUSD > 0
	silent := s.Verdict == nil || s.Verdict.Status == VerdictFailed && len(s.Verdict.Actions) == 0
	return s.Repairs() && silent && (answered || s.CostUnknown())
}

// Continued reports whether an operator chose to continue an interrupted session with this one.
func (s *Session) Continued() bool { return s.ContinuityReason == ReasonContinued }

// Repairs reports whether the session was permitted to change services. Dry runs, rechecks, handoffs, authors and Tier
// 1 must not change any service.
func (s *Session) Repairs() bool {
	return s.Tier >= TierSafeRepair && (s.Purpose == PurposeTier || s.Purpose == PurposeContinuation) && !s.DryRun
}

// BeganWork reports whether the session's model may have answered. In that case the agent may have changed something.
func (s *Session) BeganWork() bool { return s.Attempts > 1 || s.ContextTokens > 0 }

// HasConversation reports whether the session has ended with a conversation that another session can begin from.
func (s *Session) HasConversation() bool { return !s.EndedAt.IsZero() && s.ReportedSessionID != "" }

// unknownUSD returns the amount that counts against budgets in addition to the recorded cost, in US dollars. If the
// cost is known, this is 0.
func (s *Session) unknownUSD() float64 {
	if !s.CostUnknown() {
		return 0
	}
	return max(0, s.BudgetUSD-s.CostUSD)
}

// Report is the result of running a session. While the session runs, only Status is set. In JSON, fields that are not
// set are left out.
type Report struct {
	Status SessionStatus `json:"status"`
	// Cost adds up this session's invocations, without the conversation that the session resumed. It is no estimate if
	// it comes from the CLI's result line or from the proxy's count of calls.
	Cost
	// ReportedTotalUSD is the total that the CLI printed, in US dollars. It includes the cost of the conversation that
	// the session resumed.
	ReportedTotalUSD float64    `json:"reported_total_usd,omitempty"`
	Tokens           TokenUsage `json:"tokens,omitzero"`
	// ContextTokens is the number of tokens in the context window after the last message of the main thread.
	ContextTokens int `json:"context_tokens,omitempty"`
	// ContextWindow is the size of the model's context window in tokens, as reported by the CLI; 0 if the CLI did not
	// report it.
	ContextWindow int   `json:"context_window,omitempty"`
	Turns         int   `json:"turns,omitempty"`
	DurationMS    int64 `json:"duration_ms,omitempty"`
	// ReportedSessionID is the conversation ID that the CLI printed; empty if the CLI printed none.
	ReportedSessionID string `json:"reported_session_id,omitempty"`
	CLIVersion        string `json:"cli_version,omitempty"`
	// Containment names the method that held the process tree together: namespace, subreaper or group.
	Containment string `json:"containment,omitempty"`
	// Sandbox describes the kernel's restrictions on the process, such as "full: landlock (ABI 7), as user agent". If
	// the process had no sandbox, Sandbox is "none" and the reason.
	Sandbox string `json:"sandbox,omitempty"`
	// Worktree is the git worktree in which the session worked; nil if the session worked in the chain's directory.
	Worktree *Worktree `json:"worktree,omitempty"`
	// Survivors counts processes of the agent that could not be killed and may still run. Mostly they belong to another
	// user.
	Survivors int `json:"survivors,omitempty"`
	// Interrupted reports whether the session's process died, and a later process resumed the session's own
	// conversation.
	Interrupted bool `json:"interrupted,omitempty"`
	// Attempts counts the processes started for this session.
	Attempts int    `json:"attempts,omitempty"`
	Host     string `json:"host,omitempty"`
	// WorkerVersion is the program version of the worker that ran the last attempt.
	WorkerVersion string   `json:"worker_version,omitempty"`
	Verdict       *Verdict `json:"verdict,omitempty"`
	// Error explains in a sentence why Status is not SessionCompleted.
	Error string `json:"error,omitempty"`
	// Ending says why the session has no result; empty if it has one.
	Ending Ending `json:"ending,omitempty"`
	// LimitedUntil is the end of the limit of the account that ended the session; zero unless Ending is EndingLimited.
	LimitedUntil time.Time `json:"limited_until,omitzero"`
	// LimitedModel is the word in the names of the models that this limit concerns; empty for all models.
	LimitedModel string `json:"limited_model,omitempty"`
}

// Then combines r with next, the report of a later run. It adds up costs, tokens, turns, durations and survivors. It
// takes the larger of the two numbers of attempts. The status, the verdict, the error and its kind come from next.
// Every other field comes from next or, if empty there, from r.
func (r Report) Then(next Report) Report {
	total := next
	total.Cost = r.Plus(next.Cost)
	total.Tokens = r.Tokens.Add(next.Tokens)
	total.Turns += r.Turns
	total.DurationMS += r.DurationMS
	total.Survivors += r.Survivors
	total.Interrupted = next.Interrupted || r.Interrupted
	total.Attempts = max(r.Attempts, next.Attempts)
	total.ReportedTotalUSD = cmp.Or(next.ReportedTotalUSD, r.ReportedTotalUSD)
	total.ContextTokens = cmp.Or(next.ContextTokens, r.ContextTokens)
	total.ContextWindow = cmp.Or(next.ContextWindow, r.ContextWindow)
	total.ReportedSessionID = cmp.Or(next.ReportedSessionID, r.ReportedSessionID)
	total.CLIVersion = cmp.Or(next.CLIVersion, r.CLIVersion)
	total.Containment = cmp.Or(next.Containment, r.Containment)
	total.Sandbox = cmp.Or(next.Sandbox, r.Sandbox)
	total.Worktree = cmp.Or(next.Worktree, r.Worktree)
	total.Host = cmp.Or(next.Host, r.Host)
	total.WorkerVersion = cmp.Or(next.WorkerVersion, r.WorkerVersion)
	return total
}

// TokenUsage counts the tokens of all API calls of a session. It omits the calls of subagents.
type TokenUsage struct {
	Input         int `json:"input"`
	Output        int `json:"output"`
	CacheRead     int `json:"cache_read"`
	CacheCreation int `json:"cache_creation"`
}

// Beyond returns the tokens of u that exceed those of other, kind by kind.
func (u TokenUsage) Beyond(other TokenUsage) TokenUsage {
	return TokenUsage{
		Input:         max(u.Input-other.Input, 0),
		Output:        max(u.Output-other.Output, 0),
		CacheRead:     max(u.CacheRead-other.CacheRead, 0),
		CacheCreation: max(u.CacheCreation-other.CacheCreation, 0),
	}
}

// Add returns the sum of u and other.
func (u TokenUsage) Add(other TokenUsage) TokenUsage {
	return TokenUsage{
		Input:         u.Input + other.Input,
		Output:        u.Output + other.Output,
		CacheRead:     u.CacheRead + other.CacheRead,
		CacheCreation: u.CacheCreation + other.CacheCreation,
	}
}
