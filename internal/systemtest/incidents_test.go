package systemtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/notifytest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// These tests run the cycles of a schedule one after another, with real processes as agents. Between the looks they
// break and heal services. TestMonth in package workflows does the same for 30 days, with simulated agents.

// plannedFault is a fault of a service during several looks. The looks are counted from 1.
type plannedFault struct {
	service string
	// begins holds the looks at which the fault appears. No two faults begin at the same look.
	begins []int
	// repairedBy is the tier that repairs the fault; 0 if no tier can.
	repairedBy escalation.Tier
	// worsens is the look at which the fault is worse, and heals is the look at which it has healed without a repair; 0
	// for never.
	worsens, heals int
	// answered is the look after which a person answers at the fault's gate; 0 for never.
	answered int

	broken bool
	// chains holds the IDs of the chains that were the first to find the fault.
	chains []string
}

// guidance returns the person's guidance at the gate.
func (f *plannedFault) guidance() string { return "repair " + f.service + " for good" }

// watchedServices is an installation with services that break as planned.
type watchedServices struct {
	*site
	records  *store.Store
	claude   string
	notified *notifytest.Recipient
	faults   []*plannedFault
	looks    int
	// known holds the IDs of the chains that ended with the outcome known.
	known []string
}

// watchServices starts an installation and runs the given number of looks at its services.
func watchServices(t *testing.T, looks int, faults []*plannedFault) *watchedServices {
	t.Helper()
	w := &watchedServices{notified: notifytest.Start(t), faults: faults, looks: looks}
	w.claude = simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Conclude(allWell()))))
	// The looks follow each other within seconds. So limits per hour would have another effect than in two real hours.
	w.site = startSite(t, startTemporal(t), environment(t, w.claude,
		"CLAUDEOPS_GATE_TIMEOUT=72h", "CLAUDEOPS_ESCALATION_LIMIT=none", "CLAUDEOPS_NOTIFY_URLS="+w.notified.Apprise()))
	w.records = w.site.records()
	for look := 1; look <= looks; look++ {
		w.look(look)
		w.follow(look)
	}
	return w
}

// look runs one cycle, and records what its chain does about the fault that has begun.
func (w *watchedServices) look(look int) {
	w.t.Helper()
	var begun *plannedFault
	for _, fault := range w.faults {
		switch {
		case slices.Contains(fault.begins, look):
			fault.broken, begun = true, fault
		case fault.heals == look:
			fault.broken = false
		}
	}
	open := w.open()
	w.install(begun, w.verdict(look, open))
	result := w.cycleNow(fmt.Sprintf("%s-%02d", nameOf(w.t), look))
	for i := range open {
		require.Contains(w.t, simtest.Requests(w.t, w.claude)[0].Prompt(), open[i].ID, "look %d is told the open incidents", look)
	}
	if begun != nil {
		begun.chains = append(begun.chains, result.ChainID)
	}
	switch {
	case result.Waiting:
		require.NotNil(w.t, begun, "look %d waits for what is known", look)
		w.awaitGate(result.ChainID, "gate-1")
	case begun != nil:
		require.Equal(w.t, escalation.OutcomeResolved, result.Outcome, "look %d", look)
		begun.broken = false
	case len(open) == 0:
		require.Equal(w.t, escalation.OutcomeHealthy, result.Outcome, "look %d", look)
	default:
		w.known = append(w.known, result.ChainID)
	}
}

// cycleNow runs a cycle to its end.
func (s *site) cycleNow(name string) (result workflows.CycleResult) {
	s.t.Helper()
	run, err := s.client.ExecuteWorkflow(s.t.Context(), client.StartWorkflowOptions{
		ID: workflows.CycleWorkflowID(name), TaskQueue: s.cfg.Worker.TaskQueue,
	}, workflows.CycleWorkflow, nil)
	require.NoError(s.t, err)
	require.NoError(s.t, run.Get(s.t.Context(), &result))
	return result
}

