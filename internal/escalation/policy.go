package escalation

import (
	"cmp"
	"slices"
	"time"
)

const (
	// defaultHeartbeat is the time between two heartbeats of an agent if the policy sets none.
	defaultHeartbeat = time.Second
	// leastHeartbeatTimeout is the shortest heartbeat timeout. It tolerates a slow network, but still detects a lost
	// host soon.
	leastHeartbeatTimeout = 30 * time.Second
	// heartbeatsPerTimeout is the least number of heartbeats in a heartbeat timeout. If Temporal accepts no heartbeat
	// for half of the timeout, which is three heartbeats, the worker stops its agent during the other half.
	heartbeatsPerTimeout = 6
)

// Policy holds the limits and permissions of a chain. A chain takes a copy at its start. So changing the configuration
// does not alter a running chain.
type Policy struct {
	// Tiers holds one entry per tier, in the order of the function Tiers.
	Tiers []TierPolicy `json:"tiers"`
	// MaxTier is the highest tier that may run.
	MaxTier Tier `json:"max_tier,omitzero"`
	// DryRun suppresses escalation. In a dry run every tier has only the permissions of TierObserve.
	DryRun bool `json:"dry_run"`
	// Continuity selects how context passes from tier to tier.
	Continuity ContinuityMode `json:"continuity,omitempty"`
	// ResumeThreshold is the largest part of the next model's context window that a resumed conversation is permitted
	// to fill, from 0 to 1.
	ResumeThreshold float64 `json:"resume_threshold,omitempty"`
	// Notify reports whether a notification target is configured.
	Notify bool `json:"notify,omitempty"`
	// Repositories lists directories in which agents are permitted to run, in addition to the default directory.
	Repositories []string `json:"repositories,omitempty"`
	// ResumeMaxTokens caps the size of a resumed conversation in tokens, independently of the context window; 0 sets no
	// cap.
	ResumeMaxTokens int `json:"resume_max_tokens,omitempty"`
	// ChainBudgetUSD caps the spending of one chain, in US dollars; 0 sets no cap.
	ChainBudgetUSD float64 `json:"chain_budget_usd,omitempty"`
	// OwnBudgetUSD is the budget in the chain's input, if that is lower than the configured one; 0 if it is not.
	OwnBudgetUSD float64 `json:"own_budget_usd,omitempty"`
	// DayBudgetUSD caps the spending of all chains together on one day (UTC), in US dollars; 0 sets no cap.
	DayBudgetUSD float64 `json:"day_budget_usd,omitempty"`
	// Cooldowns limits how often agents can repair a service.
	Cooldowns Cooldowns `json:"cooldowns,omitzero"`
	// EscalationLimit limits how many chains can escalate within the window of the limit.
	EscalationLimit Limit `json:"escalation_limit,omitzero"`
	// Returns limits how often chains repair a fault that has come back. If a fault has come back Max times within
	// Window, chains do not repair it in the same way again. If Returns is not set, there is no such limit.
	Returns Limit `json:"returns,omitzero"`
	// MaxParallelIssues limits how many issues of one chain are repaired at the same time.
	MaxParallelIssues int `json:"max_parallel_issues,omitempty"`
	// Gate holds the rules for gates.
	Gate GatePolicy `json:"gate,omitzero"`
	// Review holds the rules for reviews of what agents commit.
	Review ReviewPolicy `json:"review,omitzero"`
	// Author holds the rules for authors of plans and of their phases.
	Author AuthorPolicy `json:"author,omitzero"`
	// TalksPerPerson limits the conversations in which a person is answered at the same time; 0 sets no limit.
	TalksPerPerson int `json:"talks_per_person,omitempty"`
	// Encrypted reports that Temporal must not see the words of agents and people. In that case search attributes
	// contain no names of services, because search attributes cannot be encrypted.
	Encrypted bool `json:"encrypted,omitempty"`
	// Heartbeat is the time between two heartbeats of an agent; 0 means one second.
	Heartbeat Duration `json:"heartbeat,omitempty"`
}

