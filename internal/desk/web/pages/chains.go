package pages

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

// chainsPerPage is the number of chains on one page of the list.
const chainsPerPage = 50

// chainList is the data of the page with the list of chains.
type chainList struct {
	Query    chainQuery
	Chains   []operations.Row
	Outcomes []escalation.Outcome
	Triggers []escalation.Trigger
	Tiers    []escalation.Tier
	// Next is the URL of the next page; empty if this is the last one.
	Next string
	// Problem says why there is no list; empty if there is one.
	Problem string
}

// chainQuery holds the fields of the filter as they were typed.
type chainQuery struct {
	State, Outcome, Service, Trigger, Incident, Tier, Since, Until, Cost string
}

// Filtered reports whether the filter selects only some chains.
func (l chainList) Filtered() bool { return l.Query != chainQuery{} }

// Only reports whether the filter selects a state or an outcome, and nothing else.
func (l chainList) Only(name string) bool {
	return l.Query == chainQuery{State: name} || l.Query == chainQuery{Outcome: name}
}

// showChains lists chains. The URL holds the filter.
func (p *Pages) showChains(w http.ResponseWriter, r *http.Request) error {
	form := r.URL.Query()
	get := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	list := chainList{
		Query: chainQuery{
			get("state"), get("outcome"), get("service"), get("trigger"), get("incident"), get("tier"),
			get("since"), get("until"), get("cost"),
		},
		Outcomes: escalation.Outcomes(), Tiers: escalation.Tiers(),
		Triggers: []escalation.Trigger{
			escalation.TriggerManual, escalation.TriggerScheduled, escalation.TriggerAlert, escalation.TriggerIssue,
			escalation.TriggerPlan,
		},
	}
	filter, err := list.Query.filter(p.Clock().Location())
	filter.After = form.Get("after")
	var page operations.ChainPage
	if err == nil {
		page, err = p.chains.List(r.Context(), filter)
	}
	v := view{template: "chains", title: "Chains", section: "/chains", parts: []string{"list"}}
	if err != nil { // the person can mend the filter on the page
		if operations.KindOf(err) != operations.KindInvalid {
			return err
		}
		list.Problem, v.status = err.Error(), http.StatusUnprocessableEntity
	}
	list.Chains = page.Chains
	if page.Next != "" {
		form.Set("after", page.Next)
		list.Next = "/chains?" + form.Encode()
	}
	v.data = list
	return p.show(w, r, v)
}

// filter converts the fields.
func (q chainQuery) filter(zone *time.Location) (operations.ChainFilter, error) {
	f := operations.ChainFilter{
		Limit: chainsPerPage, Outcome: q.Outcome, Service: q.Service, Trigger: q.Trigger,
		Incident: incidentOf(q.Incident), Running: q.State == "running", Gate: q.State == "gate",
		Waits: q.State == "waits", Retries: q.State == "retries",
	}
	var err error
	if q.Tier != "" {
		tier, problem := strconv.Atoi(q.Tier)
		f.Tier = escalation.Tier(tier)
		if problem != nil || !f.Tier.Valid() {
			return f, operations.Invalid(&operations.FieldError{Field: "tier", Problem: "must be 1, 2 or 3"})
		}
	}
	if q.Cost != "" {
		if f.MinCostUSD, err = strconv.ParseFloat(strings.TrimPrefix(q.Cost, "$"), 64); err != nil {
			return f, operations.Invalid(&operations.FieldError{
				Field:   "cost",
				Problem: "must be a number of dollars, such as 0.5",
			})
		}
	}
	f.Since, f.Until, err = operations.DayRange([2]string{"since", "until"}, [2]string{q.Since, q.Until}, zone)
	return f, err
}

// incidentOf returns the ID of an incident of which a person has typed the ID or only the number.
func incidentOf(typed string) string {
	if _, err := strconv.ParseUint(typed, 10, 64); err == nil {
		return "incident-" + typed
	}
	return typed
}

// sentence says what a chain in a list is about, and how it stands.
func sentence(row operations.Row) string {
	about := "All services"
	switch {
	case row.Plan != "":
		about = "Plan " + row.Plan
	case row.Trigger == string(escalation.TriggerPlan):
		about = "A plan"
	case len(row.Services) > 0:
		about = names(row.Services)
	}
	does := map[string]string{
		string(escalation.OutcomeHealthy): "nothing is wrong", string(escalation.OutcomeResolved): "repaired",
		string(escalation.OutcomeApproved):   "approved",
		string(escalation.OutcomeNeedsHuman): "ended, and a person must act",
		string(escalation.OutcomeFailed):     "the agent could not do its work",
		string(escalation.OutcomeAborted):    "ended by a person",
		string(escalation.OutcomeKnown):      "another chain takes care of it",
	}[row.Outcome]
	switch {
	case does != "":
	case row.Outcome != "":
		does = escalation.InWords(row.Outcome)
	case row.State() == "running":
		does = "at work"
	default:
		does = escalation.InWords(row.State())
	}
	return about + ": " + does
}
