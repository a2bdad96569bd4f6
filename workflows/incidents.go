package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// incidents connects a chain with the incidents in the records. It compares what a look has found with them, and tells other
// chains what has become of theirs.
type incidents struct {
	log    *eventLog
	policy *escalation.Policy
	people *notifier
	// recognition compares the last look's faults with the records; nil if it was not compared.
	recognition *escalation.Recognition
	// own are the chain's incidents, as the last recording returned them.
	own []escalation.Incident
	// untold are the news that send has not sent yet.
	untold []incidentNews
	// news are what other chains have found of the own incidents since the chain last looked itself, one entry for each incident.
	news []escalation.GateNews
}

// incidentNews is a signal for another chain.
type incidentNews struct {
	chainID string
	signal  IncidentSignal
}

// recognize compares what a look has found wrong with the incidents in the records. It returns nil if the session is no look
// or finds nothing wrong, and if a person forces the step. Without an answer of the records every fault counts as new.
func (n *incidents) recognize(ctx workflow.Context, s step, session escalation.Session) *escalation.Recognition {
	n.recognition = nil
	verdict := session.Verdict
	look := session.Tier == escalation.TierObserve && session.Purpose == escalation.PurposeTier
	if !look || s.forced() || session.Status != escalation.SessionCompleted || verdict == nil || !verdict.FindsFault() {
		return nil
	}
	input := activities.KnownIncidentsInput{Services: verdict.Services, At: workflow.Now(ctx)}
	for _, issue := range verdict.Issues {
		input.Services = escalation.MergeServices(input.Services, issue.Services)
	}
	for _, known := range verdict.Known {
		input.IDs = append(input.IDs, known.ID)
	}
	var records *activities.Records
	var known []escalation.Incident
	if err := readRecords(withRecords(ctx, "known incidents"), records.KnownIncidents, input, &known); err != nil {
		workflow.GetLogger(ctx).Warn("the known incidents cannot be read: all that is wrong counts as new", "error", err)
		return nil
	}
	by := escalation.Look{ChainID: n.log.chain.ID, Manual: n.log.chain.Trigger == escalation.TriggerManual}
	recognition := escalation.Recognize(*verdict, known, by, input.At)
	n.recognition = &recognition
	return n.recognition
}

// leave notes the incidents that the chain leaves to others, and what they must be told. It limits the chain to the
// services of the other faults, if there are any. If a person has requested a tier, the chain leaves none.
func (n *incidents) leave(ctx workflow.Context, session escalation.Session, decision escalation.Decision) {
	if decision.Rule == escalation.RuleOperator {
		n.recognition = nil
	}
	if n.recognition == nil {
		return
	}
	for _, sighting := range n.recognition.New { // its chain may have gone since an earlier look
		if sighting.Incident != nil {
			n.log.chain.Incidents = slices.DeleteFunc(n.log.chain.Incidents, func(known escalation.ChainIncident) bool {
				return known.ID == sighting.Incident.ID && known.Handler != ""
			})
		}
	}
	if len(n.recognition.Known) == 0 {
		return
	}
	for _, known := range n.recognition.Known {
		incident, handler := known.Incident, known.Handler
		n.add(chainIncident(*incident, handler.ChainID))
		n.log.add(ctx, escalation.Event{
			Kind: escalation.EventIncident, SessionID: session.SessionID,
			Message: fmt.Sprintf("%s is known (%s): chain %s %s", incident.Describe(), known.News, handler.ChainID, handler.Describe()),
		})
		// Once worse, an incident stays so: its chain was told before. What has come back may have been told as healed.
		if known.News == escalation.IncidentWorse && incident.WorseAt.IsZero() || !incident.ResolvedAt.IsZero() {
			n.tell(handler.ChainID, incident.ID, known.News, known.Note)
		}
	}
	if services := n.recognition.NewServices(); len(services) > 0 {
		n.log.chain.Services = services
	}
}

