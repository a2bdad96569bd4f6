package pages

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/calendar"
)

// incidentList is the data of the page with the list of incidents.
type incidentList struct {
	Service, State string
	All            bool
	States         []escalation.IncidentState
	Incidents      []operations.Incident
	// Next is the address of the next page; empty if this is the last.
	Next    string
	Problem string
}

// maxIncidents limits the incidents on a page.
const maxIncidents = 200

// showIncidents lists incidents. The URL holds the filter.
func (p *Pages) showIncidents(w http.ResponseWriter, r *http.Request) error {
	form := r.URL.Query()
	list := incidentList{
		Service: strings.TrimSpace(form.Get("service")), State: form.Get("state"), All: form.Get("state") == "all",
		States: escalation.IncidentStates(),
	}
	filter := operations.IncidentFilter{Service: list.Service, All: list.All, Limit: maxIncidents}
	if !list.All {
		filter.State = list.State
	}
	v := view{template: "incidents", title: "Incidents", section: "/incidents", parts: []string{"list"}}
	found, err := p.incidents.Page(r.Context(), filter, form.Get("after"))
	if list.Incidents = found.Incidents; found.Next != "" {
		form.Set("after", found.Next)
		list.Next = "/incidents?" + form.Encode()
	}
	if err != nil {
		if operations.KindOf(err) != operations.KindInvalid {
			return err
		}
		list.Problem, v.status = err.Error(), http.StatusUnprocessableEntity
	}
	v.data = list
	return p.show(w, r, v)
}

// incidentPage is the data of the page of an incident.
type incidentPage struct {
	operations.Incident

	// Latest lists the chains, latest first.
	Latest []escalation.IncidentChain
}

// showIncident shows an incident.
func (p *Pages) showIncident(w http.ResponseWriter, r *http.Request) error {
	incident, err := p.incidents.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	page := incidentPage{Incident: incident, Latest: slices.Clone(incident.Chains)}
	slices.Reverse(page.Latest)
	return p.show(w, r, view{
		template: "incident", title: incident.ID, section: "/incidents", parts: []string{"incident"}, data: page,
	})
}

// showServices lists the services.
func (p *Pages) showServices(w http.ResponseWriter, r *http.Request) error {
	list, err := p.services.List(r.Context())
	if err != nil {
		return err
	}
	return p.show(w, r, view{
		template: "services", title: "Services", section: "/services", parts: []string{"list"},
		data: list,
	})
}

// showService shows a service.
func (p *Pages) showService(w http.ResponseWriter, r *http.Request) error {
	service, err := p.services.Get(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return p.show(w, r, view{
		template: "service", title: "Service " + service.Name, section: "/services", parts: []string{"service"},
		data: service,
	})
}

// showSchedules lists the schedules.
func (p *Pages) showSchedules(w http.ResponseWriter, r *http.Request) error {
	list, err := p.schedules.List(r.Context())
	if err != nil {
		return err
	}
	return p.show(w, r, view{template: "schedules", title: "Schedules", section: "/schedules", data: list})
}

// schedulePage is the data of the page of a schedule.
type schedulePage struct {
	operations.ScheduleDetail

	// Asked is the input of each chain, indented; empty if it is unknown.
	Asked string
}

// showSchedule shows a schedule.
func (p *Pages) showSchedule(w http.ResponseWriter, r *http.Request) error {
	schedule, err := p.schedules.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	page := schedulePage{ScheduleDetail: schedule}
	if schedule.Input != nil {
		if text, err := json.MarshalIndent(schedule.Input, "", "  "); err == nil {
			page.Asked = string(text)
		}
	}
	return p.show(w, r, view{template: "schedule", title: "Schedule " + schedule.ID, section: "/schedules", data: page})
}

// costPage is the data of the page about cost.
type costPage struct {
	operations.CostReport

	// Since and Until are the fields of the filter.
	Since, Until string
	// Today is the date of today, for the same fields.
	Today string
	// Highest is the cost of the most expensive day, in US dollars.
	Highest float64
	Problem string
}

// showCost shows what sessions have cost. The URL holds the time.
func (p *Pages) showCost(w http.ResponseWriter, r *http.Request) error {
	form := r.URL.Query()
	page := costPage{Since: form.Get("since"), Until: form.Get("until"), Today: calendar.Of(p.Clock()).String()}
	v := view{template: "cost", title: "Cost", section: "/cost"}
	filter, err := page.filter(p.Clock().Location())
	if err == nil {
		page.CostReport, err = p.costs.Report(r.Context(), filter)
	}
	if err != nil {
		if operations.KindOf(err) != operations.KindInvalid {
			return err
		}
		page.Problem, v.status = err.Error(), http.StatusUnprocessableEntity
	}
	for _, day := range page.Days {
		page.Highest = max(page.Highest, day.USD)
	}
	v.data = page
	return p.show(w, r, v)
}

func (c costPage) filter(zone *time.Location) (f operations.CostFilter, err error) {
	f.From, f.To, err = operations.DayRange([2]string{"since", "until"}, [2]string{c.Since, c.Until}, zone)
	return f, err
}

// chartHeight is the height of the chart of the days, in pixels.
const chartHeight = 120

// Bars returns a bar for each day. Positions are in percent of the width, heights in pixels.
func (c costPage) Bars() []dayBar {
	var bars []dayBar
	slot := 100 / float64(max(len(c.Days), 1))
	for i, day := range c.Days {
		height := 0.0
		if c.Highest > 0 {
			height = (chartHeight - 1) * day.USD / c.Highest
		}
		if day.USD > 0 {
			height = max(height, 2)
		}
		bars = append(bars, dayBar{day, slot * (float64(i) + 0.1), slot * 0.8, chartHeight - height, height})
	}
	return bars
}

// LastDay returns the last day of the chart.
func (c costPage) LastDay() string {
	if len(c.Days) == 0 {
		return ""
	}
	return c.Days[len(c.Days)-1].Day
}

// dayBar is the bar of a day.
type dayBar struct {
	operations.DayCost

	X, Width, Y, Height float64
}
