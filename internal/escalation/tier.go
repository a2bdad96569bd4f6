package escalation

import "fmt"

// Tier is a level of permission, cost and capability. Each session runs in exactly one.
type Tier int

// The tiers, least powerful first.
const (
	TierObserve    Tier = 1 // looks, changes nothing
	TierSafeRepair Tier = 2 // restarts and other repairs that are safe to try
	TierFullRepair Tier = 3 // redeployments and everything else that is allowed at all
)

// Tiers lists every tier, least powerful first.
func Tiers() []Tier { return []Tier{TierObserve, TierSafeRepair, TierFullRepair} }

// Valid reports whether t is one of the three tiers.
func (t Tier) Valid() bool { return t >= TierObserve && t <= TierFullRepair }

// String returns "tier 1" and the like.
func (t Tier) String() string { return fmt.Sprintf("tier %d", int(t)) }
