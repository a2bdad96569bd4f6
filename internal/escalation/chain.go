package escalation

import (
	"slices"
	"time"
)

// Chain is an escalation chain as people see it: the answer to the `chain` query while
// it runs, and the workflow's result once it has ended.
type Chain struct {
	// ID is the Temporal workflow ID.
	ID       string   `json:"id"`
	Trigger  Trigger  `json:"trigger"`
	Services []string `json:"services,omitempty"`
	DryRun   bool     `json:"dry_run"`
	MaxTier  Tier     `json:"max_tier"`
	// Outcome is empty until the chain has ended.
	Outcome Outcome `json:"outcome,omitempty"`
	// Reason explains the latest decision in a sentence; once the chain has ended, its outcome.
	Reason    string    `json:"reason,omitempty"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	// CostUSD is the sum over Sessions.
	CostUSD float64 `json:"cost_usd"`
	// Sessions are in the order in which they ran; the last may still be running.
	Sessions []Session `json:"sessions"`
	Events   []Event   `json:"events"`
	// Wait is what the chain waits for; nil if it does not.
	Wait *Wait `json:"wait,omitempty"`
	// Issues are the chains into which this one has split, one for each independent problem.
	Issues []IssueChain `json:"issues,omitempty"`
	// Actor is who started the chain, as far as its input says.
	Actor string `json:"actor,omitempty"`
	// Gates are the places where the chain waited for a person, in order; the last may be open.
	Gates []Gate `json:"gates,omitempty"`
	// Earlier is what a chain that has gone on for very long has left out of these lists; it is in
	// the records.
	Earlier Earlier `json:"earlier,omitzero"`
}

// Earlier counts what is left out of a chain's lists.
type Earlier struct {
	Sessions int     `json:"sessions,omitempty"`
	Events   int     `json:"events,omitempty"`
	Gates    int     `json:"gates,omitempty"`
	CostUSD  float64 `json:"cost_usd,omitempty"` // of these sessions, in US dollars
	// UnknownUSD is what these sessions count with beyond that, because what they cost is unknown.
	UnknownUSD float64 `json:"unknown_usd,omitempty"`
}

// OpenGate returns the gate at which the chain waits; nil if it does not.
func (c *Chain) OpenGate() *Gate {
	if len(c.Gates) == 0 || c.Gates[len(c.Gates)-1].Answer != nil {
		return nil
	}
	return &c.Gates[len(c.Gates)-1]
}

// Wait is a pause of a chain.
type Wait struct {
	Rule   Rule   `json:"rule"`
	Reason string `json:"reason"`
	// Since is when the chain began to wait, and Until when it looks again.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// IssueChain is a chain that repairs one of several issues, as the chain that found it sees it.
type IssueChain struct {
	// ChainID is the Temporal workflow ID; empty if the issue never got a chain.
	ChainID  string   `json:"chain_id,omitempty"`
	Services []string `json:"services"`
	Summary  string   `json:"summary"`
	// Outcome is empty while the chain runs.
	Outcome Outcome `json:"outcome,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	CostUSD float64 `json:"cost_usd"`
}

// Last returns the session that runs, or ran last; nil before the first.
func (c *Chain) Last() *Session {
	if len(c.Sessions) == 0 {
		return nil
	}
	return &c.Sessions[len(c.Sessions)-1]
}

// Tier returns the tier of the last session; 0 before the first.
func (c *Chain) Tier() Tier {
	if last := c.Last(); last != nil {
		return last.Tier
	}
	return 0
}

// SpentAtMostUSD is what counts for the chain's budget: what its sessions cost, and what was reserved
// for those whose cost is unknown, in US dollars.
func (c *Chain) SpentAtMostUSD() float64 {
	return c.CostUSD + c.Earlier.UnknownUSD + UnknownUSD(c.Sessions)
}

// CostWithIssuesUSD is what the chain and the chains of its issues cost, in US dollars.
func (c *Chain) CostWithIssuesUSD() float64 {
	total := c.CostUSD
	for _, issue := range c.Issues {
		total += issue.CostUSD
	}
	return total
}

// AllServices are the services of the chain and of its issues, each once.
func (c *Chain) AllServices() []string {
	all := c.Services
	for _, issue := range c.Issues {
		for _, service := range issue.Services {
			if !slices.Contains(all, service) {
				all = append(slices.Clip(all), service)
			}
		}
	}
	return all
}

// UnknownUSD sums what sessions count with beyond their cost, because that is unknown, in US dollars.
func UnknownUSD(sessions []Session) float64 {
	var total float64
	for i := range sessions {
		total += sessions[i].unknownUSD()
	}
	return total
}

// TotalCostUSD sums what the sessions cost, in US dollars.
func TotalCostUSD(sessions []Session) float64 {
	var total float64
	for i := range sessions {
		total += sessions[i].CostUSD
	}
	return total
}
