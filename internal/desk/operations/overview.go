package operations

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// Overview says what happens now.
type Overview struct{ *backend }

const (
	// overviewTimeout limits the time of a whole overview.
	overviewTimeout = 8 * time.Second
	// maxOverview limits the running chains that an overview asks. Each takes two calls of Temporal.
	maxOverview = 100
	// maxNowIncidents limits the incidents of an overview.
	maxNowIncidents = 200
	// maxNextCycles limits the cycles of an overview.
	maxNextCycles = 10
)

// Now returns what happens now. It asks Temporal and the records at the same time, each for a limited time. It always
// returns a result: what cannot be told is missing, and the Problem of its part says why.
func (o Overview) Now(ctx context.Context) Now {
	ctx, cancel := context.WithTimeout(ctx, overviewTimeout)
	defer cancel()
	now := Now{At: o.Clock()}
	var live liveChains
	var facts recordedFacts
	var parts errgroup.Group
	for _, part := range []func(){
		func() { now.Gates = o.gates(ctx) },
		func() { live = o.askChains(ctx) },
		func() { facts = o.readFacts(ctx, now.At) },
		func() { now.Cycles = o.cycles(ctx) },
	} {
		parts.Go(func() error {
			part()
			return nil
		})
	}
	_ = parts.Wait() // the functions return no errors
	now.Incidents, now.Day = facts.incidents, facts.day
	now.Work, now.Waits = o.assemble(live, now.Gates, facts, now.At)
	return now
}

// problem returns a part with the error as its problem.
func (b *backend) problem(err error) Part {
	if err == nil {
		return Part{}
	}
	return Part{line(b.mask.Text(err.Error()), maxError)}
}

func (o Overview) gates(ctx context.Context) NowGates {
	list, err := Gates(o).List(ctx)
	if list.Gates == nil {
		list.Gates = []GateRow{} // an empty list is [] in JSON
	}
	return NowGates{o.problem(err), list}
}

func (o Overview) cycles(ctx context.Context) NowCycles {
	connection, _, err := o.connect(ctx)
	var schedules []Schedule
	if err == nil {
		schedules, err = Schedules(o).list(ctx, connection)
	}
	cycles := NowCycles{Part: o.problem(err), Next: []NextCycle{}, Paused: []string{}} // an empty list is [] in JSON
	for _, schedule := range schedules {
		if schedule.Paused {
			cycles.Paused = append(cycles.Paused, schedule.ID)
		}
		for _, at := range schedule.Next {
			cycles.Next = append(cycles.Next, NextCycle{schedule.ID, schedule.When, at})
		}
	}
	slices.SortStableFunc(cycles.Next, func(a, b NextCycle) int { return a.At.Compare(b.At) })
	cycles.Next = cycles.Next[:min(len(cycles.Next), maxNextCycles)]
	return cycles
}

// recordedFacts is what the records know of now.
type recordedFacts struct {
	Part

	incidents NowIncidents
	day       NowDay
	// running lists the open sessions, and locks the locks on services.
	running []escalation.Session
	locks   []store.ServiceLock
}

func (o Overview) readFacts(ctx context.Context, at time.Time) recordedFacts {
	// an empty list is [] in JSON
	facts := recordedFacts{incidents: NowIncidents{Incidents: []Incident{}}, day: newDay(at)}
	records, cfg, err := o.openRecords(ctx)
	facts.day.BudgetUSD = cfg.Limits.DayBudgetUSD
	if err != nil {
		facts.Part = o.problem(err)
		facts.incidents.Part, facts.day.Part = facts.Part, facts.Part
		return facts
	}
	spent, err := records.DaySpending(ctx, at)
	facts.day.Part = o.problem(err)
	facts.day.add(spent)
	open, err := records.OpenIncidents(ctx, store.OpenFilter{Limit: maxNowIncidents})
	facts.incidents.Part, facts.incidents.Open = o.problem(err), open.Total
	for _, incident := range open.Incidents {
		facts.incidents.Incidents = append(facts.incidents.Incidents, o.view(incident, at))
	}
	if facts.running, err = records.Running(ctx); err == nil {
		facts.locks, err = records.ServiceLocks(ctx)
	}
	facts.Part = o.problem(err)
	return facts
}

