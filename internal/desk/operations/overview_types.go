package operations

import (
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// Now describes one moment. Its parts are independent: if one of them cannot be told, its Problem says why, and the
// others are still there.
type Now struct {
	At        time.Time    `json:"at"`
	Gates     NowGates     `json:"gates"`
	Work      NowWork      `json:"work"`
	Waits     NowWaits     `json:"waits"`
	Incidents NowIncidents `json:"incidents"`
	Day       NowDay       `json:"day"`
	Cycles    NowCycles    `json:"cycles"`
}

// Part is the part of an answer that has an own source.
type Part struct {
	// Problem says in a sentence why the part is incomplete, and what to do; empty if it is complete.
	Problem string `json:"problem,omitempty"`
}

// NowGates are the open gates.
type NowGates struct {
	Part
	GateList
}

// NowWork lists the chains at work: those that run a session, or are between two steps.
type NowWork struct {
	Part

	Chains []WorkingChain `json:"chains"`
	// Running counts all chains that run, also those that wait. If there are more than Asked, some are missing in Work
	// and Waits.
	Running int `json:"running"`
	// Asked counts the chains that were asked.
	Asked int `json:"asked"`
}

// WorkingChain is a chain at work.
type WorkingChain struct {
	ChainID  string             `json:"chain_id"`
	Services []string           `json:"services,omitempty"`
	Trigger  escalation.Trigger `json:"trigger,omitempty"`
	// Plan is the path of the plan that the chain works on; empty if it works on none, or if that is not known.
	Plan      string    `json:"plan,omitempty"`
	DryRun    bool      `json:"dry_run,omitempty"`
	StartedAt time.Time `json:"started_at"`
	// Cost includes the running session, as an estimate.
	escalation.Cost

	// Session is the running session; nil if the chain is between two steps, or works through the chains of its issues.
	Session *WorkingSession `json:"session,omitempty"`
	// Issues counts the chains of issues that have not ended.
	Issues int `json:"issues,omitempty"`
	// Doing is one line about what the chain does now. It can contain words of agents.
	Doing string `json:"doing"`
	// Problem says why the row is incomplete; empty if it is complete.
	Problem string `json:"problem,omitempty"`
}

// WorkingSession is a running session.
type WorkingSession struct {
	Number    int64           `json:"number,omitempty"`
	SessionID string          `json:"session_id"`
	Tier      escalation.Tier `json:"tier"`
	Model     string          `json:"model"`
	// Purpose is the task of the session, and Phase the phase of a plan on which it works; both are empty for a tier's
	// usual work.
	Purpose   escalation.Purpose `json:"purpose,omitempty"`
	Phase     string             `json:"phase,omitempty"`
	StartedAt time.Time          `json:"started_at"`
	Turns     int                `json:"turns,omitempty"`
	// CostUSD is the cost of the session so far over all its attempts, in US dollars. It is an estimate.
	CostUSD float64 `json:"cost_usd"`
	// BudgetUSD is reserved for the session, in US dollars; 0 sets no cap.
	BudgetUSD float64 `json:"budget_usd,omitempty"`
	// Host is the machine on which the agent runs; empty if unknown.
	Host string `json:"host,omitempty"`
	// Attempt is the number of the current attempt, from 1; 0 if unknown. Failure says why the previous one ended.
	Attempt int    `json:"attempt,omitempty"`
	Failure string `json:"failure,omitempty"`
}

// Task names the purpose of the session and its phase; empty for the usual work of its tier.
func (s *WorkingSession) Task() string { return taskOf(s.Purpose, s.Phase) }

// NowWaits lists the chains that wait, those that wait for a person first, then by the end of the wait.
type NowWaits struct {
	Part

	Chains []WaitingChain `json:"chains"`
}

// WaitKind says because of what a chain waits.
type WaitKind string

// The kinds.
const (
	WaitGate     WaitKind = "gate"     // for a person's answer
	WaitCooldown WaitKind = "cooldown" // until the cooldown of a service is over
	WaitService  WaitKind = "service"  // until another chain has repaired a service
	WaitBudget   WaitKind = "budget"   // until running sessions give back what they have reserved of the day's budget
	WaitWorker   WaitKind = "worker"   // for a free worker, or for any worker
	WaitRetry    WaitKind = "retry"    // for the next attempt, because the last one failed
	WaitPaused   WaitKind = "paused"   // somebody has paused the attempt in Temporal
	WaitPlace    WaitKind = "place"    // for the directory in which another session repairs
	WaitOther    WaitKind = "other"    // for another rule: see Rule
)

// WaitingChain is a chain that waits, and because of what.
type WaitingChain struct {
	ChainID  string             `json:"chain_id"`
	Services []string           `json:"services,omitempty"`
	Trigger  escalation.Trigger `json:"trigger,omitempty"`
	// Plan is the path of the plan that the chain works on; empty if it works on none, or if that is not known.
	Plan string `json:"plan,omitempty"`
	escalation.Cost

	Kind WaitKind `json:"kind"`
	// Rule is the rule that makes the chain wait; empty for the kinds worker, retry, paused and place.
	Rule escalation.Rule `json:"rule,omitempty"`
	// Reason explains the wait in a sentence. It can contain words of agents.
	Reason string `json:"reason"`
	// Since is the beginning of the wait; zero if unknown.
	Since time.Time `json:"since,omitzero"`
	// Until is the end of a gate, of a cooldown or of the pause before the next attempt. For the kinds service and
	// budget it is the time at which the chain asks again. It is zero if nobody knows.
	Until time.Time `json:"until,omitzero"`
	// Holders are the locks of other chains because of which the chain waits. Only the kind service has them.
	Holders []ServiceHolder `json:"holders,omitempty"`
	// ResetsAt is the time at which a new day's budget begins. Only the kind budget has it.
	ResetsAt time.Time `json:"resets_at,omitzero"`
	// Queue is the task queue on which no worker is free. Only the kind worker has it.
	Queue string `json:"queue,omitempty"`
	// Attempt is the number of the attempt that waits, from 1; 0 if none does. Failure says why the previous one ended.
	Attempt int    `json:"attempt,omitempty"`
	Failure string `json:"failure,omitempty"`
}

// NowIncidents are the open incidents, the most urgent first.
type NowIncidents struct {
	Part

	// Incidents lists the most urgent ones, at most 200. Open counts all.
	Incidents []Incident `json:"incidents"`
	Open      int        `json:"open"`
}

// NowDay is the money of the day, by the arithmetic that admits sessions. The day is that of the budget, in UTC.
type NowDay struct { //nolint:recvcheck // templates call SpentText on a value
	Part

	From time.Time `json:"from"`
	// ResetsAt is the time at which the next day's budget begins.
	ResetsAt time.Time `json:"resets_at"`
	// SpentUSD is the cost of the sessions that started on this day and have ended, in US dollars. A session of unknown
	// cost counts with its reservation.
	SpentUSD float64 `json:"spent_usd"`
	// Estimated reports whether a part of SpentUSD is an estimate.
	Estimated bool `json:"estimated,omitempty"`
	// ReservedUSD is the sum of the budgets of the day's running sessions, in US dollars.
	ReservedUSD float64 `json:"reserved_usd"`
	// BudgetUSD is the day's budget by the settings of this program, in US dollars; 0 sets no cap. Workers may have
	// other settings.
	BudgetUSD float64 `json:"budget_usd"`
	// LeftUSD is what new sessions can get, in US dollars; 0 without a budget.
	LeftUSD float64 `json:"left_usd"`
}

// NowCycles are the next cycles of all schedules.
type NowCycles struct {
	Part

	// Next lists the next cycles, soonest first.
	Next []NextCycle `json:"next"`
	// Paused lists the IDs of the schedules that start nothing until they are resumed.
	Paused []string `json:"paused"`
}

// NextCycle is a cycle that a schedule will start.
type NextCycle struct {
	ScheduleID string    `json:"schedule_id"`
	When       string    `json:"when"`
	At         time.Time `json:"at"`
}

// SpentText returns SpentUSD as text, as escalation.Report.CostText does.
func (d NowDay) SpentText() string { return plaintext.Cost(d.SpentUSD, d.Estimated) }
