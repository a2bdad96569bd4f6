package operations

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// Feed reports what changes, for front ends that show it at once.
type Feed struct{ *backend }

// ChangeKind says what has changed.
type ChangeKind string

// The kinds.
const (
	ChangeChain    ChangeKind = "chain"    // a chain has begun, ended, waited or decided: EventNews or ChainNews
	ChangeSession  ChangeKind = "session"  // a session was opened or closed: SessionNews
	ChangeGate     ChangeKind = "gate"     // a gate was opened or closed, or an answer refused: EventNews
	ChangeIncident ChangeKind = "incident" // an incident was opened, has changed or was resolved: IncidentNews
	ChangeCall     ChangeKind = "call"     // the guard has decided on a call: CallNews
	ChangeProgress ChangeKind = "progress" // what a running session does now: ProgressNews
	ChangeReset    ChangeKind = "reset"    // changes may be missing: look at everything again
)

// Change is a notice of something new. It is small: a front end that shows more reads more.
type Change struct {
	Kind ChangeKind
	// ChainID is empty if the change concerns no single chain.
	ChainID string
	At      time.Time
	// Data is a struct of this package whose name ends with News; nil for ChangeReset.
	Data any
}

// EventNews is a new event of a chain.
type EventNews struct {
	Event     escalation.EventKind `json:"event"`
	Severity  escalation.Severity  `json:"severity"`
	SessionID string               `json:"session_id,omitempty"`
	// Message describes the event in one line. It can contain words of agents.
	Message string `json:"message"`
}

// ChainNews is the state of a chain by Temporal's list. It replaces EventNews where the records are not on this host.
type ChainNews struct {
	Status  string `json:"status"`
	Outcome string `json:"outcome,omitempty"`
	Gate    string `json:"gate,omitempty"`
}

// SessionNews is the state of a session that was opened or closed.
type SessionNews struct {
	Number    int64           `json:"number"`
	SessionID string          `json:"session_id"`
	Tier      escalation.Tier `json:"tier"`
	Model     string          `json:"model"`
	// Purpose and Phase are those of the session; empty for the usual work of its tier.
	Purpose escalation.Purpose       `json:"purpose,omitempty"`
	Phase   string                   `json:"phase,omitempty"`
	Status  escalation.SessionStatus `json:"status"`
	CostUSD float64                  `json:"cost_usd"`
}

// CallNews is a decision on a call of an agent.
type CallNews struct {
	SessionID string          `json:"session_id"`
	Call      string          `json:"call"`
	Tier      escalation.Tier `json:"tier"`
	Tool      string          `json:"tool"`
	// Subject is the most informative part of the input, in one line. An agent wrote it.
	Subject string `json:"subject"`
	Allowed bool   `json:"allowed"`
	Rule    string `json:"rule,omitempty"`
}

// IncidentNews names an incident that has changed.
type IncidentNews struct {
	IncidentID string `json:"incident_id"`
	Open       bool   `json:"open"`
}

// maxNews limits the rows of each kind that one look reads. If more are new, the next look reads on.
const maxNews = 1_000

// maxSubject limits a text of an agent in a change, in characters.
const maxSubject = 300

// Interest says for which chains somebody wants to see ChangeProgress.
type Interest struct {
	// All selects the chains at work, at most maxProgress.
	All    bool
	Chains []string
}

// Watch reads what changes, one look after the other. It is not safe for concurrent use.
type Watch struct {
	backend *backend
	// begun reports whether the fields below are filled, from the records or, if listed is true, from Temporal's list.
	begun, listed bool
	position      store.Position
	running       map[string]escalation.Session // by session ID
	incidents     map[string]string             // mark of each open incident
	rows          map[string]Row                // running chains by ID
	nextList      time.Time
	progress      progressWatch
}

// Watch returns a watch that begins with its first look.
func (f Feed) Watch() *Watch { return &Watch{backend: f.backend} }

// Next returns what has changed since the previous look; nothing for the first look. Where the records are not on this
// host, it compares Temporal's lists of running chains. After an error the next look continues at the same place.
func (w *Watch) Next(ctx context.Context, interest Interest) ([]Change, error) {
	records, _, err := w.backend.openRecords(ctx)
	elsewhere := err != nil
	var changes []Change
	if w.begun && w.listed != elsewhere {
		w.begun, changes = false, []Change{{Kind: ChangeReset, At: w.backend.Clock()}}
	}
	var found []Change
	if elsewhere {
		found, err = w.lookAtList(ctx)
	} else {
		found, err = w.lookAtRecords(ctx, records)
	}
	if err != nil {
		return changes, err
	}
	w.begun, w.listed = true, elsewhere
	return slices.Concat(changes, found, w.progress.look(ctx, w.backend, w.chains(interest))), nil
}

