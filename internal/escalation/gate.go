package escalation

import (
	"time"
)

// Gate is a point at which a chain waits for an operator. While the gate is open, the `gate` query returns the gate.
// Chain.Gates lists open and closed gates.
type Gate struct {
	// ID identifies the gate within its chain, beginning with "gate-1".
	ID     string     `json:"id"`
	Source GateSource `json:"source"`
	// Tier is the tier that the action `fix` starts: the tier that ran or was refused before the gate.
	Tier Tier `json:"tier"`
	// MaxTier is the highest tier allowed to the chain, if Tier is higher; 0 if it is not. The action `fix` then needs a
	// CLAUDEOPS_MAX_TIER of the workers that allows Tier: a person's answer raises the limit of the chain so far.
	MaxTier Tier `json:"max_tier,omitempty"`
	// Phase is the number of the phase of a plan at which the gate is; empty if the gate belongs to no plan. At such a
	// gate override accepts the phase, and the work on the plan goes on. PlanItself is the plan as a whole.
	Phase string `json:"phase,omitempty"`
	// Plan is the path of that plan in its repository; empty if the gate belongs to no plan, and at gates of 0.1.0.
	Plan string `json:"plan,omitempty"`
	// SessionID identifies the conversation of the session before the gate; empty if no session has run.
	SessionID string `json:"session_id,omitempty"`
	// Rule names the policy rule that would have ended the chain without the gate. Reason explains the decision in a
	// sentence.
	Rule   Rule   `json:"rule"`
	Reason string `json:"reason"`
	// Refused is the temporary limit because of which there is no review, if Rule is RuleReview and there is such a
	// limit.
	Refused Rule `json:"refused,omitempty"`
	// Higher is the highest tier that a person can ask for instead; 0 if there is none.
	Higher Tier `json:"higher_tier,omitempty"`
	// Faults lists what is wrong: the open incidents that the chain works on, the most severe first, at most
	// MaxGateFaults.
	Faults []ChainIncident `json:"faults,omitempty"`
	// Found is what the last agent with a verdict has found, in its words.
	Found string `json:"found,omitempty"`
	// Tried lists what the agents did, one sentence for each session, oldest first.
	Tried []string `json:"tried,omitempty"`
	GateNotes
	// Cost is the chain's spending before the gate.
	Cost

	OpenedAt time.Time `json:"opened_at"`
	// ExpiresAt is the time at which the gate expires. If nobody has answered by then, the chain takes the action
	// OnTimeout.
	ExpiresAt time.Time  `json:"expires_at"`
	OnTimeout GateAction `json:"on_timeout"`
	// Role and Resume say how a loop of author and reviewer continues after continue_session and fix: whose session
	// runs, and the state of the loop, such as auto_fix. Role is empty if no session runs in that state. Outside of
	// loops both are empty.
	Role   string `json:"role,omitempty"`
	Resume string `json:"resume,omitempty"`
	// Options lists the permitted actions in the order of their display.
	Options []GateAction `json:"options"`
	// Commit is the commit that the action override accepts and, in a chain, pushes; empty if there is none.
	Commit string `json:"commit,omitempty"`
	// Open describes the open findings about Commit, which the action override accepts; empty if there is none.
	Open string `json:"open,omitempty"`
	// Approved is the commit of what was approved of a plan before the gate, and is not pushed yet; empty if there is
	// none.
	Approved string `json:"approved,omitempty"`
	// NoRemote reports that the repository has no remote origin, so nothing is pushed.
	NoRemote bool `json:"no_remote,omitempty"`
	// Continuation is the session that the action continue_session would continue; nil if this action is not offered.
	Continuation *Continuation `json:"continuation,omitempty"`
	// Budget says under which budget a session starts after the answers continue_session and fix, because a budget has
	// opened the gate or is spent; empty if none is. These answers take over the budgets that are configured then.
	Budget string `json:"budget,omitempty"`
	// NoContinuation explains in a sentence why Continuation is nil.
	NoContinuation string `json:"no_continuation,omitempty"`
	// Fresh reports that the action `fix` starts without earlier context. This happens if the input named a
	// conversation that cannot be used and that has no record.
	Fresh bool `json:"fresh,omitempty"`
	// History describes the earlier repairs of a fault that has come back, oldest first, one line for each.
	History []string `json:"history,omitempty"`
	// News holds news about the incidents of the chain that arrived while the gate was open, one entry for each
	// incident.
	News []GateNews `json:"news,omitempty"`
	// Answer describes how the gate was closed; nil while the gate is open.
	Answer *GateClosing `json:"answer,omitempty"`
}

// MaxGateFaults limits the incidents that a gate lists.
const MaxGateFaults = 5

// GateNotes holds what only the records know of a gate.
type GateNotes struct {
	// DeniedCalls lists calls of the last session that the guard has denied, each with the reason, at most
	// MaxDeniedCalls of Denied.
	DeniedCalls []string `json:"denied_calls,omitempty"`
	Denied      int      `json:"denied,omitempty"`
	// Cooldowns says how often the services may still be restarted and redeployed.
	Cooldowns []ServiceState `json:"cooldowns,omitempty"`
}

// NotesRequest asks for the GateNotes of a gate after a session.
type NotesRequest struct {
	SessionID string    `json:"session_id"`
	Services  []string  `json:"services,omitempty"`
	Limits    Cooldowns `json:"limits"`
	At        time.Time `json:"at"`
}

// MaxDeniedCalls limits the denied calls that a gate lists.
const MaxDeniedCalls = 3

