package escalation

import "time"

// Severity ranks events, issues and notifications.
type Severity string

// The severities.
const (
	SeverityInfo     Severity = "info"
	SeverityWarning  Severity = "warning"
	SeverityCritical Severity = "critical"
)

// Event records an action or decision of a chain, so that people can look it up later.
type Event struct {
	// Key identifies the event. The records keep one event for each key.
	Key     string `json:"key"`
	ChainID string `json:"chain_id"`
	// FirstRunID is the run ID with which the chain began; empty in the state of a chain. In the records it tells the
	// events of chains with the same ID apart.
	FirstRunID string `json:"first_run_id,omitempty"`
	// SessionID identifies the conversation of the event; empty if the event concerns the whole chain.
	SessionID string    `json:"session_id,omitempty"`
	Kind      EventKind `json:"kind"`
	Severity  Severity  `json:"severity"`
	// Message describes the event in one sentence.
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

// EventKind classifies events.
type EventKind string

// The kinds.
const (
	EventChainStarted   EventKind = "chain_started"
	EventSessionCreated EventKind = "session_created"
	EventSessionEnded   EventKind = "session_ended"
	EventDecision       EventKind = "decision"
	EventChainEnded     EventKind = "chain_ended"
	EventNotNotified    EventKind = "notification_failed"
	EventNotified       EventKind = "notification_delivered" // after EventNotNotified
	EventWaitStarted    EventKind = "wait_started"
	EventWaitEnded      EventKind = "wait_ended"
	EventIssueStarted   EventKind = "issue_started"
	EventIssueEnded     EventKind = "issue_ended"
	EventSignal         EventKind = "signal"        // an operator intervened
	EventHandoff        EventKind = "handoff"       // a handoff was built, written or rejected
	EventWorktreeKept   EventKind = "worktree_kept" // a session has left work that a person must merge
	EventPhase          EventKind = "phase"         // the work on a phase of a plan began or ended
	EventReview         EventKind = "review"        // a review was decided on, or could not take place
	// EventSessionReused: replaces session_created when an interrupted session is continued
	EventSessionReused  EventKind = "session_reused"
	EventGateOpened     EventKind = "gate_opened"
	EventGateReminder   EventKind = "gate_reminder"
	EventGateClosed     EventKind = "gate_closed"
	EventGateRefused    EventKind = "gate_refused"    // an answer was rejected
	EventUnknownService EventKind = "unknown_service" // a name that the services file does not have
	EventIncident       EventKind = "incident"        // an incident is known, has become worse or has healed
)