// lookAtRecords returns what the records have that is new.
func (w *Watch) lookAtRecords(ctx context.Context, records *store.Store) (changes []Change, err error) {
	first := !w.begun
	if first {
		if w.position, err = records.LatestPosition(ctx); err != nil {
			return nil, err
		}
	}
	news, err := records.News(ctx, w.position, maxNews)
	if err != nil {
		return nil, err
	}
	closed, err := w.closed(ctx, records, news)
	if err != nil {
		return nil, err
	}
	if !first {
		changes = slices.Concat(w.sessionChanges(news.Opened, closed), w.eventChanges(news),
			w.incidentChanges(news.Incidents))
	}
	w.position = news.Next
	w.running, w.incidents = map[string]escalation.Session{}, map[string]string{}
	for i := range news.Running {
		w.running[news.Running[i].SessionID] = news.Running[i]
	}
	for _, incident := range news.Incidents {
		w.incidents[incident.ID] = incident.Mark
	}
	return changes, nil
}

// closed returns the sessions that ran at the previous look and do not run any more.
func (w *Watch) closed(ctx context.Context, records *store.Store, news store.News) ([]escalation.Session, error) {
	var closed []escalation.Session
	for id, session := range w.running {
		runs := func(now escalation.Session) bool { return now.SessionID == id }
		if slices.ContainsFunc(news.Running, runs) {
			continue
		}
		found, err := records.BySessionID(ctx, id)
		if isGone(err) {
			found, err = session, nil // its chain was removed from the records
		}
		if err != nil {
			return nil, err
		}
		closed = append(closed, found)
	}
	slices.SortFunc(closed, func(a, b escalation.Session) int { return a.EndedAt.Compare(b.EndedAt) })
	return closed, nil
}

func (w *Watch) sessionChanges(opened, closed []escalation.Session) []Change {
	var changes []Change
	for _, session := range slices.Concat(opened, closed) {
		at := session.EndedAt
		if at.IsZero() {
			at = session.StartedAt
		}
		changes = append(changes, Change{ChangeSession, session.ChainID, at, SessionNews{
			session.ID, session.SessionID, session.Tier, session.Model, session.Purpose, session.Phase, session.Status,
			session.CostUSD,
		}})
	}
	return changes
}

func (w *Watch) eventChanges(news store.News) []Change {
	var changes []Change
	for _, event := range news.Events {
		changes = append(changes, Change{changeOf(event.Kind), event.ChainID, event.At, EventNews{
			event.Kind, event.Severity, event.SessionID, line(w.backend.mask.Text(event.Message), maxSubject),
		}})
	}
	for _, call := range news.Calls {
		changes = append(changes, Change{ChangeCall, call.ChainID, call.At, CallNews{
			SessionID: call.SessionID, Call: line(call.Call, maxSubject), Tier: call.Tier,
			Tool:    line(call.Tool, maxSubject),
			Subject: line(w.backend.mask.Text(escalation.CallSubject(call.Input)), maxSubject),
			Allowed: call.Allowed, Rule: line(w.backend.mask.Text(call.Rule), maxSubject),
		}})
	}
	return changes
}

// changeOf returns the kind of change for an event.
func changeOf(kind escalation.EventKind) ChangeKind {
	gate := []escalation.EventKind{
		escalation.EventGateOpened, escalation.EventGateReminder, escalation.EventGateClosed,
		escalation.EventGateRefused,
	}
	if slices.Contains(gate, kind) {
		return ChangeGate
	}
	return ChangeChain
}

func (w *Watch) incidentChanges(open []store.IncidentMark) []Change {
	var changes []Change
	now := w.backend.Clock()
	current := map[string]bool{}
	for _, incident := range open {
		current[incident.ID] = true
		if w.incidents[incident.ID] != incident.Mark {
			changes = append(changes, Change{Kind: ChangeIncident, At: now, Data: IncidentNews{incident.ID, true}})
		}
	}
	for id := range w.incidents {
		if !current[id] {
			changes = append(changes, Change{Kind: ChangeIncident, At: now, Data: IncidentNews{IncidentID: id}})
		}
	}
	return changes
}

// chains returns the chains whose progress is of interest, and their running sessions. The ID of a session is empty if
// it is unknown.
func (w *Watch) chains(interest Interest) map[string]string {
	atWork := map[string]string{}
	for _, session := range w.running {
		atWork[session.ChainID] = session.SessionID
	}
	for id := range w.rows {
		atWork[id] = ""
	}
	chosen := map[string]string{}
	for _, id := range interest.Chains {
		if session, works := atWork[id]; works {
			chosen[id] = session
		}
	}
	if interest.All {
		for _, id := range slices.Sorted(maps.Keys(atWork)) {
			if len(chosen) < maxProgress {
				chosen[id] = atWork[id]
			}
		}
	}
	return chosen
}