// follow waits for the chain whose fault has healed. It also answers at the gate whose time has come.
func (w *watchedServices) follow(look int) {
	w.t.Helper()
	for _, fault := range w.faults {
		if fault.heals != look && fault.answered != look {
			continue
		}
		waiting := fault.chains[len(fault.chains)-1]
		if fault.answered == look {
			_, err := w.resolve(waiting, escalation.GateAnswer{
				GateID: "gate-1", Action: escalation.GateFix, Guidance: fault.guidance(), Actor: "ada",
			})
			require.NoError(w.t, err, fault.service)
			fault.broken = false
		}
		chain, err := w.finish(w.client.GetWorkflow(w.t.Context(), waiting, ""))
		require.NoError(w.t, err)
		require.Equal(w.t, escalation.OutcomeResolved, chain.Outcome, "%s: %s", fault.service, chain.Reason)
	}
}

// open returns the open incidents.
func (w *watchedServices) open() []escalation.Incident {
	w.t.Helper()
	open, err := w.records.Incidents(w.t.Context(), store.IncidentFilter{})
	require.NoError(w.t, err)
	return open
}

// install replaces the script of the agents. If Tiers 2 and 3 can repair the fault that has begun, they do.
func (w *watchedServices) install(begun *plannedFault, look escalation.Verdict) {
	w.t.Helper()
	var turns []claudesim.Turn
	for _, fault := range w.faults {
		turns = append(turns, claudesim.On(claudesim.Match{Prompt: fault.guidance()}, claudesim.Conclude(repaired(fault.service))))
	}
	turns = append(turns,
		claudesim.On(claudesim.Match{Prompt: "The chain has waited"}, claudesim.Conclude(allWell())).Named("healed"),
		concluding("haiku", look))
	if begun != nil {
		second, third := repaired(begun.service), repaired(begun.service)
		if begun.repairedBy != escalation.TierSafeRepair {
			second.Status = escalation.VerdictEscalate
		}
		if begun.repairedBy == 0 {
			third.Status = escalation.VerdictNeedsHuman
		}
		turns = append(turns, concluding("sonnet", second), concluding("opus", third))
	}
	_, err := claudesim.Install(filepath.Dir(w.claude), claudesim.Play(turns...))
	require.NoError(w.t, err)
}

func repaired(service string) escalation.Verdict {
	return escalation.Verdict{
		Status: escalation.VerdictResolved, Summary: "worked on " + service, Services: []string{service}, Remediation: "cleared its cache",
	}
}

// verdict returns Tier 1's verdict: the services that are broken, and the state of the open incidents.
func (w *watchedServices) verdict(look int, open []escalation.Incident) escalation.Verdict {
	verdict := allWell()
	news := map[string]escalation.IncidentNews{}
	for _, fault := range w.faults {
		if !fault.broken {
			continue
		}
		verdict.Status, verdict.Summary, verdict.Kind = escalation.VerdictEscalate, "not all is well", "down"
		verdict.Services = append(verdict.Services, fault.service)
		news[fault.service] = escalation.IncidentUnchanged
		if fault.worsens > 0 && look >= fault.worsens {
			news[fault.service] = escalation.IncidentWorse
		}
	}
	for i := range open {
		known := escalation.KnownIncident{ID: open[i].ID, Status: escalation.IncidentGone}
		if status, broken := news[open[i].Services[0]]; broken {
			known.Status = status
		}
		verdict.Known = append(verdict.Known, known)
	}
	return verdict
}

// incidentFigures are the totals of all looks.
type incidentFigures struct {
	sessions map[escalation.Tier]int
	// gates and climbs count, by service, the gates and the chains that repaired.
	gates, climbs map[string]int
	told          map[string]int
	costUSD       float64
}

