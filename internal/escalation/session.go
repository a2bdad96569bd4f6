package escalation

import (
	"cmp"
	"time"
)

// SessionStatus is how far a session has come, and once it has ended, how.
type SessionStatus string

// The statuses. All but SessionRunning are final.
const (
	SessionRunning         SessionStatus = "running"
	SessionCompleted       SessionStatus = "completed"        // it ended with a verdict
	SessionFailed          SessionStatus = "failed"           // it ended without one, or could not run
	SessionTimedOut        SessionStatus = "timed_out"        // a time limit of ours ended it
	SessionBudgetExhausted SessionStatus = "budget_exhausted" // its turns or dollars ran out
	SessionResumeFailed    SessionStatus = "resume_failed"    // the CLI could not load the conversation
	SessionTranscriptLost  SessionStatus = "transcript_lost"  // the conversation to go on from is gone
	SessionStopped         SessionStatus = "stopped"          // a person cancelled it
)

// Purpose is what a session is for.
type Purpose string

// The purposes.
const (
	PurposeTier         Purpose = ""             // the work of its tier
	PurposeContinuation Purpose = "continuation" // the same, in the conversation of a session that was interrupted
	PurposeRecheck      Purpose = "recheck"      // look again, after a wait, before a better model is paid for
	PurposeHandoff      Purpose = "handoff"      // write down what the next tier has to know
)

// Trigger is what started a chain.
type Trigger string

// The triggers.
const (
	TriggerManual    Trigger = "manual"
	TriggerScheduled Trigger = "scheduled"
	TriggerIssue     Trigger = "issue" // one of several issues that another chain found
)

// Session is one claude process and its record: one tier, one model, one cost.
type Session struct {
	// ID numbers the record. It is given out by the store and never used twice.
	ID int64 `json:"id"`
	// ParentID is the ID of the session whose context this one continues; 0 is none.
	ParentID int64 `json:"parent_session_id,omitempty"`
	// ChainID is the Temporal workflow ID of the chain.
	ChainID string `json:"chain_id"`
	// Sequence is the session's place in its chain, from 1. The store gives it out.
	Sequence int `json:"sequence"`
	// SessionID is the CLI's id of the conversation, a UUID that the workflow chose.
	// No two sessions share one.
	SessionID string `json:"session_id"`

	Tier    Tier    `json:"tier"`
	Model   string  `json:"model"`
	Trigger Trigger `json:"trigger"`

	Continuity       Continuity       `json:"continuity"`
	ContinuityReason ContinuityReason `json:"continuity_reason"`

	// Purpose is what the session is for, beyond its tier's work.
	Purpose Purpose `json:"purpose,omitempty"`
	// BudgetUSD is what the session may spend, in US dollars; 0 is no cap. It is reserved from
	// the budgets while the session runs.
	BudgetUSD float64 `json:"budget_usd,omitempty"`
	// Forced says that a person passed a cooldown, or the limit of escalations, for this session.
	Forced bool `json:"forced,omitempty"`
	// DryRun says that the session was held to looking, whatever its tier.
	DryRun bool `json:"dry_run,omitempty"`

	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`

	Report
}

// CostUnknown says that nobody knows of an attempt at the session, and so what it has cost. It may
// have spent all of BudgetUSD, and counts with that.
func (s *Session) CostUnknown() bool { return s.CostEstimated && s.Attempts == 0 }

// Settle gives the session the report it ended with. One that was interrupted had its context from its
// own conversation in the end.
func (s *Session) Settle(report Report) {
	s.Report = report
	if report.Interrupted {
		choice := ChooseContinuity(Situation{Interrupted: true})
		s.Continuity, s.ContinuityReason = choice.Continuity, choice.Reason
	}
}

// BeganWork reports whether the session's model has said something, or may have: then the session may
// have done something, too.
func (s *Session) BeganWork() bool { return s.Attempts > 1 || s.ContextTokens > 0 }

// unknownUSD is what the session counts with beyond its cost, because that is unknown.
func (s *Session) unknownUSD() float64 {
	if !s.CostUnknown() {
		return 0
	}
	return max(0, s.BudgetUSD-s.CostUSD)
}

// Report is what running a session came to.
type Report struct {
	Status SessionStatus `json:"status"`
	// CostUSD is what this session's own invocations added, in US dollars.
	CostUSD float64 `json:"cost_usd"`
	// CostEstimated says that neither a result line nor the count of the session's calls has the cost, or part of it.
	CostEstimated bool `json:"cost_estimated,omitempty"`
	// ReportedTotalUSD is the total as the CLI printed it, which newer versions carry
	// on from the parent's conversation.
	ReportedTotalUSD float64    `json:"reported_total_usd"`
	Tokens           TokenUsage `json:"tokens"`
	// ContextTokens is what the window held after the last main-thread message.
	ContextTokens int `json:"context_tokens"`
	// ContextWindow is the model's window in tokens as the CLI reported it; 0 is not reported.
	ContextWindow int   `json:"context_window"`
	Turns         int   `json:"turns"`
	DurationMS    int64 `json:"duration_ms"`
	// ReportedSessionID is the conversation id that the CLI printed; empty when it printed none.
	ReportedSessionID string `json:"reported_session_id,omitempty"`
	CLIVersion        string `json:"cli_version,omitempty"`
	// Containment is how the process and all that it started were held together: namespace,
	// subreaper or group.
	Containment string `json:"containment,omitempty"`
	// Sandbox is what the kernel kept the process from: "landlock (ABI 7)", or "none" and why.
	Sandbox string `json:"sandbox,omitempty"`
	// Survivors counts processes of the agent that could not be ended and may still be at work:
	// another user's.
	Survivors int `json:"survivors,omitempty"`
	// Interrupted says that the session went on with its own conversation, because a process of it had
	// died under it.
	Interrupted bool `json:"interrupted,omitempty"`
	// Attempts counts the times a process was started for this session.
	Attempts int      `json:"attempts"`
	Host     string   `json:"host,omitempty"`
	Verdict  *Verdict `json:"verdict,omitempty"`
	// Error says in a sentence why Status is not SessionCompleted.
	Error string `json:"error,omitempty"`
}

// Then returns what r and next, which went on where r ended, came to together: sums of
// what they spent, and the rest as next left it.
func (r Report) Then(next Report) Report {
	total := next
	total.CostUSD += r.CostUSD
	total.CostEstimated = next.CostEstimated || r.CostEstimated
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
	total.Host = cmp.Or(next.Host, r.Host)
	return total
}

// TokenUsage counts tokens over all API calls of a session, subagents left out.
type TokenUsage struct {
	Input         int `json:"input"`
	Output        int `json:"output"`
	CacheRead     int `json:"cache_read"`
	CacheCreation int `json:"cache_creation"`
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
