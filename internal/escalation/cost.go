package escalation

import "github.com/claudeops/claudeops/internal/plaintext"

// Cost adds up the money that sessions have spent.
type Cost struct {
	// CostUSD is in US dollars.
	CostUSD float64 `json:"cost_usd"`
	// CostEstimated is true if a part of the cost is an estimate, or a guess because the price of a model is not known.
	CostEstimated bool `json:"cost_estimated,omitempty"`
}

// CostText returns the cost as people read it. It says if the cost is an estimate.
func (c Cost) CostText() string { return plaintext.Cost(c.CostUSD, c.CostEstimated) }

// Plus returns the sum of two costs.
func (c Cost) Plus(more Cost) Cost {
	return Cost{CostUSD: c.CostUSD + more.CostUSD, CostEstimated: c.CostEstimated || more.CostEstimated}
}
