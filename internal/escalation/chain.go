package escalation

import "time"

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

// TotalCostUSD sums what the sessions cost, in US dollars.
func TotalCostUSD(sessions []Session) float64 {
	var total float64
	for i := range sessions {
		total += sessions[i].CostUSD
	}
	return total
}