// TierPolicy holds the limits and permissions of one tier.
type TierPolicy struct {
	// Model is the model's name for the CLI: an alias such as "haiku" or a full name.
	Model string `json:"model,omitempty"`
	// ContextWindow is the size of the model's context window in tokens. A size that the CLI has reported replaces the
	// configured size.
	ContextWindow int `json:"context_window,omitempty"`
	// Tools lists the tools that the agent has.
	Tools []string `json:"tools,omitempty"`
	// AllowedTools lists permission rules of the CLI. If the list is not empty, every call must match one of these
	// rules. The tier's other rules apply as well.
	AllowedTools []string `json:"allowed_tools,omitempty"`
	// Timeout is the wall-clock limit of one attempt.
	Timeout Duration `json:"timeout,omitempty"`
	// MaxTurns caps the agent's turns; 0 sets no cap.
	MaxTurns int `json:"max_turns,omitempty"`
	// BudgetUSD caps the spending of one session over all its attempts, in US dollars; 0 sets no cap.
	BudgetUSD float64 `json:"budget_usd,omitempty"`
}

// For returns the policy of tier. In a dry run, that policy has the tools and rules of TierObserve.
func (p Policy) For(tier Tier) TierPolicy {
	own := p.Tiers[tier-1]
	if p.DryRun {
		observe := p.Tiers[TierObserve-1]
		own.Tools, own.AllowedTools = observe.Tools, observe.AllowedTools
	}
	return own
}

// OfSession returns the part of the policy that admits and runs a session of tier. The inputs of activities hold only
// this part, because Temporal stores every input in the chain's history.
func (p Policy) OfSession(tier Tier) Policy {
	tiers := make([]TierPolicy, len(p.Tiers))
	tiers[tier-1] = p.For(tier)
	if p.DryRun { // For takes the tools from TierObserve
		tiers[TierObserve-1] = p.For(TierObserve)
	}
	return Policy{
		Tiers: tiers, DryRun: p.DryRun, ChainBudgetUSD: p.ChainBudgetUSD, DayBudgetUSD: p.DayBudgetUSD,
		Cooldowns: p.Cooldowns, EscalationLimit: p.EscalationLimit, TalksPerPerson: p.TalksPerPerson,
		Heartbeat: p.Heartbeat,
	}
}

// withLimits returns the policy of a tier or a role with the limits of another one.
func (p TierPolicy) withLimits(now TierPolicy) TierPolicy {
	next := p
	next.Timeout, next.MaxTurns, next.BudgetUSD = now.Timeout, now.MaxTurns, now.BudgetUSD
	return next
}

// WithModel returns the policy with the model that is configured now for the tier or the role of a session whose model
// was refused.
func (p Policy) WithModel(now Policy, of Session) Policy {
	next := p
	own, configured := &next.Review.Reviewer, now.Review.Reviewer
	switch of.Purpose { //nolint:exhaustive // the others have the model of their tier
	case PurposeReview:
	case PurposeAuthor:
		own, configured = &next.Author.Role, now.Author.Role
	default:
		next.Tiers = slices.Clone(p.Tiers)
		own, configured = &next.Tiers[of.Tier-1], now.For(of.Tier)
	}
	own.Model, own.ContextWindow = configured.Model, configured.ContextWindow
	return next
}

// WithLimits returns the policy with the times, the turns and the budgets that are configured now, for a chain that has
// spent the given amount. If the chain's own budget is spent, the chain gets as much again, as far as the configured
// one permits.
func (p Policy) WithLimits(now Policy, spentUSD float64) Policy {
	next := p
	next.Tiers = slices.Clone(p.Tiers)
	for i := range min(len(next.Tiers), len(now.Tiers)) {
		next.Tiers[i] = next.Tiers[i].withLimits(now.Tiers[i])
	}
	next.Author.Role = next.Author.Role.withLimits(now.Author.Role)
	next.Review.Reviewer = next.Review.Reviewer.withLimits(now.Review.Reviewer)
	next.ChainBudgetUSD, next.DayBudgetUSD = now.ChainBudgetUSD, now.DayBudgetUSD
	if p.OwnBudgetUSD > 0 {
		own := p.ChainBudgetUSD
		if own-spentUSD < leastUSD(own, own) {
			own = spentUSD + p.OwnBudgetUSD
		}
		next.ChainBudgetUSD = min(cmp.Or(now.ChainBudgetUSD, own), own)
	}
	return next
}

// HeartbeatInterval returns the time between two heartbeats of an agent.
func (p Policy) HeartbeatInterval() time.Duration { return cmp.Or(p.Heartbeat.Std(), defaultHeartbeat) }

// HeartbeatTimeout returns the time without a heartbeat after which Temporal considers a worker dead and gives its tier
// to another worker.
func (p Policy) HeartbeatTimeout() time.Duration {
	return max(leastHeartbeatTimeout, heartbeatsPerTimeout*p.HeartbeatInterval())
}
