package escalation

// Policy is what a chain may do. A chain reads it once, when it starts, and keeps that
// copy: a change of configuration never alters a chain that is running.
type Policy struct {
	// Tiers holds one entry per tier, in the order of Tiers.
	Tiers []TierPolicy `json:"tiers"`
	// MaxTier is the highest tier that may run. Nothing escalates past it.
	MaxTier Tier `json:"max_tier"`
	// DryRun suppresses escalation and holds whatever tier runs to the
	// permissions of TierObserve.
	DryRun bool `json:"dry_run"`
	// Continuity is how context passes from tier to tier.
	Continuity ContinuityMode `json:"continuity"`
	// ResumeThreshold is the share of the next model's context window (0 to 1) that
	// a conversation may fill and still be resumed.
	ResumeThreshold float64 `json:"resume_threshold"`
	// Notify says that there is somebody to notify.
	Notify bool `json:"notify,omitempty"`
	// Repositories are the directories, beside the usual one, in which agents may run.
	Repositories []string `json:"repositories,omitempty"`
	// ResumeMaxTokens is how many tokens a conversation may hold and still be resumed,
	// whatever the window; 0 is no such cap.
	ResumeMaxTokens int `json:"resume_max_tokens,omitempty"`
	// ChainBudgetUSD is what one chain may spend, in US dollars; 0 is no cap.
	ChainBudgetUSD float64 `json:"chain_budget_usd,omitempty"`
	// DayBudgetUSD is what all chains together may spend on one day (UTC); 0 is no cap.
	DayBudgetUSD float64 `json:"day_budget_usd,omitempty"`
	// Cooldowns limit how often a service may be repaired.
	Cooldowns Cooldowns `json:"cooldowns"`
	// EscalationLimit is how many chains may escalate within a window.
	EscalationLimit Limit `json:"escalation_limit"`
	// MaxParallelIssues is how many of the issues of one cycle are worked on at a time.
	MaxParallelIssues int `json:"max_parallel_issues,omitempty"`
	// Gate is how the chain waits for people.
	Gate GatePolicy `json:"gate,omitzero"`
}

// TierPolicy is what one tier may do and spend.
type TierPolicy struct {
	// Model is the model as the CLI understands it: an alias such as "haiku" or a full name.
	Model string `json:"model"`
	// ContextWindow is the model's window in tokens, used until the CLI has reported one.
	ContextWindow int `json:"context_window"`
	// Tools are the tools that exist for the agent at all.
	Tools []string `json:"tools"`
	// AllowedTools are permission rules of the CLI that narrow what the tier is granted: a call must match one of them,
	// too. None does not narrow it.
	AllowedTools []string `json:"allowed_tools,omitempty"`
	// DisallowedTools are permission rules of the CLI that deny, whatever grants.
	DisallowedTools []string `json:"disallowed_tools,omitempty"`
	// Timeout is the wall-clock limit of one attempt.
	Timeout Duration `json:"timeout"`
	// MaxTurns caps the agent's turns; 0 is no cap.
	MaxTurns int `json:"max_turns,omitempty"`
	// BudgetUSD caps what one session may spend, over all its attempts, in US dollars; 0 is no cap.
	BudgetUSD float64 `json:"budget_usd,omitempty"`
	// AbortOnTimeout gives up the conversation of a session that a time limit ended: nobody is
	// offered to go on with it.
	AbortOnTimeout bool `json:"abort_on_timeout,omitempty"`
}

// For returns the policy that holds while tier runs: its own, with the tools and rules
// of TierObserve in a dry run.
func (p Policy) For(tier Tier) TierPolicy {
	own := p.Tiers[tier-1]
	if p.DryRun {
		observe := p.Tiers[TierObserve-1]
		own.Tools, own.AllowedTools, own.DisallowedTools = observe.Tools, observe.AllowedTools, observe.DisallowedTools
	}
	return own
}
