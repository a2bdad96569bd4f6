package escalation

import "time"

// TalkFacts holds what a session in a conversation learns about the infrastructure before each message.
type TalkFacts struct {
	// Incidents holds the most important open incidents.
	Incidents []Incident
	// Working holds the running sessions of chains.
	Working []Session
	// Gates holds the chains that wait at a gate.
	Gates []WaitingGate
	// Recent holds the last session of each chain since yesterday, the latest first. Only a new conversation learns of
	// them.
	Recent []Session
	// Recalled holds the latest turns that have ended, oldest first. Only a new conversation learns of them.
	Recalled []TalkTurn
}

// WaitingGate is a gate at which a chain waits for a person.
type WaitingGate struct {
	ChainID string
	// Message is the message of the event with which the gate opened.
	Message string
	At      time.Time
}

const (
	// MaxTalkFacts limits each list of TalkFacts.
	MaxTalkFacts = 10
	// RecentChains is the time for which a new conversation learns of chains.
	RecentChains = 36 * time.Hour // all of yesterday, also in the evening
)
