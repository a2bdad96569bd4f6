package escalation

import "time"

// Gate is a point at which a chain waits for an operator. While the gate is open, the `gate` query returns it.
// Afterwards it stays in Chain.Gates.
type Gate struct {
	// ID identifies the gate within its chain, beginning with "gate-1".
	ID     string     `json:"id"`
	Source GateSource `json:"source"`
	// Tier is the tier that the action `fix` starts: the tier that ran last, or the tier that was refused.
	Tier Tier `json:"tier"`
	// SessionID identifies the conversation of the session that led to the gate; empty if there was none.
	SessionID string `json:"session_id,omitempty"`
	// Rule names the policy rule that would have ended the chain. Reason explains it in a sentence.
	Rule   Rule   `json:"rule"`
	Reason string `json:"reason"`
	// Tried lists the agents' actions in order, one sentence each.
	Tried []string `json:"tried,omitempty"`
	// CostUSD is the chain's spending before the gate, in US dollars.
	CostUSD  float64   `json:"cost_usd"`
	OpenedAt time.Time `json:"opened_at"`
	// ExpiresAt is the time at which an unanswered gate closes. The gate then takes the action GatePolicy.OnTimeout.
	ExpiresAt time.Time  `json:"expires_at"`
	OnTimeout GateAction `json:"on_timeout"`
	// Options lists the permitted actions in the order in which they are shown.
	Options []GateAction `json:"options"`
	// Continuation is the session that the action continue_session would continue. If it is nil, the action is not
	// offered.
	Continuation *Continuation `json:"continuation,omitempty"`
	// NoContinuation explains in a sentence why Continuation is nil.
	NoContinuation string `json:"no_continuation,omitempty"`
	// Fresh reports whether the action `fix` starts without earlier context. It is set if the chain was to start from a
	// conversation that could not be loaded and that no record describes.
	Fresh bool `json:"fresh,omitempty"`
	// History describes the earlier repairs of a fault that has come back, oldest first, one line for each.
	History []string `json:"history,omitempty"`
	// News holds later findings of other chains about the chain's incidents, one entry for each incident.
	News []GateNews `json:"news,omitempty"`
	// Answer describes how the gate was closed; nil while it is open.
	Answer *GateClosing `json:"answer,omitempty"`
}

// GateNews is a later finding of another chain about an incident.
type GateNews struct {
	IncidentID string       `json:"incident_id"`
	Status     IncidentNews `json:"status"`
	Note       string       `json:"note,omitempty"`
	// ChainID is the chain that has looked.
	ChainID string    `json:"chain_id"`
	At      time.Time `json:"at"`
}

// GateSource names the kind of event that opened a gate.
type GateSource string

// The sources.
const (
	GateNeedsHuman GateSource = "needs_human"      // the tier asks for an operator
	GateFailed     GateSource = "failed"           // the tier could not do its work
	GateTimedOut   GateSource = "timed_out"        // a time limit stopped the tier
	GateBudget     GateSource = "budget_exhausted" // the session's own budget or turns were used up
	GateBlocked    GateSource = "blocked"          // the policy blocked an escalation
	GateUnresolved GateSource = "unresolved"       // the highest tier could not resolve the problem
)

// Continuation is an interrupted session that can be continued.
type Continuation struct {
	SessionID string `json:"session_id"`
	// Role is the tier of the interrupted session, and of its continuation.
	Role Tier `json:"role"`
	// State is the status with which the session ended.
	State SessionStatus `json:"state"`
}

// GateAction is an operator's choice at a gate.
type GateAction string

// The actions.
const (
	GateContinue GateAction = "continue_session" // continue the interrupted session
	GateFix      GateAction = "fix"              // run the tier again in a new session
	GateOverride GateAction = "override"         // accept the state; end as overridden
	GateAbort    GateAction = "abort"            // end as aborted
	// GateRecheck starts TierObserve once more. It closes a gate whose incidents have healed. People cannot choose it.
	GateRecheck GateAction = "recheck"
)

// GateAnswer is an operator's answer. It is the payload of the update `resolve-gate` and of the signal of the same name.
type GateAnswer struct {
	GateID string     `json:"gate_id"`
	Action GateAction `json:"action"`
	// Guidance is passed to the agent. It has at most MaxGuidance characters.
	Guidance string `json:"guidance,omitempty"`
	// Actor names the person who answers. The name is recorded as given and not verified.
	Actor string `json:"actor"`
}

// MaxGuidance limits an operator's guidance, in characters, because prompts and histories contain it.
const MaxGuidance = 10_000

// GateClosing records an accepted answer, the expiry of a gate, or its cancellation.
type GateClosing struct {
	Action   GateAction `json:"action"`
	Guidance string     `json:"guidance,omitempty"`
	// Actor names the person who answered; empty if the gate was closed without an answer.
	Actor string    `json:"actor,omitempty"`
	At    time.Time `json:"at"`
	// ToTier is the tier requested by the signal escalate; 0 if another event closed the gate.
	ToTier Tier `json:"to_tier,omitempty"`
	// Cancelled reports whether the chain was cancelled at the gate.
	Cancelled bool `json:"cancelled,omitempty"`
}

// GateResolution is the result of the update resolve-gate.
type GateResolution struct {
	GateID string     `json:"gate_id"`
	Action GateAction `json:"action"`
	// Next describes the next step in a sentence.
	Next string `json:"next"`
}

// GatePolicy holds the rules for gates.
type GatePolicy struct {
	// Timeout limits the time for which a gate stays open. If it is 0, no gate opens, and the chain ends instead.
	// Chains that started before gates existed have 0 in their copy of the policy.
	Timeout Duration `json:"timeout,omitempty"`
	// OnTimeout is the action taken when a gate expires: GateAbort or GateFix.
	OnTimeout GateAction `json:"on_timeout,omitempty"`
	// Remind lists the reminder times, counted from the opening, in ascending order.
	Remind []Duration `json:"remind,omitempty"`
	// Approvers lists the people who may answer. If it is empty, everybody may.
	Approvers []string `json:"approvers,omitempty"`
	// FourEyes forbids the person who started the chain to answer.
	FourEyes bool `json:"four_eyes,omitempty"`
	// OnHealed selects what a chain at a gate does if another chain reports its incidents as healed. Empty means
	// HealedKeep.
	OnHealed HealedAction `json:"on_healed,omitempty"`
}

// HealedAction is the action of a waiting chain whose incidents have healed.
type HealedAction string

// The actions.
const (
	HealedClose HealedAction = "close" // look once more, and end as resolved if all is well
	HealedKeep  HealedAction = "keep"  // show it, and wait for a person's answer
)