// newDay returns the day of a time, as budgets count it.
func newDay(at time.Time) NowDay {
	from := at.UTC().Truncate(day)
	return NowDay{From: from, ResetsAt: from.Add(day)}
}

func (d *NowDay) add(spent store.DaySpending) {
	d.SpentUSD, d.Estimated, d.ReservedUSD = spent.SpentUSD, spent.Estimated, spent.ReservedUSD
	if d.BudgetUSD > 0 {
		d.LeftUSD = max(0, d.BudgetUSD-d.SpentUSD-d.ReservedUSD)
	}
}

// assemble returns the chains at work, and the chains that wait.
func (o Overview) assemble(live liveChains, gates NowGates, facts recordedFacts, at time.Time) (NowWork, NowWaits) {
	work := NowWork{Part: live.Part, Chains: []WorkingChain{}, Running: live.running, Asked: len(live.chains)}
	waits := NowWaits{Part: live.Part, Chains: []WaitingChain{}}
	for _, gate := range gates.Gates {
		waits.Chains = append(waits.Chains, gateWait(gate))
	}
	for i := range live.chains {
		chain := &live.chains[i]
		chain.recorded = runningOf(facts.running, chain.row.ID)
		if wait := chain.wait(facts.locks, at); wait != nil {
			waits.Chains = append(waits.Chains, *wait)
		} else if working := chain.working(); working != nil {
			work.Chains = append(work.Chains, *working)
		}
	}
	if live.Problem != "" && live.running == 0 {
		work.Problem += "; the rest is from the records"
		waits.Problem = work.Problem
		work.Chains, waits.Chains = o.fromRecords(facts)
	}
	slices.SortStableFunc(work.Chains, func(a, b WorkingChain) int { return a.StartedAt.Compare(b.StartedAt) })
	slices.SortStableFunc(waits.Chains, byWait)
	return work, waits
}

// byWait compares two waits for sorting: those for a person come first, then those that end first. A wait without an
// end comes last.
func byWait(a, b WaitingChain) int {
	rank := func(wait WaitingChain) int {
		switch {
		case wait.Kind == WaitGate:
			return 0
		case wait.Until.IsZero():
			return 2
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Until.Compare(b.Until), strings.Compare(a.ChainID, b.ChainID))
}

// runningOf returns the open session of a chain; nil if the records have none.
func runningOf(sessions []escalation.Session, chainID string) *escalation.Session {
	for i := range sessions {
		if sessions[i].ChainID == chainID {
			return &sessions[i]
		}
	}
	return nil
}

// fromRecords returns the chains at work and the chains that wait, as the records know them.
func (o Overview) fromRecords(facts recordedFacts) (work []WorkingChain, waits []WaitingChain) {
	work, waits = []WorkingChain{}, []WaitingChain{} // an empty list is [] in JSON
	for i := range facts.running {
		session := facts.running[i]
		row := WorkingChain{
			ChainID: session.ChainID, Services: session.Scope, Trigger: session.Trigger, DryRun: session.DryRun,
			StartedAt: session.StartedAt, Session: sessionNow(session, nil, nil),
			Doing:   fmt.Sprintf("%s runs", session.Tier),
			Problem: "what it does, and what it has cost so far, is unknown while Temporal cannot be reached",
		}
		work = append(work, row)
	}
	seen := map[string]bool{}
	for _, incident := range facts.incidents.Incidents {
		for _, chain := range incident.Chains {
			if chain.Status == escalation.ChainWaiting && !seen[chain.ChainID] {
				seen[chain.ChainID] = true
				waits = append(waits, recordedWait(chain, incident.Services, facts.locks))
			}
		}
	}
	return work, waits
}

// recordedWait describes a wait by what the chain has recorded with its incident.
func recordedWait(chain escalation.IncidentChain, services []string, locks []store.ServiceLock) WaitingChain {
	wait := WaitingChain{
		ChainID: chain.ChainID, Services: services, Cost: chain.Cost,
		Kind: WaitGate, Rule: chain.Rule, Reason: chain.Reason, Since: chain.At, Until: chain.Until,
	}
	if kind := kindOfRule(chain.Rule); kind != WaitOther {
		wait.Kind = kind
		wait.complete(locks, chain.At)
	}
	return wait
}
