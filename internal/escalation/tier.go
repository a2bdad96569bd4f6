package escalation

import "fmt"

// Tier is a level of permissions, cost and capability. Each session runs in one tier.
type Tier int

// The tiers, least powerful first.
const (
	TierObserve    Tier = 1 // observes; changes nothing
	TierSafeRepair Tier = 2 // also restarts services and makes other repairs that are safe to try
	TierFullRepair Tier = 3 // also redeploys services and makes all other permitted changes
)

// Tiers lists every tier, least powerful first.
func Tiers() []Tier { return []Tier{TierObserve, TierSafeRepair, TierFullRepair} }

// Valid reports whether t is one of the three tiers.
func (t Tier) Valid() bool { return t >= TierObserve && t <= TierFullRepair }

// String returns the tier in words, such as "tier 1".
func (t Tier) String() string { return fmt.Sprintf("tier %d", int(t)) }
