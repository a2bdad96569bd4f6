package operations

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/calendar"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/records/store"
)

// Costs says what sessions have cost. The records answer.
type Costs struct{ *backend }

// CostFilter selects the sessions that were started in a time.
type CostFilter struct {
	// From is the begin of the time. If it is zero, the time is the last 30 days, with today.
	From time.Time
	// To is the end of the time, which does not belong to it. If it is zero, it is now.
	To time.Time
}

// CostReport adds up the costs of sessions. Amounts are in US dollars. Reports that were replaced after a reset count,
// because they were paid. A running session counts as soon as it has ended.
type CostReport struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Zone is the time zone of the days: the one of this program.
	Zone  string `json:"zone"`
	Total Cost   `json:"total"`
	// Days has an entry for each day of the time, oldest first, also for days without a session.
	Days []DayCost `json:"days"`
	// The lists begin with what has cost most. Their sums are the total.
	Tiers    []TierCost  `json:"tiers"` // by tier, the lowest first
	Models   []NamedCost `json:"models"`
	Triggers []NamedCost `json:"triggers"`
	// Services splits the cost of a session evenly among the services that its verdict names. What names none has the
	// name "".
	Services []NamedCost `json:"services"`
	// HealthyLook is what a look costs that finds nothing wrong.
	HealthyLook HealthyLook `json:"healthy_look"`
	// MonthUSD is the cost of 30 days at the rate since the first session; 0 while that is less than a day ago.
	MonthUSD float64 `json:"month_usd"`
}

// Cost is the cost of some sessions, in US dollars.
type Cost struct { //nolint:recvcheck // templates call Text on a value
	USD float64 `json:"usd"`
	// EstimatedUSD is the part of USD that belongs to sessions whose cost is partly estimated.
	EstimatedUSD float64 `json:"estimated_usd,omitempty"`
	// UnknownUSD is what sessions whose cost is unknown may have cost in addition, at most. It counts against budgets.
	UnknownUSD float64 `json:"unknown_usd,omitempty"`
	// Sessions counts the sessions.
	Sessions int `json:"sessions"`
}

// Text returns the cost as text, as escalation.Report.CostText does.
func (c Cost) Text() string { return plaintext.Cost(c.USD, c.EstimatedUSD > 0) }

// DayCost is the cost of the sessions that started on a day.
type DayCost struct {
	// Day is the date, such as 2026-11-25.
	Day string `json:"day"`
	Cost
}

// TierCost is the cost of the sessions of a tier.
type TierCost struct {
	Tier escalation.Tier `json:"tier"`
	Cost
}

// NamedCost is the cost of the sessions with a model, a trigger or a service.
type NamedCost struct {
	Name string `json:"name"`
	Cost
}

// HealthyLook describes the sessions of Tier 1 whose verdict is healthy.
type HealthyLook struct {
	Sessions int `json:"sessions"`
	// AverageUSD is their average cost, in US dollars; 0 if there are none.
	AverageUSD float64 `json:"average_usd"`
}

const (
	// costDays is the length of the default time, in days.
	costDays = 30
	// maxCostDays limits the time of a report, in days.
	maxCostDays = 400
	// monthDays is the length of a month in CostReport.MonthUSD, in days.
	monthDays = 30
	day       = 24 * time.Hour
)

// complete fills in the default time, and checks the filter. The zone of now is that of the days.
func (f CostFilter) complete(now time.Time) (CostFilter, error) {
	if f.To.IsZero() {
		f.To = now
	}
	f.To = f.To.In(now.Location())
	last := calendar.Of(f.To.Add(-1))
	if f.From.IsZero() {
		f.From = (last - (costDays - 1)).Begin(now.Location())
	}
	f.From = f.From.In(now.Location())
	switch {
	case !f.From.Before(f.To):
		return f, invalidField("from", "must be before the end of the time, which is %s", f.To.Format(time.RFC3339))
	case calendar.Of(f.From) < calendar.Earliest:
		return f, invalidField("from", "must not be before %s", calendar.Earliest)
	case last > calendar.Latest:
		return f, invalidField("to", "must not be after %s", calendar.Latest)
	case last-calendar.Of(f.From) >= maxCostDays:
		return f, invalidField("from", "is more than %d days before the end of the time", maxCostDays)
	}
	return f, nil
}

// Report returns what the sessions that the filter selects have cost. The error is KindInvalid if the time is empty or
// too long.
func (c Costs) Report(ctx context.Context, f CostFilter) (CostReport, error) {
	now := c.Clock()
	f, err := f.complete(now)
	if err != nil {
		return CostReport{}, err
	}
	records, cfg, err := c.openRecords(ctx)
	if err != nil {
		return CostReport{}, err
	}
	found, err := records.Costs(ctx, f.From, f.To)
	if err != nil {
		return CostReport{}, err
	}
	report := CostReport{From: f.From, To: f.To, Zone: calendar.Zone(now)}
	report.addQuarters(found.Quarters)
	report.addKinds(found.Kinds)
	report.Services = c.byService(found.Kinds, cfg.Services.Catalog)
	report.MonthUSD = monthly(report.Total.USD, found.Quarters, f, now)
	return report, nil
}

