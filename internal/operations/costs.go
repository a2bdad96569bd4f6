package operations

import (
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Costs says what sessions have cost. The records answer.
type Costs struct{ *backend }

// CostFilter selects the sessions that were started in a time.
type CostFilter struct {
	// From is the begin of the time. If it is zero, the time is the last 30 days, with today.
	From time.Time
	// To is the end of the time, which does not belong to it. If it is zero, it is now.
	To time.Time
}

// CostReport is what sessions have cost. Amounts are in US dollars. Reports that were replaced after a reset count, because
// they were paid. A running session counts as soon as it has ended.
type CostReport struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Zone is the time zone of the days: the one of this program.
	Zone  string `json:"zone"`
	Total Cost   `json:"total"`
	// Days has an entry for each day of the time, oldest first, also for days without a session.
	Days []DayCost `json:"days"`
	// The lists begin with what has cost most. Their sums are the total.
	Tiers    []TierCost  `json:"tiers"` // by tier, the lowest first
	Models   []NamedCost `json:"models"`
	Triggers []NamedCost `json:"triggers"`
	// Services splits the cost of a session evenly among the services that its verdict names. What names none has the name "".
	Services []NamedCost `json:"services"`
	// HealthyLook is what a look costs that finds nothing wrong.
	HealthyLook HealthyLook `json:"healthy_look"`
	// MonthUSD is the cost of 30 days at the rate of this time. The rate is that since the first session, and of at least a day.
	MonthUSD float64 `json:"month_usd"`
}

// Cost is the cost of some sessions, in US dollars.
type Cost struct {
	USD float64 `json:"usd"`
	// EstimatedUSD is the part of USD that belongs to sessions whose cost is partly estimated.
	EstimatedUSD float64 `json:"estimated_usd,omitempty"`
	// UnknownUSD is what sessions whose cost is unknown may have cost in addition, at most. It counts against budgets.
	UnknownUSD float64 `json:"unknown_usd,omitempty"`
	// Sessions counts the sessions.
	Sessions int `json:"sessions"`
}

// DayCost is the cost of the sessions that started on a day.
type DayCost struct {
	// Day is the date, such as 2026-11-25.
	Day string `json:"day"`
	Cost
}

// TierCost is the cost of the sessions of a tier.
type TierCost struct {
	Tier escalation.Tier `json:"tier"`
	Cost
}

// NamedCost is the cost of the sessions with a model, a trigger or a service.
type NamedCost struct {
	Name string `json:"name"`
	Cost
}

// HealthyLook describes the sessions of Tier 1 whose verdict is healthy.
type HealthyLook struct {
	Sessions int `json:"sessions"`
	// AverageUSD is their average cost, in US dollars; 0 if there are none.
	AverageUSD float64 `json:"average_usd"`
}
