package memory

import (
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Status says whether a memory is believed.
type Status string

// The statuses.
const (
	StatusCandidate Status = "candidate" // proposed, and in no prompt
	StatusConfirmed Status = "confirmed"
	StatusDeleted   Status = "deleted" // by a person; kept for a while, so that a new proposal does not bring it back
)

// Statuses returns all statuses.
func Statuses() []Status { return []Status{StatusCandidate, StatusConfirmed, StatusDeleted} }

// Kinds returns all kinds of memory.
func Kinds() []escalation.MemoryKind {
	return []escalation.MemoryKind{
		escalation.MemoryCorrection, escalation.MemoryDiscovery,
		escalation.MemoryRemediation,
	}
}

// Trust says how far a memory is believed.
type Trust string

// The trusts, most trusted first.
const (
	TrustPerson    Trust = "person"    // a person has written or confirmed it
	TrustIncidents Trust = "incidents" // two incidents have shown the same
	// TrustOutput: a model has proposed it, which may have read it in the output of commands, such as logs
	TrustOutput Trust = "output"
)

// trusts orders the trusts, most trusted first.
var trusts = []Trust{TrustPerson, TrustIncidents, TrustOutput}

// Least returns the lesser of two trusts. An unknown trust is the least of all.
func Least(a, b Trust) Trust {
	if rank(a) < rank(b) {
		return b
	}
	return a
}

// rank returns the position of trust in trusts; for an unknown trust, the length of trusts.
func rank(trust Trust) int {
	if at := slices.Index(trusts, trust); at >= 0 {
		return at
	}
	return len(trusts)
}

// Act names something that a source does with a memory.
type Act string

// The acts.
const (
	ActProposed  Act = "proposed" // a model, in a verdict or a reply
	ActAdded     Act = "added"    // a person, as all that follow
	ActConfirmed Act = "confirmed"
	ActEdited    Act = "edited"
	ActDeleted   Act = "deleted"
)

// Source is one act of a person or a session.
type Source struct {
	Act   Act       `json:"act"`
	Trust Trust     `json:"trust"`
	At    time.Time `json:"at"`
	// Person is the name of the person; empty for a session.
	Person string `json:"person,omitempty"`
	// ChainID and SessionID identify the session that proposed the memory; empty for a person.
	ChainID   string `json:"chain_id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	// Incidents lists the IDs of the incidents on which the chain had worked.
	Incidents []string `json:"incidents,omitempty"`
	// Text is the memory's text after the act.
	Text string `json:"text"`
}

// Use is one session whose prompt had the memory.
type Use struct {
	ChainID   string    `json:"chain_id"`
	SessionID string    `json:"session_id"`
	At        time.Time `json:"at"`
}

// Memory is something learned that stays.
type Memory struct {
	ID   string                `json:"id"`
	Kind escalation.MemoryKind `json:"kind"`
	// Service is empty if the memory concerns all services.
	Service string `json:"service,omitempty"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
	Status  Status `json:"status"`
	Trust   Trust  `json:"trust"`
	// DecidedBy is the person who confirmed or deleted the memory; empty if no person has.
	DecidedBy string `json:"decided_by,omitempty"`
	// DecidedAt is the time at which the memory was confirmed or deleted.
	DecidedAt time.Time `json:"decided_at,omitzero"`
	// Caution says why only a person may confirm the memory; empty if a second incident may, too.
	Caution string `json:"caution,omitempty"`
	// Revision counts what people did with the memory, from 1. Whoever decides on a memory can name the revision that
	// they have read.
	Revision   int       `json:"revision"`
	CreatedAt  time.Time `json:"created_at"`
	Uses       int       `json:"uses"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
	// Sources lists all acts, oldest first. UsedBy lists the latest uses, latest first. Lists of memories omit UsedBy.
	Sources []Source `json:"sources"`
	UsedBy  []Use    `json:"used_by,omitempty"`
}

// Proposal returns the memory's content.
func (m *Memory) Proposal() escalation.MemoryProposal {
	return escalation.MemoryProposal{Kind: m.Kind, Service: m.Service, Subject: m.Subject, Text: m.Text}
}

// Settle sets Trust, Status, DecidedBy, DecidedAt, Revision and Caution from the sources.
func (m *Memory) Settle() {
	m.Caution = Caution(m.Proposal())
	m.Status, m.Trust, m.DecidedBy, m.DecidedAt = StatusCandidate, TrustPerson, "", time.Time{}
	m.Revision = 1
	for _, source := range m.Sources {
		m.apply(source)
	}
	if m.Status != StatusCandidate || m.Caution != "" {
		return
	}
	if at, confirmed := confirmedByIncidents(m.Sources); confirmed {
		m.Status, m.Trust, m.DecidedAt = StatusConfirmed, TrustIncidents, at
	}
}

// apply lets one source count. While nobody has confirmed the memory, its trust is the least of its sources. A person
// who confirms the memory answers for it, whatever is proposed later.
func (m *Memory) apply(source Source) {
	if source.Act != ActProposed {
		m.Revision++
	}
	switch source.Act {
	case ActProposed:
		if m.Status == StatusCandidate {
			m.Trust = Least(m.Trust, source.Trust)
		}
	case ActAdded, ActConfirmed, ActEdited:
		m.Status, m.Trust, m.DecidedBy, m.DecidedAt = StatusConfirmed, TrustPerson, source.Person, source.At
	case ActDeleted:
		m.Status, m.DecidedBy, m.DecidedAt = StatusDeleted, source.Person, source.At
	}
}

// confirmedByIncidents reports whether two chains have proposed the memory that share no incident, and when the second
// one did. A proposal of a chain without an incident does not count: each scheduled look at one log line would be
// another chain.
func confirmedByIncidents(sources []Source) (at time.Time, confirmed bool) {
	for i, later := range sources {
		for _, earlier := range sources[:i] {
			if independent(earlier, later) {
				return later.At, true
			}
		}
	}
	return time.Time{}, false
}

func independent(a, b Source) bool {
	if a.Act != ActProposed || b.Act != ActProposed || a.ChainID == b.ChainID {
		return false
	}
	shared := slices.ContainsFunc(a.Incidents, func(id string) bool { return slices.Contains(b.Incidents, id) })
	return len(a.Incidents) > 0 && len(b.Incidents) > 0 && !shared
}

// Recall says for which prompt memories are selected.
type Recall struct {
	ChainID, FirstRunID, SessionID string
	// Services limits the memories to those of these services and of no service; empty for those of all services.
	Services []string
	// Text is what the prompt is about. Memories with its words come first.
	Text string
	// Matching limits the memories to those with a word of Text.
	Matching bool
	// ParentSessionID is the session whose conversation the prompt continues; empty for a new conversation. Memories
	// that this conversation has in their present form are left out.
	ParentSessionID string
	At              time.Time
}
