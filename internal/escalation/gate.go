package escalation

import "time"

// Gate is the place where a chain waits for a person. It is the answer to the `gate` query while it
// is open, and part of the chain ever after.
type Gate struct {
	// ID names the gate within its chain: "gate-1" is the first.
	ID     string     `json:"id"`
	Source GateSource `json:"source"`
	// Tier is the tier that `fix` runs again: the one that ran last, or the one that was refused.
	Tier Tier `json:"tier"`
	// SessionID is the conversation of the session that led to the gate; empty if none did.
	SessionID string `json:"session_id,omitempty"`
	// Rule is the rule of the policy that would have ended the chain, and Reason says why in a sentence.
	Rule   Rule   `json:"rule"`
	Reason string `json:"reason"`
	// Tried is what the agents did, in order, one sentence each.
	Tried []string `json:"tried,omitempty"`
	// CostUSD is what the chain had spent when the gate opened, in US dollars.
	CostUSD  float64   `json:"cost_usd"`
	OpenedAt time.Time `json:"opened_at"`
	// ExpiresAt is when the chain goes on without an answer, as OnTimeout says.
	ExpiresAt time.Time  `json:"expires_at"`
	OnTimeout GateAction `json:"on_timeout"`
	// Options are the actions that may be chosen, in the order in which people are shown them.
	Options []GateAction `json:"options"`
	// Continuation is the session that continue_session goes on with. The option exists only with it:
	// nothing infers it.
	Continuation *Continuation `json:"continuation,omitempty"`
	// NoContinuation says in a sentence why there is none.
	NoContinuation string `json:"no_continuation,omitempty"`
	// Fresh says that a fix starts without the conversation that the chain was to start from: it could
	// not be loaded, and nothing else is known of it.
	Fresh bool `json:"fresh,omitempty"`
	// Answer is how the gate was closed; nil while it is open.
	Answer *GateClosing `json:"answer,omitempty"`
}

// GateSource is what a gate was opened for.
type GateSource string

// The sources.
const (
	GateNeedsHuman GateSource = "needs_human"      // the tier asks for a person
	GateFailed     GateSource = "failed"           // the tier could not do its work
	GateTimedOut   GateSource = "timed_out"        // a time limit ended the tier
	GateBudget     GateSource = "budget_exhausted" // the session's own budget or turns ran out
	GateBlocked    GateSource = "blocked"          // the policy blocked an escalation
	GateUnresolved GateSource = "unresolved"       // the highest tier could not resolve the problem
)

// Continuation is an interrupted session that can be gone on with.
type Continuation struct {
	SessionID string `json:"session_id"`
	// Role is the tier of the session, and of the one that goes on with it.
	Role Tier `json:"role"`
	// State is how the session ended.
	State SessionStatus `json:"state"`
}

// GateAction is what a person chooses at a gate.
type GateAction string

// The actions.
const (
	GateContinue GateAction = "continue_session" // go on with the interrupted session
	GateFix      GateAction = "fix"              // run the tier again in a new session
	GateOverride GateAction = "override"         // accept the state, end as overridden
	GateAbort    GateAction = "abort"            // end as aborted
)

// GateAnswer is what a person answers: the payload of the update, and of the signal, `resolve-gate`.
type GateAnswer struct {
	GateID string     `json:"gate_id"`
	Action GateAction `json:"action"`
	// Guidance is told to the agent; at most MaxGuidance characters.
	Guidance string `json:"guidance,omitempty"`
	// Actor is who answers. It is recorded as given.
	Actor string `json:"actor"`
}

// MaxGuidance is how many characters of guidance a person may give: it goes into prompts and histories.
const MaxGuidance = 10_000

// GateClosing is an answer that was accepted, or the lack of one.
type GateClosing struct {
	Action   GateAction `json:"action"`
	Guidance string     `json:"guidance,omitempty"`
	// Actor is who answered; empty if nobody did until the gate expired.
	Actor string    `json:"actor,omitempty"`
	At    time.Time `json:"at"`
	// ToTier is the tier that a person asked for by the signal escalate instead; 0 if nobody did.
	ToTier Tier `json:"to_tier,omitempty"`
	// Cancelled says that the chain was cancelled at the gate.
	Cancelled bool `json:"cancelled,omitempty"`
}

// GateResolution is the result of the update: what happens next.
type GateResolution struct {
	GateID string     `json:"gate_id"`
	Action GateAction `json:"action"`
	// Next is a sentence.
	Next string `json:"next"`
}

// GatePolicy is how a chain waits for people.
type GatePolicy struct {
	// Timeout is how long a gate stays open; 0 opens none, and the chain ends instead. Chains from
	// before there were gates have it 0 in their snapshot.
	Timeout Duration `json:"timeout,omitempty"`
	// OnTimeout is what an expired gate does: GateAbort or GateFix.
	OnTimeout GateAction `json:"on_timeout,omitempty"`
	// Remind is when people are reminded, counted from the opening, in rising order.
	Remind []Duration `json:"remind,omitempty"`
	// Approvers may answer; nobody else may. Everybody may if it is empty.
	Approvers []string `json:"approvers,omitempty"`
	// FourEyes forbids whoever started the chain to answer.
	FourEyes bool `json:"four_eyes,omitempty"`
}
