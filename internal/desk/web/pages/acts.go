package pages

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/workflows"
)

// escalateChain asks a chain for a higher tier.
func (p *Pages) escalateChain(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	tier, _ := strconv.Atoi(r.PostFormValue("tier")) // the operation says what is wrong with 0
	person, _ := access.PersonOf(r.Context())
	signal := workflows.EscalateSignal{
		ToTier: escalation.Tier(tier), Guidance: strings.TrimSpace(r.PostFormValue("guidance")),
		Force: r.PostFormValue("force") != "", Reason: strings.TrimSpace(r.PostFormValue("reason")),
		Actor: person.Name, Verified: true,
	}
	if err := p.chains.Escalate(r.Context(), id, signal); err != nil {
		return err
	}
	said := fmt.Sprintf("Tier %d is asked for. The events below say what became of it.", tier)
	return done(w, r, backTo(r, "/chains/"+id), flash{Text: said})
}

// cancelChain asks a chain to end.
func (p *Pages) cancelChain(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := p.chains.Cancel(r.Context(), id); err != nil {
		return err
	}
	return done(w, r, backTo(r, "/chains/"+id), flash{Text: "The chain is asked to end. Its agent stops first."})
}

// cancelChains asks the chains that were ticked to end.
func (p *Pages) cancelChains(w http.ResponseWriter, r *http.Request) error {
	return p.each(w, r, "chain", "asked to end", func(id string) error { return p.chains.Cancel(r.Context(), id) })
}

// closeIncident closes an incident.
func (p *Pages) closeIncident(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	closed, err := p.incidents.Close(r.Context(), id, closingOf(r))
	if err != nil {
		return err
	}
	said := flash{Text: closed.ID + " is closed."}
	for _, untold := range closed.Untold {
		said.Bad = true
		said.Text += fmt.Sprintf(" Chain %s could not be told: %s.", untold.ChainID, untold.Problem)
	}
	return done(w, r, backTo(r, "/incidents/"+id), said)
}

// acknowledgeIncident records that the person knows of an incident, for a time if the form names one.
func (p *Pages) acknowledgeIncident(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	person, _ := access.PersonOf(r.Context())
	hours, _ := strconv.Atoi(r.PostFormValue("hours")) // the page offers numbers only; none is no snooze
	act := operations.IncidentAcknowledging{
		Actor: person.Name, Verified: true, Note: strings.TrimSpace(r.PostFormValue("note")),
		Snooze: time.Duration(hours) * time.Hour, Withdrawn: r.PostFormValue("withdrawn") != "",
	}
	if _, err := p.incidents.Acknowledge(r.Context(), id, act); err != nil {
		return err
	}
	said := id + " is acknowledged. Nobody is reminded of it until it becomes worse or comes back."
	switch {
	case act.Withdrawn:
		said = id + " is no longer acknowledged."
	case hours > 0:
		said = fmt.Sprintf("%s is snoozed for %s. Then people are told, if it is still open.", id,
			plaintext.Count(hours, "hour"))
	}
	return done(w, r, backTo(r, "/incidents/"+id), flash{Text: said})
}

// closeIncidents closes the incidents that were ticked.
func (p *Pages) closeIncidents(w http.ResponseWriter, r *http.Request) error {
	return p.each(w, r, "incident", "closed", func(id string) error {
		_, err := p.incidents.Close(r.Context(), id, closingOf(r))
		return err
	})
}

// closingOf reads from a form why an incident is closed.
func closingOf(r *http.Request) operations.IncidentClosing {
	person, _ := access.PersonOf(r.Context())
	return operations.IncidentClosing{
		Actor: person.Name, Verified: true,
		Reason: strings.TrimSpace(r.PostFormValue("reason")),
	}
}

// pauseSchedule lets a schedule start nothing until it is resumed.
func (p *Pages) pauseSchedule(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := p.schedules.Pause(r.Context(), id, noteOf(r, "paused")); err != nil {
		return err
	}
	return done(w, r, backTo(r, "/schedules/"+id), flash{Text: "Schedule " + id + " is paused, and starts nothing."})
}

// resumeSchedule lets a paused schedule start cycles again.
func (p *Pages) resumeSchedule(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := p.schedules.Resume(r.Context(), id, noteOf(r, "resumed")); err != nil {
		return err
	}
	return done(w, r, backTo(r, "/schedules/"+id), flash{Text: "Schedule " + id + " is resumed."})
}

// triggerSchedule starts a cycle now.
func (p *Pages) triggerSchedule(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := p.schedules.Trigger(r.Context(), id, ""); err != nil {
		return err
	}
	return done(w, r, backTo(r, "/schedules/"+id), flash{Text: "Schedule " + id + " starts a cycle now."})
}

// noteOf returns the note of a form, with the name of the person.
func noteOf(r *http.Request, did string) string {
	person, _ := access.PersonOf(r.Context())
	note := did + " by " + person.Name
	if said := strings.TrimSpace(r.PostFormValue("note")); said != "" {
		note += ": " + said
	}
	return note
}
