package escalation

import "time"

// Severity ranks an event.
type Severity string

// The severities.
const (
	SeverityInfo     Severity = "info"
	SeverityWarning  Severity = "warning"
	SeverityCritical Severity = "critical"
)

// Event is something that a chain did or decided, kept so that someone can later ask why.
type Event struct {
	// Key identifies the event: recording one key twice keeps one event.
	Key     string `json:"key"`
	ChainID string `json:"chain_id"`
	// SessionID is the conversation that the event is about; empty when it is about the chain.
	SessionID string    `json:"session_id,omitempty"`
	Kind      EventKind `json:"kind"`
	Severity  Severity  `json:"severity"`
	// Message is one sentence for a person.
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

// EventKind says what an event is about.
type EventKind string

// The kinds.
const (
	EventChainStarted   EventKind = "chain_started"
	EventSessionStarted EventKind = "session_started"
	EventSessionEnded   EventKind = "session_ended"
	EventDecision       EventKind = "decision"
	EventChainEnded     EventKind = "chain_ended"
	EventNotNotified    EventKind = "notification_failed"
	EventWaitStarted    EventKind = "wait_started"
	EventWaitEnded      EventKind = "wait_ended"
	EventIssueStarted   EventKind = "issue_started"
	EventIssueEnded     EventKind = "issue_ended"
	EventSignal         EventKind = "signal"         // a person intervened
	EventHandoff        EventKind = "handoff"        // what became of a handoff document
	EventSessionReused  EventKind = "session_reused" // in place of session_started: an interrupted one goes on
	EventGateOpened     EventKind = "gate_opened"
	EventGateReminder   EventKind = "gate_reminder"
	EventGateClosed     EventKind = "gate_closed"
	EventGateRefused    EventKind = "gate_refused" // an answer that did not count
)
