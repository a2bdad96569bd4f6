package workflows

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
)

// IncidentSignalName is the signal with which a chain informs another chain about that chain's incident.
const IncidentSignalName = "incident"

// IncidentSignal is the payload of the incident signal.
type IncidentSignal struct {
	IncidentID string                  `json:"incident_id"`
	Status     escalation.IncidentNews `json:"status"`
	// Note describes the change.
	Note string `json:"note,omitempty"`
	// ChainID is the chain that has looked.
	ChainID string `json:"chain_id"`
}

// maxWorkflowID is Temporal's default limit for the ID of a workflow, in characters.
const maxWorkflowID = 1_000

// check returns the reason why the signal cannot be used. If it can be used, check returns nil.
func (s IncidentSignal) check(chain escalation.Chain) error {
	switch {
	case !slices.Contains(chain.OwnIncidents(), s.IncidentID):
		return errors.New("it is about an incident that is none of this chain's")
	case s.Status != escalation.IncidentWorse && s.Status != escalation.IncidentGone && s.Status != escalation.IncidentUnchanged:
		return errors.New("its status must be unchanged, worse or healed")
	case utf8.RuneCountInString(s.ChainID) > maxWorkflowID || len(s.Note) > maxSignalText:
		return errors.New("its chain_id or note is too long")
	}
	return nil
}

// arrived reports whether a signal has arrived that receive has not read yet.
func (n *incidents) arrived(ctx workflow.Context) bool {
	return n != nil && workflow.GetSignalChannel(ctx, IncidentSignalName).Len() > 0
}

// receive reads the signals that have arrived and adds them to news, one entry for each incident. If an incident became
// worse, people are notified once.
func (n *incidents) receive(ctx workflow.Context, news []escalation.GateNews) []escalation.GateNews {
	if n == nil {
		return news
	}
	receiveSignals(workflow.GetSignalChannel(ctx, IncidentSignalName),
		func(signal IncidentSignal) { news = n.accept(ctx, signal, news) },
		func() { n.refuse(ctx, errUnreadable) })
	return news
}

func (n *incidents) accept(ctx workflow.Context, signal IncidentSignal, news []escalation.GateNews) []escalation.GateNews {
	if err := signal.check(n.log.chain); err != nil {
		n.refuse(ctx, err)
		return news
	}
	one := escalation.GateNews{
		IncidentID: signal.IncidentID, Status: signal.Status, Note: clip(signal.Note), ChainID: signal.ChainID, At: workflow.Now(ctx),
	}
	at := slices.IndexFunc(news, func(other escalation.GateNews) bool { return other.IncidentID == one.IncidentID })
	first := at < 0 || news[at].Status != one.Status
	if at < 0 {
		news = append(news, one)
	} else {
		news[at] = one
	}
	if !first {
		return news
	}
	event := escalation.Event{Kind: escalation.EventIncident, Message: describeNews(one)}
	if one.Status == escalation.IncidentWorse {
		event.Severity = escalation.SeverityWarning
		n.people.notify(ctx, escalation.NotifyWorse, event.Message)
	}
	n.log.add(ctx, event)
	return news
}

func (n *incidents) refuse(ctx workflow.Context, why error) {
	n.log.add(ctx, escalation.Event{
		Kind: escalation.EventIncident, Severity: escalation.SeverityWarning,
		Message: fmt.Sprintf("signal %s is refused: %s", IncidentSignalName, why),
	})
}

// drop reads the signals that arrived while the chain ended. Other chains have sent them, so they need no answer.
func (n *incidents) drop(ctx workflow.Context) {
	for workflow.GetSignalChannel(ctx, IncidentSignalName).ReceiveAsync(nil) {
		workflow.GetLogger(ctx).Info("news of an incident came after the end of its chain")
	}
}

// describeNews describes a later result about an incident.
func describeNews(news escalation.GateNews) string {
	text := fmt.Sprintf("chain %s has found %s %s", news.ChainID, news.IncidentID, news.Status)
	if news.Note != "" {
		text += ": " + news.Note
	}
	return text
}

// healed reports whether other chains have found all open incidents of the chain healed, and the policy requires
// another look in that case.
func (n *incidents) healed(news []escalation.GateNews) bool {
	if n == nil || n.policy.Gate.OnHealed != escalation.HealedClose || len(news) == 0 {
		return false
	}
	for _, incident := range n.log.chain.Incidents {
		if incident.Handler == "" && !incident.Resolved && !slices.ContainsFunc(news, func(one escalation.GateNews) bool {
			return one.IncidentID == incident.ID && one.Status == escalation.IncidentGone
		}) {
			return false
		}
	}
	return true
}