// figures reads the totals from the records and the notifications.
func (w *watchedServices) figures() incidentFigures {
	w.t.Helper()
	f := incidentFigures{map[escalation.Tier]int{}, map[string]int{}, map[string]int{}, nil, 0}
	service := map[string]string{}
	for _, fault := range w.faults {
		for _, chain := range fault.chains {
			service[chain] = fault.service
		}
	}
	for look := 1; look <= w.looks; look++ {
		chainID := fmt.Sprintf("chain-%s-%02d", nameOf(w.t), look)
		sessions, err := w.records.Chain(w.t.Context(), chainID)
		require.NoError(w.t, err)
		require.NotEmpty(w.t, sessions, chainID)
		for i := range sessions {
			f.sessions[sessions[i].Tier]++
		}
		if slices.ContainsFunc(sessions, func(session escalation.Session) bool { return session.Tier > escalation.TierObserve }) {
			f.climbs[service[chainID]]++
		}
		f.costUSD += escalation.TotalCostUSD(sessions)
		events, err := w.records.Events(w.t.Context(), chainID)
		require.NoError(w.t, err)
		for _, event := range events {
			if event.Kind == escalation.EventGateOpened {
				f.gates[service[chainID]]++
			}
		}
	}
	f.told = headlines(w.t, w.notified)
	return f
}

// headlines counts the notifications that an Apprise API has received, by headline.
func headlines(t *testing.T, notified *notifytest.Recipient) map[string]int {
	t.Helper()
	told := map[string]int{}
	for _, message := range notified.Received() {
		var sent struct{ Title string }
		require.NoError(t, json.Unmarshal([]byte(message), &sent))
		headline, _, _ := strings.Cut(strings.TrimPrefix(sent.Title, "Claude Ops: "), " (")
		told[headline]++
	}
	return told
}

// requireFollowed checks the totals. An unchanged fault cost at most one gate and one chain that repaired. Each look
// cost one session of Tier 1. The chain of a healed fault looked once more. The result is one line with the figures.
func (w *watchedServices) requireFollowed() string {
	w.t.Helper()
	f := w.figures()
	line := fmt.Sprintf("looks=%d known=%d tier1=%d tier2=%d tier3=%d gates=%v climbs=%v notifications=%v dollars=%.4f",
		w.looks, len(w.known), f.sessions[1], f.sessions[2], f.sessions[3], f.gates, f.climbs, f.told, f.costUSD)
	gates, climbs := map[string]int{}, map[string]int{}
	asked, worse, healed := 0, 0, 0
	for _, fault := range w.faults {
		climbs[fault.service] = len(fault.begins)
		if fault.heals > 0 {
			healed++
		}
		if fault.worsens > 0 {
			worse++
		}
		if fault.heals > 0 || fault.answered > 0 {
			gates[fault.service] = 1
			asked++
		}
	}
	require.Equal(w.t, gates, f.gates, line)
	require.Equal(w.t, climbs, f.climbs, line)
	require.Equal(w.t, w.looks+healed, f.sessions[escalation.TierObserve], line)
	require.Equal(w.t, asked, f.told[escalation.NotifyNeedsHuman.Headline()], line)
	require.Equal(w.t, worse, f.told[escalation.NotifyWorse.Headline()], line)
	for _, chainID := range w.known {
		chain, err := w.finish(w.client.GetWorkflow(w.t.Context(), chainID, ""))
		require.NoError(w.t, err)
		require.Equal(w.t, escalation.OutcomeKnown, chain.Outcome, chainID)
		require.Len(w.t, chain.Sessions, 1)
	}
	require.Empty(w.t, w.open(), line)
	return line
}

// faultsOfTwoHours returns the faults of 24 looks. One fault comes back, one becomes worse, one heals without a repair,
// and one is repaired at once. One waits until a person answers after the look with the number answered.
func faultsOfTwoHours(answered int) (flaps, worsens, heals *plannedFault, all []*plannedFault) {
	flaps = &plannedFault{service: "db", begins: []int{3, 6, 9, 12, 15}, repairedBy: escalation.TierSafeRepair, answered: 18}
	worsens = &plannedFault{service: "dns", begins: []int{4}, worsens: 8, answered: 17}
	heals = &plannedFault{service: "mail", begins: []int{5}, heals: 11}
	return flaps, worsens, heals, []*plannedFault{
		flaps, worsens, heals,
		{service: "web", begins: []int{2}, answered: answered},
		{service: "files", begins: []int{7}, repairedBy: escalation.TierSafeRepair},
	}
}