// add adds a part of the spending. The part is a share of it, such as 0.5 for one of two services.
func (c *Cost) add(spent store.Spending, share float64) {
	c.USD += share * spent.USD
	c.EstimatedUSD += share * spent.EstimatedUSD
	c.UnknownUSD += share * spent.UnknownUSD
	c.Sessions += spent.Sessions
}

// addQuarters adds up the total, and the days.
func (r *CostReport) addQuarters(quarters []store.QuarterCost) {
	var ends []time.Time
	for d := range calendar.Days(r.From, r.To) {
		r.Days = append(r.Days, DayCost{Day: d.String()})
		ends = append(ends, d.End(r.From.Location()))
	}
	for _, quarter := range quarters {
		r.Total.add(quarter.Spending, 1)
		// The first quarter may begin before the time, and its sessions do not.
		day, _ := slices.BinarySearchFunc(ends, quarter.Start, func(end, start time.Time) int {
			if end.After(start) {
				return 1
			}
			return -1
		})
		r.Days[day].add(quarter.Spending, 1)
	}
}

// addKinds adds up tiers, models, triggers and healthy looks.
func (r *CostReport) addKinds(kinds []store.KindCost) {
	tiers, models, triggers := map[escalation.Tier]*Cost{}, map[string]*Cost{}, map[string]*Cost{}
	var healthy Cost
	for _, kind := range kinds {
		entry(tiers, kind.Tier).add(kind.Spending, 1)
		entry(models, kind.Model).add(kind.Spending, 1)
		entry(triggers, string(kind.Trigger)).add(kind.Spending, 1)
		if kind.Tier == escalation.TierObserve && kind.Conclusion == escalation.VerdictHealthy {
			healthy.add(kind.Spending, 1)
		}
	}
	r.Tiers = []TierCost{} // an empty list is [] in JSON
	for _, tier := range slices.Sorted(maps.Keys(tiers)) {
		r.Tiers = append(r.Tiers, TierCost{tier, *tiers[tier]})
	}
	r.Models, r.Triggers = named(models), named(triggers)
	r.HealthyLook.Sessions = healthy.Sessions
	if healthy.Sessions > 0 {
		r.HealthyLook.AverageUSD = healthy.USD / float64(healthy.Sessions)
	}
}

// entry returns the entry of a map, which it makes if it is missing.
func entry[K comparable](costs map[K]*Cost, key K) *Cost {
	if costs[key] == nil {
		costs[key] = new(Cost)
	}
	return costs[key]
}

// named returns the entries of a map, those with the greatest cost first.
func named(costs map[string]*Cost) []NamedCost {
	list := []NamedCost{} // an empty list is [] in JSON
	for name, cost := range costs {
		list = append(list, NamedCost{name, *cost})
	}
	slices.SortFunc(list, func(a, b NamedCost) int {
		return cmp.Or(cmp.Compare(b.USD, a.USD),
			strings.Compare(a.Name, b.Name))
	})
	return list
}

// byService splits the cost of sessions among their services. Names that mean the same service are one.
func (b *backend) byService(groups []store.KindCost, catalog *escalation.Catalog) []NamedCost {
	costs, names := map[string]*Cost{}, map[string]string{}
	for _, group := range groups {
		services := catalog.CanonicalAll(group.Services)
		if len(services) == 0 {
			services = []string{""}
		}
		for _, service := range services {
			key := escalation.ServiceKey(service)
			if names[key] == "" {
				names[key] = b.mask.Text(service)
			}
			entry(costs, key).add(group.Spending, 1/float64(len(services)))
		}
	}
	list := named(costs)
	for i := range list {
		list[i].Name = names[list[i].Name]
	}
	return list
}

// monthly returns the cost of a month at the rate of the time since the first session; 0 if that is less than a day
// ago, because the first hours say little about a day.
func monthly(usd float64, quarters []store.QuarterCost, f CostFilter, now time.Time) float64 {
	begin, end := f.To, f.To
	for _, quarter := range quarters {
		if quarter.Start.Before(begin) {
			begin = quarter.Start
		}
	}
	if now.Before(end) {
		end = now
	}
	if end.Sub(begin) < day {
		return 0
	}
	return usd * float64(monthDays*day) / float64(end.Sub(begin))
}

// DayRange returns the time from the begin of the first day to the end of the last one, in a zone. The names are those
// of the fields, for errors. An empty day is no limit, and its time is zero.
func DayRange(names, days [2]string, zone *time.Location) (from, to time.Time, err error) {
	var dates [2]calendar.Date
	for i, text := range days {
		if text == "" {
			continue
		}
		if dates[i], err = calendar.Parse(text); err != nil {
			return from, to, invalidField(names[i], "is %q; it must %v", line(text, 60), err)
		}
	}
	if days[0] != "" {
		from = dates[0].Begin(zone)
	}
	if days[1] != "" {
		to = dates[1].End(zone)
	}
	return from, to, nil
}

// Days returns a filter for the time from the first day to the last one. An empty day stands for the default.
func (c Costs) Days(first, last string) (f CostFilter, err error) {
	f.From, f.To, err = DayRange([2]string{"from", "to"}, [2]string{first, last}, c.Clock().Location())
	return f, err
}

// Period names the time of the report in words.
func (r *CostReport) Period() string {
	return fmt.Sprintf("%s to %s (%s)", calendar.Of(r.From), calendar.Of(r.To.Add(-1)), r.Zone)
}
