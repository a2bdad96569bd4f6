package escalation

import (
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// Chain is the state of an escalation chain. While the chain runs, the `chain` query returns this state. When the chain
// has ended, this state is the result of the workflow.
type Chain struct {
	// ID is the Temporal workflow ID.
	ID       string   `json:"id"`
	Trigger  Trigger  `json:"trigger"`
	Services []string `json:"services,omitempty"`
	DryRun   bool     `json:"dry_run"`
	MaxTier  Tier     `json:"max_tier"`
	// Outcome is empty until the chain has ended.
	Outcome Outcome `json:"outcome,omitempty"`
	// Reason explains the latest decision in a sentence, and Rule is its rule. After the end of the chain, they explain
	// the outcome.
	Reason    string    `json:"reason,omitempty"`
	Rule      Rule      `json:"rule,omitempty"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	// CostUSD is the cost of the sessions in Sessions and Earlier, in US dollars.
	CostUSD float64 `json:"cost_usd"`
	// Sessions lists the sessions in the order in which they ran. The last session can still be running.
	Sessions []Session `json:"sessions"`
	Events   []Event   `json:"events"`
	// Wait describes the current wait; nil if the chain does not wait.
	Wait *Wait `json:"wait,omitempty"`
	// Issues lists the chains into which this chain was split, one for each independent problem.
	Issues []IssueChain `json:"issues,omitempty"`
	// UnknownServices lists names of services that the chain has met and that the services file does not contain. The
	// list has at most MaxServices names.
	UnknownServices []string `json:"unknown_services,omitempty"`
	// Incidents lists the incidents that the chain has met: its own, and those that it leaves to other chains.
	Incidents []ChainIncident `json:"incidents,omitempty"`
	// Actor names the person who started the chain; empty if the chain's input names nobody.
	Actor string `json:"actor,omitempty"`
	// Verified reports that this person had logged in under this name.
	Verified bool `json:"verified,omitempty"`
	// Gates lists the chain's gates in order. Only the last gate can be open.
	Gates []Gate `json:"gates,omitempty"`
	// Reviews lists the latest reviews of what the chain's sessions have committed, oldest first, at most MaxReviews.
	Reviews []Review `json:"reviews,omitempty"`
	// Reviewed sums up all reviews of the chain.
	Reviewed ReviewTotals `json:"reviewed,omitzero"`
	// Plan says how far a PlanReview or a PhaseExecution is; nil for a chain.
	Plan *PlanState `json:"plan,omitempty"`
	// Earlier counts the entries that a long chain has dropped from Sessions, Events and Gates. The database still has
	// the dropped entries.
	Earlier Earlier `json:"earlier,omitzero"`
}

// ChainIncident describes an incident as it was when a chain met it.
type ChainIncident struct {
	ID       string   `json:"id"`
	Services []string `json:"services,omitempty"`
	Kind     string   `json:"kind,omitempty"`
	Summary  string   `json:"summary,omitempty"`
	Severity Severity `json:"severity,omitempty"`
	// Since is the time at which the incident was opened; zero if the chain began with 0.1.0.
	Since time.Time `json:"since,omitzero"`
	// Resolved reports whether the incident was resolved when the chain last read it from the records.
	Resolved bool `json:"resolved,omitempty"`
	// Handler is the ID of the chain that takes care of the incident; empty if this chain does.
	Handler string `json:"handler,omitempty"`
}

// OwnIncidents returns the IDs of the incidents that the chain works on.
func (c *Chain) OwnIncidents() []string {
	var ids []string
	for _, incident := range c.Incidents {
		if incident.Handler == "" {
			ids = append(ids, incident.ID)
		}
	}
	return ids
}

// Earlier counts the entries that a chain has dropped from its lists.
type Earlier struct {
	Sessions int `json:"sessions,omitempty"`
	Events   int `json:"events,omitempty"`
	Gates    int `json:"gates,omitempty"`
	// Cost adds up the dropped sessions.
	Cost
	// UnknownUSD is the result of the function UnknownUSD for the dropped sessions.
	UnknownUSD float64 `json:"unknown_usd,omitempty"`
}

// OpenGate returns the open gate; nil if no gate is open.
func (c *Chain) OpenGate() *Gate {
	if len(c.Gates) == 0 || c.Gates[len(c.Gates)-1].Answer != nil {
		return nil
	}
	return &c.Gates[len(c.Gates)-1]
}

// GateBefore says how the latest gate was closed, if it let the chain go on and no session has ended since; empty
// otherwise.
func (c *Chain) GateBefore() string {
	if len(c.Gates) == 0 {
		return ""
	}
	gate := c.Gates[len(c.Gates)-1]
	closing := gate.Answer
	if closing == nil || closing.Action != GateFix && closing.Action != GateContinue ||
		slices.ContainsFunc(c.Sessions, func(s Session) bool { return s.EndedAt.After(closing.At) }) {
		return ""
	}
	if closing.Actor == "" {
		return "Nobody has answered at " + gate.ID + " until it expired, so the supervisor starts another session."
	}
	return "A person has decided at " + gate.ID + " that the work goes on."
}

// CostEstimated reports whether a part of the cost of the chain's sessions is an estimate.
func (c *Chain) CostEstimated() bool {
	return c.Earlier.CostEstimated || AnyEstimated(c.Sessions)
}

// AnyEstimated reports whether a part of the cost of the sessions is an estimate.
func AnyEstimated(sessions []Session) bool {
	return slices.ContainsFunc(sessions, func(session Session) bool { return session.CostEstimated })
}

// CostText returns the cost as text, as Report.CostText does.
func (c *Chain) CostText() string {
	return plaintext.Cost(c.CostUSD, c.CostEstimated())
}

// Wait describes a pause of a chain.
type Wait struct {
	Rule   Rule   `json:"rule"`
	Reason string `json:"reason"`
	// Since is the beginning of the wait. Until is the time of the next attempt.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// News holds news about the incidents of the chain that arrived during the wait, one entry for each incident.
	News []GateNews `json:"news,omitempty"`
}

// IssueChain describes the chain of one issue. The state of the chain that found the issue contains this description.
type IssueChain struct {
	// ChainID is the Temporal workflow ID of the issue's chain; empty if the issue has no chain.
	ChainID  string   `json:"chain_id,omitempty"`
	Services []string `json:"services"`
	Summary  string   `json:"summary"`
	// IncidentID is the incident of the issue; empty if the records have no such incident.
	IncidentID string `json:"incident_id,omitempty"`
	// Outcome is empty while the chain of the issue runs.
	Outcome Outcome `json:"outcome,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	// Rule is the rule that ended an issue without a chain; empty if the issue has a chain.
	Rule Rule `json:"rule,omitempty"`
	Cost
}

// Last returns the latest session, which can still be running; nil before the first session.
func (c *Chain) Last() *Session {
	if len(c.Sessions) == 0 {
		return nil
	}
	return &c.Sessions[len(c.Sessions)-1]
}

// Session returns the session with a conversation; nil if the state does not have it.
func (c *Chain) Session(sessionID string) *Session {
	for i := range c.Sessions {
		if c.Sessions[i].SessionID == sessionID {
			return &c.Sessions[i]
		}
	}
	return nil
}

// MaxReviews limits the reviews in the state of a chain.
const MaxReviews = 5

// Worked returns the latest session that is no review; nil if there is none.
func (c *Chain) Worked() *Session {
	for i := len(c.Sessions) - 1; i >= 0; i-- {
		if c.Sessions[i].Purpose != PurposeReview {
			return &c.Sessions[i]
		}
	}
	return nil
}

// Tier returns the tier of the latest session that is no review; 0 before the first session.
func (c *Chain) Tier() Tier {
	if last := c.Worked(); last != nil {
		return last.Tier
	}
	return 0
}

// SpentAtMostUSD returns the amount that counts against the chain's budget, in US dollars. The amount is the sum of the
// known costs and of the unspent reservations of sessions with unknown cost.
func (c *Chain) SpentAtMostUSD() float64 {
	return c.CostUSD + c.Earlier.UnknownUSD + UnknownUSD(c.Sessions)
}

// CostWithIssuesUSD returns the cost of the chain and of its issues' chains, in US dollars.
func (c *Chain) CostWithIssuesUSD() float64 {
	total := c.CostUSD
	for _, issue := range c.Issues {
		total += issue.CostUSD
	}
	return total
}

// CostWithIssuesText returns that cost as text.
func (c *Chain) CostWithIssuesText() string {
	ofIssue := func(issue IssueChain) bool { return issue.CostEstimated }
	return plaintext.Cost(c.CostWithIssuesUSD(), c.CostEstimated() || slices.ContainsFunc(c.Issues, ofIssue))
}

// AllServices returns the services of the chain and its issues, without duplicates.
func (c *Chain) AllServices() []string {
	all := slices.Clone(c.Services)
	for _, issue := range c.Issues {
		all = append(all, issue.Services...)
	}
	return UniqueServices(all)
}

// UnknownUSD returns the amount in US dollars that counts against budgets in addition to the recorded cost of sessions.
// For each session with unknown cost, it adds the unspent part of the session's budget.
func UnknownUSD(sessions []Session) float64 {
	var total float64
	for i := range sessions {
		total += sessions[i].unknownUSD()
	}
	return total
}

// TotalCostUSD sums the cost of sessions, in US dollars.
func TotalCostUSD(sessions []Session) float64 {
	var total float64
	for i := range sessions {
		total += sessions[i].CostUSD
	}
	return total
}