// GateNews is news about an incident: another chain's finding, or the closing of the incident by a person.
type GateNews struct {
	IncidentID string       `json:"incident_id"`
	Status     IncidentNews `json:"status"`
	Note       string       `json:"note,omitempty"`
	// ChainID is the chain that has looked at the incident; empty if a person has closed the incident.
	ChainID string `json:"chain_id,omitempty"`
	// Actor is the person who has closed the incident; empty if a chain has looked at the incident.
	Actor string    `json:"actor,omitempty"`
	At    time.Time `json:"at"`
}

// GateSource says why a gate was opened.
type GateSource string

// The sources.
const (
	GateNeedsHuman GateSource = "needs_human"      // the tier asks for an operator
	GateFailed     GateSource = "failed"           // the tier could not do its work
	GateTimedOut   GateSource = "timed_out"        // a time limit stopped the session
	GateBudget     GateSource = "budget_exhausted" // the session's own budget or turns were used up
	GateBlocked    GateSource = "blocked"          // the policy blocked an escalation
	GateUnresolved GateSource = "unresolved"       // the highest tier could not resolve the problem
)

// Continuation is an interrupted session that an operator can continue.
type Continuation struct {
	SessionID string `json:"session_id"`
	// Tier is the tier of the interrupted session and of the session that continues it.
	Tier Tier `json:"tier"`
	// Role is the role of both sessions, author or reviewer, and Resume the state in which their loop continues. Both
	// are empty outside of loops. The field role of chains that began with 0.1.0 is a tier.
	Role   string `json:"session_role,omitempty"`
	Resume string `json:"resume,omitempty"`
	// Status is the status with which the interrupted session ended.
	Status SessionStatus `json:"status"`
}

// GateAction is an operator's choice at a gate.
type GateAction string

// The actions.
const (
	GateContinue GateAction = "continue_session" // continue the interrupted session
	GateFix      GateAction = "fix"              // run the tier again in a new session
	GateOverride GateAction = "override"         // accept the state; end as overridden
	GateAbort    GateAction = "abort"            // end as aborted
	// GateRecheck runs TierObserve once more, because a person has repaired what was wrong. A chain takes this action
	// itself if other chains have found the incidents at its gate healed.
	GateRecheck GateAction = "recheck"
)

// GateAnswer is an operator's answer at a gate. It is the payload of both the update and the signal `resolve-gate`.
type GateAnswer struct {
	GateID string     `json:"gate_id"`
	Action GateAction `json:"action"`
	// Guidance is text for the agent, with at most MaxGuidance characters.
	Guidance string `json:"guidance,omitempty"`
	// Force starts the session now, although the restarts of its services are used up.
	Force bool `json:"force,omitempty"`
	// Actor names the person who answers. It is only what the client says, unless Verified is set.
	Actor string `json:"actor"`
	// Verified reports that the person has logged in to the server of the pages under this name. That server sets it;
	// it takes nobody's word. A client that reaches Temporal itself can set it, too.
	Verified bool `json:"verified,omitempty"`
}

// MaxGuidance limits an operator's guidance, in characters, because prompts and histories contain the guidance.
const MaxGuidance = 10_000

// GateClosing records how a gate was closed, for example by an answer or by its expiry.
type GateClosing struct {
	Action   GateAction `json:"action"`
	Guidance string     `json:"guidance,omitempty"`
	// Force reports that the session starts although the restarts of its services are used up.
	Force bool `json:"force,omitempty"`
	// Actor names the person who answered; empty if the gate was closed without an answer.
	Actor string `json:"actor,omitempty"`
	// Verified reports that the person had logged in under this name.
	Verified bool      `json:"verified,omitempty"`
	At       time.Time `json:"at"`
	// ToTier is the tier that the signal escalate requested; 0 if another event closed the gate.
	ToTier Tier `json:"to_tier,omitempty"`
	// Cancelled reports whether the chain was cancelled at the gate.
	Cancelled bool `json:"cancelled,omitempty"`
}

// GateResolution is the result of the update resolve-gate.
type GateResolution struct {
	GateID string     `json:"gate_id"`
	Action GateAction `json:"action"`
	// Next describes in a sentence the next step of the chain.
	Next string `json:"next"`
}

// GatePolicy holds the rules for gates.
type GatePolicy struct {
	// Timeout limits how long a gate stays open. If Timeout is 0, no gate opens, and the chain ends at that point.
	Timeout Duration `json:"timeout,omitempty"`
	// OnTimeout is the action of a gate that expires: GateAbort or GateFix.
	OnTimeout GateAction `json:"on_timeout,omitempty"`
	// Remind lists when reminders are sent, as times since the opening of the gate in ascending order.
	Remind []Duration `json:"remind,omitempty"`
	// Approvers lists the people who are permitted to answer; empty if everybody is permitted.
	Approvers []string `json:"approvers,omitempty"`
	// FourEyes forbids answers by the person who started the chain.
	FourEyes bool `json:"four_eyes,omitempty"`
	// RequireVerified permits answers only by people who have logged in under their names.
	RequireVerified bool `json:"require_verified,omitempty"`
	// OnHealed selects what a chain does at an open gate when its incidents are reported as healed. Empty means
	// HealedKeep.
	OnHealed HealedAction `json:"on_healed,omitempty"`
}

// HealedAction is the action of a chain at a gate whose incidents have healed.
type HealedAction string

// The actions.
const (
	HealedClose HealedAction = "close" // look once more, and end as resolved if the incidents are gone
	HealedKeep  HealedAction = "keep"  // show the news, and wait for a person's answer
)
