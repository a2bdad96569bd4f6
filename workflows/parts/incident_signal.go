package parts

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
)

// IncidentSignalName is the name of the signal with news about an incident. Its receiver is the chain that takes care
// of the incident. Its sender is another chain, or a person who closes the incident.
const IncidentSignalName = "incident"

// IncidentSignal is the payload of the incident signal.
type IncidentSignal struct {
	IncidentID string                  `json:"incident_id"`
	Status     escalation.IncidentNews `json:"status"`
	// Note describes the change of the incident. If a person has closed the incident, Note is the person's reason.
	Note string `json:"note,omitempty"`
	// ChainID is the chain that sends the signal; empty if a person has closed the incident.
	ChainID string `json:"chain_id,omitempty"`
	// Actor is the person who has closed the incident; empty if a chain sends the signal.
	Actor string `json:"actor,omitempty"`
}

// maxWorkflowID is Temporal's default limit for the ID of a workflow, in characters.
const maxWorkflowID = 1_000

// check returns the reason why the signal is invalid. If the signal is valid, check returns nil.
func (s IncidentSignal) check(chain escalation.Chain) error {
	switch {
	case !slices.Contains(chain.OwnIncidents(), s.IncidentID):
		return errors.New("it is about an incident that is none of this chain's")
	case s.Status != escalation.IncidentWorse && s.Status != escalation.IncidentGone &&
		s.Status != escalation.IncidentUnchanged:
		return errors.New("its status must be unchanged, worse or healed")
	case utf8.RuneCountInString(s.ChainID) > maxWorkflowID || len(s.Note) > maxSignalText:
		return errors.New("its chain_id or note is too long")
	case s.Actor != "":
		return escalation.CheckActor(s.Actor)
	}
	return nil
}

// Arrived reports whether a signal has arrived that Receive has not yet read.
func (n *Incidents) Arrived(ctx workflow.Context) bool {
	return n != nil && workflow.GetSignalChannel(ctx, IncidentSignalName).Len() > 0
}

// Receive reads the signals that have arrived. It returns the news of these signals and of earlier signals. When an
// incident becomes worse, Receive notifies people once.
func (n *Incidents) Receive(ctx workflow.Context) []escalation.GateNews {
	if n == nil {
		return nil
	}
	ReceiveSignals(workflow.GetSignalChannel(ctx, IncidentSignalName),
		func(signal IncidentSignal) { n.accept(ctx, signal) },
		func() { n.refuse(ctx, ErrUnreadable) })
	return slices.Clone(n.News) // what a closed gate shows stays as it is
}

// Outdate removes the news that arrived before the end of session, if that session has looked at the incidents. A
// recheck always counts as a look, even without a verdict. Otherwise a recheck without a verdict would keep the old
// news, and the news would lead to another recheck. For the same reason, a failed look removes the news of failed
// looks.
func (n *Incidents) Outdate(ctx workflow.Context, session escalation.Session) {
	looked := session.Verdict != nil || session.Purpose == escalation.PurposeRecheck
	if !looked && !session.LookFailed() {
		return
	}
	n.Receive(ctx)
	n.News = slices.DeleteFunc(n.News, func(one escalation.GateNews) bool {
		return looked ||
			n.isFailedLook(one.IncidentID)
	})
}

func (n *Incidents) accept(ctx workflow.Context, signal IncidentSignal) {
	if err := signal.check(n.log.Chain); err != nil {
		n.refuse(ctx, err)
		return
	}
	one := escalation.GateNews{
		IncidentID: signal.IncidentID, Status: signal.Status, Note: Clip(signal.Note), ChainID: signal.ChainID,
		Actor: signal.Actor, At: workflow.Now(ctx),
	}
	at := slices.IndexFunc(n.News, func(other escalation.GateNews) bool { return other.IncidentID == one.IncidentID })
	first := at < 0 || n.News[at].Status != one.Status
	if at < 0 {
		n.News = append(n.News, one)
	} else {
		n.News[at] = one
	}
	if !first {
		return
	}
	event := escalation.Event{Kind: escalation.EventIncident, Message: describeNews(one)}
	if one.Status == escalation.IncidentWorse {
		event.Severity = escalation.SeverityWarning
		n.people.Notify(ctx, escalation.NotifyWorse, event.Message)
	}
	n.log.Add(ctx, event)
}

func (n *Incidents) refuse(ctx workflow.Context, why error) {
	n.log.Add(ctx, escalation.Event{
		Kind: escalation.EventIncident, Severity: escalation.SeverityWarning,
		Message: fmt.Sprintf("signal %s is refused: %s", IncidentSignalName, why),
	})
}

// drop reads and logs the signals that arrived while the chain ended. Their senders are chains or the command that
// closes an incident, and expect no answer.
func (n *Incidents) drop(ctx workflow.Context) {
	for workflow.GetSignalChannel(ctx, IncidentSignalName).ReceiveAsync(nil) {
		workflow.GetLogger(ctx).Info("news of an incident came after the end of its chain")
	}
}

// describeNews describes another chain's finding about an incident.
func describeNews(news escalation.GateNews) string {
	text := fmt.Sprintf("chain %s has found %s %s", news.ChainID, news.IncidentID, news.Status)
	if news.Actor != "" {
		text = fmt.Sprintf("%s was closed by %s", news.IncidentID, news.Actor)
	}
	if news.Note != "" {
		text += ": " + news.Note
	}
	return text
}

// Healed reports whether this chain must look again, because other chains have reported that all its open incidents are
// healed. If the policy does not ask for such a look, Healed always returns false.
func (n *Incidents) Healed() bool {
	if n == nil || n.policy.Gate.OnHealed != escalation.HealedClose || len(n.News) == 0 {
		return false
	}
	for _, incident := range n.log.Chain.Incidents {
		if incident.Handler == "" && !incident.Resolved && !slices.ContainsFunc(n.News,
			func(one escalation.GateNews) bool {
				return one.IncidentID == incident.ID && one.Status == escalation.IncidentGone
			}) {
			return false
		}
	}
	return true
}