// TestIncidentsOfTwoHours runs 24 looks at five services. A schedule with an interval of five minutes does the same in
// two hours.
func TestIncidentsOfTwoHours(t *testing.T) {
	t.Parallel()
	began := time.Now()
	flaps, worsens, heals, all := faultsOfTwoHours(22)
	w := watchServices(t, 24, all)
	t.Logf("incidents: %s took=%s", w.requireFollowed(), time.Since(began).Round(time.Second))

	var tiers [][]escalation.Tier
	for _, chainID := range flaps.chains {
		var ran []escalation.Tier
		for _, session := range w.query(w.client.GetWorkflow(t.Context(), chainID, "")).Sessions {
			ran = append(ran, session.Tier)
		}
		tiers = append(tiers, ran)
	}
	require.Equal(t, [][]escalation.Tier{{1, 2}, {1, 2}, {1, 2}, {1, 3}, {1, 2}}, tiers,
		"the third return begins with tier 3, and the fourth with a person's answer")
	for branch, chainID := range map[string]string{
		"known": w.known[0], "incident_worse": worsens.chains[0], "incident_healed": heals.chains[0],
		"returned": flaps.chains[3], "returned_asked": flaps.chains[4],
	} {
		recordHistory(t, w.site, w.client.GetWorkflow(t.Context(), chainID, ""), branch)
	}
}

// TestFailedLooks runs cycles whose first looks fail, because the API refuses the key. The first one opens a gate, and
// the next one is known. When the key is valid again, the next look has a result, and the chain at the gate ends
// without a person.
func TestFailedLooks(t *testing.T) {
	t.Parallel()
	notified := notifytest.Start(t)
	claude := simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Fail(http.StatusUnauthorized, "the key has expired"))))
	s := startSite(t, startTemporal(t), environment(t, claude, "CLAUDEOPS_GATE_TIMEOUT=72h", "CLAUDEOPS_NOTIFY_URLS="+notified.Apprise()))
	first := s.cycleNow(nameOf(t) + "-1")
	require.True(t, first.Waiting)
	gate := s.awaitGate(first.ChainID, "gate-1")
	require.Equal(t, escalation.GateFailed, gate.Source)
	require.Equal(t, escalation.OutcomeKnown, s.cycleNow(nameOf(t)+"-2").Outcome)
	open, err := s.records().Incidents(t.Context(), store.IncidentFilter{})
	require.NoError(t, err)
	require.Len(t, open, 1)
	require.Equal(t, escalation.KindLookFailed, open[0].Kind)
	require.Equal(t, escalation.IncidentWaiting, open[0].State)
	require.Contains(t, open[0].Summary, "agents find no credentials in this environment", "who ends the session first, the CLI or the worker, is not certain")
	require.Len(t, open[0].Chains, 1, "the second chain leaves it to the first")

	_, err = claudesim.Install(filepath.Dir(claude), claudesim.Play(claudesim.Always(claudesim.Conclude(allWell()))))
	require.NoError(t, err)
	third := s.cycleNow(nameOf(t) + "-3")
	require.Equal(t, escalation.OutcomeHealthy, third.Outcome)
	run := s.client.GetWorkflow(t.Context(), first.ChainID, "")
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
	require.Len(t, chain.Sessions, 2)
	require.Equal(t, escalation.PurposeTier, chain.Sessions[1].Purpose)
	requireRecorded(t, s, chain)
	requireExplained(t, s, run, chain)
	healed, err := s.records().Incident(t.Context(), open[0].ID)
	require.NoError(t, err)
	require.Equal(t, escalation.IncidentHealed, healed.Resolution)
	require.Equal(t, third.ChainID, healed.ResolvedBy)
	require.Equal(t, map[string]int{
		escalation.NotifyNeedsHuman.Headline(): 1, escalation.NotifyResolved.Headline(): 1,
	}, headlines(t, notified))
	recordHistory(t, s, s.client.GetWorkflow(t.Context(), "chain-"+nameOf(t)+"-2", ""), "look_failed")
	recordHistory(t, s, run, "look_anew")
}