// progress returns what the chain does about its incidents after decision; nil if that does not change.
func (n *incidents) progress(ctx workflow.Context, decision escalation.Decision) *escalation.ChainProgress {
	progress := escalation.ProgressOf(*n.policy, decision, workflow.Now(ctx))
	progress.Owns = n.log.chain.OwnIncidents()
	for _, left := range n.left() {
		progress.Leaves = append(progress.Leaves, left.ID) // a later verdict may name it again
	}
	goesOn := decision.Action == escalation.DecisionEscalate || decision.Action == escalation.DecisionHandoff
	if goesOn && len(progress.Leaves) == 0 {
		return nil // opening the next session records it
	}
	return &progress
}

// update takes over what the records say after the end of a session: the chain's incidents, and those that the session has
// ended.
func (n *incidents) update(brief escalation.IncidentBrief) {
	if n == nil {
		return
	}
	n.own = brief.Incidents
	for _, incident := range brief.Incidents {
		n.add(chainIncident(incident, ""))
	}
	for i := range brief.Healed {
		for _, chain := range brief.Healed[i].Chains {
			if chain.Status == escalation.ChainWaiting || chain.Status == escalation.ChainRepairing {
				n.tell(chain.ChainID, brief.Healed[i].ID, escalation.IncidentGone, "")
			}
		}
	}
}

// chainIncident returns an incident as a chain shows it. handler is the chain to which it is left; "" for an own one.
func chainIncident(incident escalation.Incident, handler string) escalation.ChainIncident {
	return escalation.ChainIncident{
		ID: incident.ID, Services: incident.Services, Summary: clip(incident.Summary), Severity: incident.Severity,
		Handler: handler, Resolved: !incident.ResolvedAt.IsZero(),
	}
}

// add adds an incident to the visible state, or replaces the entry that is there.
func (n *incidents) add(incident escalation.ChainIncident) {
	chain := &n.log.chain
	same := func(other escalation.ChainIncident) bool { return other.ID == incident.ID }
	if at := slices.IndexFunc(chain.Incidents, same); at >= 0 {
		chain.Incidents[at] = incident
		return
	}
	if len(chain.Incidents) < maxChainIncidents {
		chain.Incidents = append(chain.Incidents, incident)
	}
}

// maxChainIncidents limits the incidents of a chain's visible state.
const maxChainIncidents = 50

// left returns the incidents that the chain leaves to others.
func (n *incidents) left() []escalation.ChainIncident {
	var left []escalation.ChainIncident
	for _, incident := range n.log.chain.Incidents {
		if incident.Handler != "" {
			left = append(left, incident)
		}
	}
	return left
}

// ofIssues returns the ID of the incident of each of the verdict's issues; "" for one that has none.
func (n *incidents) ofIssues(verdict escalation.Verdict) []string {
	ids := make([]string, len(verdict.Issues))
	for _, sighting := range verdict.Sightings(n.own, n.log.chain.OwnIncidents()) {
		if sighting.Issue >= 0 && sighting.Incident != nil {
			ids[sighting.Issue] = sighting.Incident.ID
		}
	}
	return ids
}

// history describes the earlier repairs of the fault that has come back; none if none has.
func (n *incidents) history(decision escalation.Decision) []string {
	if decision.Rule != escalation.RuleReturned || n == nil {
		return nil
	}
	if returned := n.recognition.Returned(n.policy.Returns, -1); returned != nil {
		return returned.History(maxTried)
	}
	return nil
}

// tell adds a signal for another chain. send sends it.
func (n *incidents) tell(chainID, incidentID string, news escalation.IncidentNews, note string) {
	if chainID != n.log.chain.ID {
		n.untold = append(n.untold, incidentNews{chainID, IncidentSignal{
			IncidentID: incidentID, Status: news, Note: clip(note), ChainID: n.log.chain.ID,
		}})
	}
}

// send signals the other chains, one after the other. A chain that has gone needs no signal. Nor does the chain that has split
// and started this one: it waits for the end of this chain.
func (n *incidents) send(ctx workflow.Context) {
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
		err := workflow.SignalExternalWorkflow(disconnected, news.chainID, "", IncidentSignalName, news.signal).Get(disconnected, nil)
		if err != nil {
			workflow.GetLogger(ctx).Info("the chain of an incident cannot be told", "chain", news.chainID,
				"incident", news.signal.IncidentID, "error", err)
		}
	}
}
