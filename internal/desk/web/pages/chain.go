package pages

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// chainPage is the data of the page of a chain.
type chainPage struct {
	operations.Snapshot

	Sessions []sessionRow
	// Took is the time of all sessions together.
	Took  string
	Gate  *gateForm
	Lines timeline
	// Higher lists the tiers that a person can ask for.
	Higher []escalation.Tier
	// Temporal is the address of the chain in Temporal's Web UI; empty if there is none.
	Temporal string
	// Doing says what the running session does.
	Doing string
}

// Running reports whether the chain runs.
func (c chainPage) Running() bool { return c.Live && c.Chain.Outcome == "" }

// sessionRow is a session in the tree.
type sessionRow struct {
	escalation.Session

	// Depth is the number of the session's ancestors in the chain, at most 4.
	Depth int
	Cost  string
	Took  string
	// Links name the sessions from and to which the work was passed.
	Links           []link
	Denied, Allowed int
}

// link names another session, and says how it belongs to this one.
type link struct {
	Verb   string
	Number int64
}

// Unboxed reports whether the session ran without the kernel's sandbox, although it should have had one.
func (r sessionRow) Unboxed() bool { return strings.Contains(r.Sandbox, "none: ") }

// linksOf returns the links of a session of the chain.
func linksOf(chain escalation.Chain, session *escalation.Session) []link {
	var links []link
	for i := range chain.Sessions {
		other := &chain.Sessions[i]
		switch {
		case other.ID == session.ParentID && other.Tier < session.Tier:
			links = append(links, link{"escalated from", other.ID})
		case other.ID == session.ParentID:
			links = append(links, link{"continues", other.ID})
		case other.ParentID == session.ID && other.Tier > session.Tier:
			links = append(links, link{"escalated to", other.ID})
		case other.ParentID == session.ID:
			links = append(links, link{"continued by", other.ID})
		}
	}
	return links
}

// showChain shows a chain.
func (p *Pages) showChain(w http.ResponseWriter, r *http.Request) error {
	return p.writeChain(w, r, r.PathValue("id"), nil)
}

// writeChain shows a chain. The argument draft holds an answer that was refused, so that nobody has to type it again;
// nil if there is none.
func (p *Pages) writeChain(w http.ResponseWriter, r *http.Request, id string, draft *draft) error {
	now, err := p.chains.Get(r.Context(), id)
	if err != nil {
		return err
	}
	page := chainPage{Snapshot: now, Lines: timelineOf(now, p.Clock()), Doing: doing(now)}
	page.Sessions, page.Took = p.rows(now)
	if gate := now.Chain.OpenGate(); gate != nil && page.Running() {
		form := gateForm{
			ChainID: id, Gate: *gate, Services: now.Chain.Services, Draft: draft,
			Back: r.URL.Path,
		}.of(now.Chain)
		page.Gate = &form
		if r.Method == http.MethodPost {
			page.Gate.Back = "/chains/" + r.PathValue("id")
		}
	}
	for _, tier := range escalation.Tiers() {
		if tier > now.Chain.Tier() && tier <= now.Chain.MaxTier && now.Chain.Plan == nil {
			page.Higher = append(page.Higher, tier)
		}
	}
	if p.TemporalUI != nil {
		page.Temporal = p.TemporalUI(id, "")
	}
	v := view{
		template: "chain", title: "Chain " + id, section: "/chains", chain: id, data: page,
		parts: []string{"state", "gate", "course"},
	}
	if draft != nil {
		v.status = http.StatusConflict
	}
	return p.show(w, r, v)
}

// rows returns the sessions as a tree, and the time of all together.
func (p *Pages) rows(now operations.Snapshot) (rows []sessionRow, took string) {
	depths := map[int64]int{}
	var total time.Duration
	for i := range now.Chain.Sessions {
		session := &now.Chain.Sessions[i]
		row := sessionRow{Session: *session, Links: linksOf(now.Chain, session), Cost: operations.SessionCost(session)}
		if session.ParentID != 0 {
			row.Depth = min(depths[session.ParentID]+1, 4)
		}
		depths[session.ID] = row.Depth
		lasted := time.Duration(session.DurationMS) * time.Millisecond
		if session.Status == escalation.SessionRunning && now.Live {
			row.Cost, lasted = now.SpentText(), max(p.Clock().Sub(session.StartedAt), 0)
		}
		row.Took, total = plaintext.Duration(lasted), total+lasted
		for _, call := range now.Calls {
			switch {
			case call.SessionID != session.SessionID:
			case call.Allowed:
				row.Allowed++
			default:
				row.Denied++
			}
		}
		rows = append(rows, row)
	}
	took = plaintext.Duration(total)
	if now.Chain.Earlier.Sessions > 0 {
		took = "more than " + took
	}
	return rows, took
}

// doing says what the running session does, or why it waits; empty if no session runs.
func doing(now operations.Snapshot) string {
	if now.Progress == nil {
		return now.Attempt.Waits()
	}
	if waits := now.Attempt.Waits(); waits != "" {
		return waits
	}
	if now.Progress.Now.Waiting != "" {
		return "waits: " + now.Progress.Now.Waiting
	}
	tools := now.Progress.Now.Tools
	if len(tools) == 0 {
		return "thinks"
	}
	last := tools[len(tools)-1]
	return last.Name + "  " + last.Input
}

// Events returns the events of the chain, latest first.
func (c chainPage) Events() []escalation.Event {
	events := slices.Clone(c.Chain.Events)
	slices.Reverse(events)
	return events
}

// ClosedGates returns the gates that are closed, oldest first.
func (c chainPage) ClosedGates() []escalation.Gate {
	return slices.DeleteFunc(slices.Clone(c.Chain.Gates), func(gate escalation.Gate) bool { return gate.Answer == nil })
}

// LastGate returns the gate that was closed last; nil if there is none.
func (c chainPage) LastGate() *escalation.Gate {
	closed := c.ClosedGates()
	if len(closed) == 0 {
		return nil
	}
	return &closed[len(closed)-1]
}

// Title names the chain by its plan or its services.
func (c chainPage) Title() string {
	if c.Chain.Plan != nil {
		return operations.PlanTitle(c.Chain.Plan)
	}
	if len(c.Chain.Services) == 0 {
		return "All services"
	}
	return strings.Join(c.Chain.Services, ", ")
}
