package parts

import (
	"cmp"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// Incidents connects a chain with the incidents in the records. It compares the faults that a session has found with
// these incidents, and informs other chains about news of their own incidents.
type Incidents struct {
	log    *EventLog
	policy *escalation.Policy
	people *Notifier
	// recognition is the comparison of the last session's faults with the records; nil if there was no comparison.
	Recognition *escalation.Recognition
	// own holds the chain's incidents as of the latest recording.
	own []escalation.Incident
	// untold holds the signals that the method Send must still send.
	untold []incidentNews
	// news holds other chains' findings about this chain's incidents since its last look, one entry for each incident.
	News []escalation.GateNews
}

// incidentNews is a signal for another chain.
type incidentNews struct {
	chainID string
	signal  IncidentSignal
}

// Recognize compares the faults that a session has found with the incidents in the records. It does so only for a look:
// an ordinary session of Tier 1, or a recheck. The only fault of a failed look is its failure. A recheck counts as a
// look, because another chain may have begun to repair the fault during the wait.
//
// Recognize returns nil in three cases: the session is no look, it finds no fault, or its faults are this chain's own
// (mine). If the records cannot be read, it also returns nil, and every fault counts as new.
func (n *Incidents) Recognize(ctx workflow.Context, session escalation.Session, mine bool) *escalation.Recognition {
	n.Recognition = nil
	look := session.Tier == escalation.TierObserve &&
		(session.Purpose == escalation.PurposeTier || session.Purpose == escalation.PurposeRecheck)
	finds := session.Status == escalation.SessionCompleted && session.Verdict != nil && session.Verdict.FindsFault()
	if !look || mine || !finds && !session.LookFailed() {
		return nil
	}
	input := n.candidates(session)
	input.At = workflow.Now(ctx)
	var records *activities.Records
	var known []escalation.Incident
	if err := ReadRecords(WithRecords(ctx, "known incidents"), records.KnownIncidents, input, &known); err != nil {
		workflow.GetLogger(ctx).Warn("the known incidents cannot be read: all that is wrong counts as new", "error",
			err)
		return nil
	}
	by := escalation.Look{
		ChainRun: escalation.ChainRun{ChainID: n.log.Chain.ID, FirstRunID: n.log.FirstRun(ctx)},
		Manual:   n.log.Chain.Trigger == escalation.TriggerManual, MaxTier: n.policy.MaxTier,
		Own: n.log.Chain.OwnIncidents(),
	}
	if parent := workflow.GetInfo(ctx).ParentWorkflowExecution; parent != nil {
		by.ParentID = parent.ID
	}
	recognition := escalation.Recognize(session, known, by, input.At)
	n.Recognition = &recognition
	return n.Recognition
}

// candidates selects the incidents to which a fault of the session can belong.
func (n *Incidents) candidates(session escalation.Session) escalation.KnownIncidents {
	if session.LookFailed() {
		return escalation.KnownIncidents{Kind: escalation.KindLookFailed, IDs: n.log.Chain.OwnIncidents()}
	}
	verdict := session.Verdict
	input := escalation.KnownIncidents{Services: verdict.Services}
	for _, issue := range verdict.Issues {
		input.Services = escalation.MergeServices(input.Services, issue.Services)
	}
	for _, known := range verdict.Known {
		input.IDs = append(input.IDs, known.ID)
	}
	return input
}

// Leave records the incidents that this chain leaves to other chains, and prepares the signals to these chains. If
// faults remain for this chain, Leave limits it to the services of these faults. If a person has requested a tier, this
// chain leaves no incident to others.
func (n *Incidents) Leave(ctx workflow.Context, session escalation.Session, decision escalation.Decision) {
	if decision.Rule == escalation.RuleOperator {
		n.Recognition = nil
	}
	if n.Recognition == nil {
		return
	}
	// an earlier look may have left the fault to a chain that has ended since
	for _, sighting := range n.Recognition.New {
		if sighting.Incident != nil {
			n.log.Chain.Incidents = slices.DeleteFunc(n.log.Chain.Incidents, func(known escalation.ChainIncident) bool {
				return known.ID == sighting.Incident.ID && known.Handler != ""
			})
		}
	}
	if len(n.Recognition.Known) == 0 {
		return
	}
	told := map[string]bool{} // several faults can belong to one incident
	for _, known := range n.Recognition.Known {
		incident, handler := known.Incident, known.Handler
		if told[incident.ID] {
			continue
		}
		told[incident.ID] = true
		n.add(chainIncident(*incident, handler.ChainID))
		n.log.Add(ctx, escalation.Event{
			Kind: escalation.EventIncident, SessionID: session.SessionID,
			Message: fmt.Sprintf("a known fault (%s): %s", cmp.Or(known.News, escalation.IncidentGone),
				known.Describe()),
		})
		// If the incident was already worse, its chain has got the signal. If the incident was resolved and has come
		// back, its chain may have got a signal that it had healed, and needs a new one.
		if known.Worsens(handler.Since) || !incident.ResolvedAt.IsZero() && !known.Overtaken {
			n.tell(handler, incident.ID, known.News, known.Note)
		}
	}
	if services := n.Recognition.NewServices(); len(services) > 0 {
		n.log.Chain.Services = services
	}
}

// Progress returns the chain's progress with its incidents after decision. It returns nil if another session follows
// and the chain leaves no incident to others. The opening of that session then records the progress.
func (n *Incidents) Progress(ctx workflow.Context, decision escalation.Decision) *escalation.ChainProgress {
	progress := escalation.ProgressOf(*n.policy, decision, workflow.Now(ctx))
	progress.Owns = n.log.Chain.OwnIncidents()
	for _, left := range n.Left() {
		progress.Leaves = append(progress.Leaves, left.ID) // a later verdict may name it again
	}
	goesOn := decision.Action == escalation.DecisionEscalate || decision.Action == escalation.DecisionHandoff
	if goesOn && len(progress.Leaves) == 0 {
		return nil // opening the next session records it
	}
	return &progress
}

// update stores the incidents that the records returned when a session was opened or closed. For each incident that
// the session has healed, update prepares a signal to the chains that work on it.
func (n *Incidents) update(brief escalation.IncidentBrief) {
	if n == nil {
		return
	}
	n.own = brief.Incidents
	for i, incident := range brief.Incidents {
		n.add(chainIncident(incident, ""))
		n.own[i].Chains = nil // nobody needs them while this chain waits, which can take days
	}
	for i := range brief.Healed {
		for _, chain := range brief.Healed[i].Chains {
			if chain.AtWork() {
				n.tell(chain, brief.Healed[i].ID, escalation.IncidentGone, "")
			}
		}
	}
}

// chainIncident converts an incident for the visible state of a chain. The argument handler is the ID of the chain
// that takes care of the incident; "" if the chain itself does.
func chainIncident(incident escalation.Incident, handler string) escalation.ChainIncident {
	return escalation.ChainIncident{
		ID: incident.ID, Services: incident.Services, Kind: incident.Kind, Summary: Clip(incident.Summary),
		Severity: incident.Severity, Since: incident.OpenedAt, Handler: handler,
		Resolved: !incident.ResolvedAt.IsZero(),
	}
}

// add adds incident to the visible state. If an entry with the same ID exists, add replaces it. A full list drops its
// oldest incident that is resolved. It never drops an open one, because the chain decides by these: it must look at
// them again, tell others about them, and record who takes care of them.
func (n *Incidents) add(incident escalation.ChainIncident) {
	chain := &n.log.Chain
	same := func(other escalation.ChainIncident) bool { return other.ID == incident.ID }
	if at := slices.IndexFunc(chain.Incidents, same); at >= 0 {
		chain.Incidents[at] = incident
		return
	}
	if len(chain.Incidents) >= maxChainIncidents {
		resolved := slices.IndexFunc(chain.Incidents,
			func(other escalation.ChainIncident) bool { return other.Resolved })
		if resolved < 0 && incident.Resolved {
			return
		}
		if resolved >= 0 {
			chain.Incidents = slices.Delete(chain.Incidents, resolved, resolved+1)
		}
	}
	chain.Incidents = append(chain.Incidents, incident)
}

// maxChainIncidents limits the number of incidents in a chain's visible state, if resolved ones are among them.
const maxChainIncidents = 50

// Left returns the incidents that the chain leaves to others.
func (n *Incidents) Left() []escalation.ChainIncident {
	var left []escalation.ChainIncident
	for _, incident := range n.log.Chain.Incidents {
		if incident.Handler != "" {
			left = append(left, incident)
		}
	}
	return left
}

// OnlyFailedLooks reports whether the chain works on incidents, and each of them is a failed look.
func (n *Incidents) OnlyFailedLooks() bool {
	own := n.log.Chain.OwnIncidents()
	return len(own) > 0 && !slices.ContainsFunc(own, func(id string) bool { return !n.isFailedLook(id) })
}

// isFailedLook reports whether the incident with this ID is a failed look that the chain has met.
func (n *Incidents) isFailedLook(id string) bool {
	return slices.ContainsFunc(n.log.Chain.Incidents, func(known escalation.ChainIncident) bool {
		return known.ID == id && known.Kind == escalation.KindLookFailed
	})
}

// OfIssues returns, for each of the verdict's issues, the ID of the chain's own incident. The ID is "" if the chain
// has no incident for the issue. That is always so for a known issue, because another chain owns its incident.
func (n *Incidents) OfIssues(observer escalation.Session) []string {
	verdict := observer.Verdict
	ids := make([]string, len(verdict.Issues))
	fresh := *verdict
	fresh.Issues, observer.Verdict = nil, &fresh
	var indexes []int // of the fresh issues in verdict.Issues
	for i, issue := range verdict.Issues {
		if n.Recognition.KnownIssue(i) == nil {
			fresh.Issues, indexes = append(fresh.Issues, issue), append(indexes, i)
		}
	}
	for _, sighting := range observer.Sightings(n.own, n.log.Chain.OwnIncidents()) {
		if sighting.Issue >= 0 && sighting.Incident != nil {
			ids[indexes[sighting.Issue]] = sighting.Incident.ID
		}
	}
	return ids
}

// history describes the earlier repairs of a fault that has come back. If the decision has another reason, history
// returns none.
func (n *Incidents) history(decision escalation.Decision) []string {
	if decision.Rule != escalation.RuleReturned || n == nil {
		return nil
	}
	if returned := n.Recognition.Returned(n.policy.Returns, -1); returned != nil {
		return returned.History(MaxTried)
	}
	return nil
}

// tell adds a signal for another chain to the list untold. The method Send sends the signals in this list.
func (n *Incidents) tell(chain escalation.IncidentChain, incidentID string, news escalation.IncidentNews, note string) {
	if chain.ChainID != n.log.Chain.ID {
		n.untold = append(n.untold, incidentNews{chain.ChainID, IncidentSignal{
			IncidentID: incidentID, Status: news, Note: Clip(note), ChainID: n.log.Chain.ID,
		}})
	}
}

// Send signals the other chains, one after the other. No signal reaches a chain that has ended. Send then notifies
// people instead, if the incident is worse. The parent of this chain gets no signal, because it waits for the end of
// this chain.
func (n *Incidents) Send(ctx workflow.Context) {
	if n == nil {
		return
	}
	untold := n.untold
	n.untold = nil
	if len(untold) == 0 {
		return
	}
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	parent := workflow.GetInfo(ctx).ParentWorkflowExecution
	for _, news := range untold {
		if parent != nil && parent.ID == news.chainID {
			continue
		}
		err := workflow.SignalExternalWorkflow(disconnected, news.chainID, "", IncidentSignalName,
			news.signal).Get(disconnected, nil)
		if err != nil {
			workflow.GetLogger(ctx).Info("the chain of an incident cannot be told", "chain", news.chainID,
				"incident", news.signal.IncidentID, "error", err)
			n.tellPeople(ctx, news)
		}
	}
}

// tellPeople notifies people of an incident that is worse, in place of a chain that cannot be told.
func (n *Incidents) tellPeople(ctx workflow.Context, news incidentNews) {
	if news.signal.Status != escalation.IncidentWorse {
		return
	}
	n.people.Notify(ctx, escalation.NotifyWorse, fmt.Sprintf("%s; chain %s cannot be told",
		describeNews(escalation.GateNews{
			IncidentID: news.signal.IncidentID, Status: news.signal.Status, Note: news.signal.Note,
			ChainID: news.signal.ChainID,
		}), news.chainID))
}
