package workflows_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/reconcile"
	"github.com/claudeops/claudeops/internal/store"
	"github.com/claudeops/claudeops/workflows"
)

// simulationSeed runs the simulation of one seed, which a failed test has printed.
var simulationSeed = flag.Uint64("simulation", 0, "run the simulation with this seed only")

const (
	simulatedDays = 3
	// quietHours are the hours at the end without new faults, failing looks and outages.
	quietHours = 5
	// sessionTakes is the duration of each session. It is long, so that looks and repairs overlap often.
	sessionTakes = 12 * time.Minute
	// simulatedSweeps is the time between two sweeps of a namespace.
	simulatedSweeps = 10 * time.Minute
)

// simulation runs days of random faults with the real store. Agents, people, outages and two namespaces are simulated. Every
// choice depends only on the seed and on the name of the choice, and activities take turns. So a seed always comes out the same.
type simulation struct {
	t       *testing.T
	seed    uint64
	env     *testsuite.TestWorkflowEnvironment
	begin   time.Time
	policy  escalation.Policy
	records *store.Store
	// of holds the views of the two namespaces.
	of    map[string]*store.Store
	turns *turns
	calls int
	// activities and catalog know the services by their names. One service may be renamed.
	activities *activities.Records
	catalog    *escalation.Catalog

	mu      sync.Mutex
	faults  []*simulatedFault
	outages [][2]time.Time // of the database
	failing [][2]time.Time // of the looks
	renames string         // the service that is renamed; empty if none is
	// looks holds the latest look of each chain. The chain of an issue begins with the look of its parent.
	looks map[string]simulatedSpan
	// repairs holds the work of agents at services.
	repairs    []simulatedRepair
	ended      map[string]bool // chains
	told       []escalation.Notification
	swept      map[string]time.Time // the latest sweep of each namespace
	counts     map[string]int
	violations []string
}

// simulatedSpan is the time from the start of a session to its end.
type simulatedSpan struct{ began, ended time.Time }

type simulatedRepair struct {
	simulatedSpan
	chainID, service string
}

// simulatedFault is one fault of one service. The times heals and worsens are zero if that never happens.
type simulatedFault struct {
	service, kind          string
	begins, heals, worsens time.Time
	// repairedBy is the tier that can repair the fault; 0 if only a person can.
	repairedBy escalation.Tier
	// repairedAt and repairer describe the repair; repairer is empty if a person repaired it.
	repairedAt time.Time
	repairer   string
}

// draw returns a number from 0 to below n.
func (s *simulation) draw(n int, what ...any) int {
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, s.seed, what)
	mixed := hash.Sum64() * 0x9e3779b97f4a7c15
	return int((mixed >> 33) % uint64(n)) //nolint:gosec // n is small
}

// chance reports whether something happens that happens in so many of 100 cases.
func (s *simulation) chance(percent int, what ...any) bool { return s.draw(100, what...) < percent }

func (s *simulation) at(hours float64) time.Time {
	return s.begin.Add(time.Duration(hours * float64(time.Hour)))
}

// simulatedServices returns the first names of the services.
func simulatedServices() []string { return []string{"db", "dns", "files", "mail", "web"} }

// newName is added to the name of a service that is renamed. Its first name stays as an alias.
const newName = "-renamed"

// firstNames returns services by their first names, which the simulation uses.
func firstNames(services []string) []string {
	var names []string
	for _, service := range services {
		names = append(names, strings.TrimSuffix(service, newName))
	}
	return names
}

// describeServices sets the catalog of services. The parameter renamed is a service with a new name; "" for none.
func (s *simulation) describeServices(renamed string) {
	var services []escalation.Service
	for _, name := range simulatedServices() {
		service := escalation.Service{Name: name}
		if name == renamed {
			service = escalation.Service{Name: name + newName, Aliases: []string{name}}
		}
		services = append(services, service)
	}
	catalog, err := escalation.NewCatalog(services)
	require.NoError(s.t, err)
	s.catalog, s.activities.Catalog = catalog, catalog
}

// rename renames a service in the catalog, and starts the workers again. Chains, agents and people may still use the first name.
func (s *simulation) rename(service string) {
	if until, away := during(s.outages, s.env.Now()); away { // workers rename when they start while the database is there
		s.env.RegisterDelayedCallback(func() { s.rename(service) }, until.Sub(s.env.Now()))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.describeServices(service)
	renamed, err := s.records.Rename(s.t.Context(), s.catalog.Canonical)
	require.NoError(s.t, err)
	s.counts["renamed"] += renamed
}

// plan draws the faults and the outages. A service can have another fault before the first one is repaired.
func (s *simulation) plan() {
	last := simulatedDays*24 - quietHours
	for _, service := range simulatedServices() {
		kind := []string{"down", "slow", ""}[s.draw(3, service, "kind")]
		for hour, n := 1+s.draw(20, service, "first"), 0; hour < last-1; n++ {
			fault := &simulatedFault{service: service, kind: kind, begins: s.at(float64(hour) + float64(s.draw(60, service, n, "minute"))/60)}
			fault.repairedBy = []escalation.Tier{0, 2, 2, 3}[s.draw(4, service, n, "tier")]
			if s.chance(30, service, n, "heals") {
				fault.heals = fault.begins.Add(time.Duration(20+s.draw(400, service, n, "heals after")) * time.Minute)
			}
			if s.chance(30, service, n, "worsens") {
				fault.worsens = fault.begins.Add(time.Duration(60+s.draw(900, service, n, "worsens after")) * time.Minute)
			}
			s.faults = append(s.faults, fault)
			if fault.heals.IsZero() && fault.repairedBy == 0 {
				break // nothing else can break
			}
			hour += 4 + s.draw(24, service, n, "next")
			if s.chance(25, service, "flaps") {
				hour -= s.draw(24, service, n, "next")
			}
		}
	}
	if s.chance(60, "rename") {
		s.renames = simulatedServices()[s.draw(len(simulatedServices()), "rename what")]
	}
	for i := range 2 {
		if s.chance(60, "outage", i) {
			from := s.at(float64(5+s.draw(last-10, "outage at", i)) + 0.01*float64(s.draw(100, "outage minute", i)))
			s.outages = append(s.outages, [2]time.Time{from, from.Add(time.Duration(5+s.draw(110, "outage for", i)) * time.Minute)})
		}
		if s.chance(60, "failing", i) {
			from := s.at(float64(5 + s.draw(last-20, "failing at", i)))
			s.failing = append(s.failing, [2]time.Time{from, from.Add(time.Duration(1+s.draw(9, "failing for", i)) * time.Hour)})
		}
	}
}

func during(spans [][2]time.Time, at time.Time) (until time.Time, is bool) {
	for _, span := range spans {
		if !at.Before(span[0]) && at.Before(span[1]) {
			return span[1], true
		}
	}
	return until, false
}

// broken returns the fault of a service at a time; nil if the service is healthy.
func (s *simulation) broken(service string, at time.Time) *simulatedFault {
	for _, fault := range s.faults {
		over := !fault.heals.IsZero() && !at.Before(fault.heals) || !fault.repairedAt.IsZero() && !at.Before(fault.repairedAt)
		if fault.service == service && !at.Before(fault.begins) && !over {
			return fault
		}
	}
	return nil
}

func (f *simulatedFault) worse(at time.Time) bool {
	return !f.worsens.IsZero() && !at.Before(f.worsens)
}

func (s *simulation) violate(format string, args ...any) {
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

func (s *simulation) runTier(ctx context.Context, input activities.RunTierInput) (activities.RunTierResult, error) {
	s.turns.take(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.env.Now()
	span := simulatedSpan{now.Add(-sessionTakes), now}
	input.Services, input.Affected = firstNames(input.Services), firstNames(input.Affected)
	s.counts[fmt.Sprint("tier ", int(input.Tier))]++
	report := escalation.Report{
		Status: escalation.SessionCompleted, CostUSD: []float64{0.02, 0.40, 2.00}[input.Tier-1], ReportedSessionID: input.SessionID,
		ContextTokens: 10_000, ContextWindow: 200_000, Turns: 3, Attempts: 1,
	}
	_, fails := during(s.failing, now)
	switch {
	case input.Tier == escalation.TierObserve && fails:
		report.Status, report.Error = escalation.SessionTimedOut, "the provider is away"
	case input.Tier == escalation.TierObserve:
		s.looks[input.ChainID] = span
		report.Verdict = s.look(input, now.Add(-time.Duration(s.draw(12, input.SessionID, "looks at"))*time.Minute))
	default:
		report.Verdict = s.repair(input, span)
	}
	if report.Verdict != nil {
		verdict := s.catalog.Verdict(*report.Verdict)
		report.Verdict = &verdict
	}
	return activities.RunTierResult{Report: report, EndedAt: now}, nil
}

// look is Tier 1. It sees what is broken at a time. Agents differ: some report several faults as one, some name no kinds or no
// known incidents, and some find another word for the kind.
func (s *simulation) look(input activities.RunTierInput, at time.Time) *escalation.Verdict {
	services := input.Services
	if len(services) == 0 {
		services = simulatedServices()
	}
	verdict := &escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all is well"}
	for _, service := range services {
		check := escalation.CheckResult{Service: service, CheckType: "http", Status: escalation.CheckHealthy}
		if fault := s.broken(service, at); fault != nil {
			check.Status = escalation.CheckDegraded
			issue := escalation.Issue{Summary: service + " is broken", Services: []string{service}, Severity: escalation.SeverityWarning, Kind: fault.kind}
			if fault.worse(at) {
				check.Status, issue.Severity = escalation.CheckDown, escalation.SeverityCritical
			}
			if s.chance(15, input.SessionID, service, "no kind") {
				issue.Kind = ""
			}
			verdict.Issues, verdict.Services = append(verdict.Issues, issue), append(verdict.Services, service)
		}
		verdict.Checks = append(verdict.Checks, check)
	}
	if len(verdict.Issues) == 0 {
		s.name(verdict, input, at)
		return verdict
	}
	verdict.Status, verdict.Summary = escalation.VerdictEscalate, verdict.Issues[0].Summary
	if len(verdict.Issues) == 1 {
		verdict.Kind, verdict.Issues = verdict.Issues[0].Kind, nil
	} else if s.chance(10, input.SessionID, "merged") {
		verdict.Summary, verdict.Issues = "several services are broken", nil
	}
	if s.chance(80, input.SessionID, "names") {
		s.name(verdict, input, at)
	}
	return verdict
}

// name adds the known incidents to a verdict.
func (s *simulation) name(verdict *escalation.Verdict, input activities.RunTierInput, at time.Time) {
	for _, incident := range input.Incidents {
		known := escalation.KnownIncident{ID: incident.ID, Status: escalation.IncidentGone}
		for _, service := range firstNames(incident.Services) {
			if fault := s.broken(service, at); fault != nil {
				known.Status = escalation.IncidentUnchanged
				if fault.worse(at) && incident.WorseAt.IsZero() {
					known.Status, known.Note = escalation.IncidentWorse, "it does not answer at all now"
					break
				}
			}
		}
		if len(incident.Services) > 0 {
			verdict.Known = append(verdict.Known, known)
		}
	}
}

// repair is Tier 2 or 3. With a person's guidance it repairs every fault. Agents that give up may name no service.
func (s *simulation) repair(input activities.RunTierInput, span simulatedSpan) *escalation.Verdict {
	services := input.Services
	if len(services) == 0 {
		services = input.Affected
	}
	done := span.ended.Add(-time.Minute) // what breaks after that is another fault
	verdict := &escalation.Verdict{Status: escalation.VerdictResolved, Summary: "repaired", Services: services, Remediation: "did what it could"}
	for _, service := range services {
		if slices.ContainsFunc(input.Leave, func(i escalation.ChainIncident) bool { return slices.Contains(firstNames(i.Services), service) }) {
			continue
		}
		s.checkRepair(input, service, span)
		s.repairs = append(s.repairs, simulatedRepair{span, input.ChainID, service})
		verdict.Actions = append(verdict.Actions, escalation.Action{Kind: escalation.ActionRestart, Service: service, Succeeded: true})
		for fault := s.broken(service, done); fault != nil; fault = s.broken(service, done) {
			if input.Guidance == "" && (fault.repairedBy == 0 || input.Tier < fault.repairedBy) {
				break
			}
			fault.repairedAt, fault.repairer = done, input.ChainID
		}
		switch {
		case s.broken(service, done) == nil:
		case input.Tier == escalation.TierFullRepair:
			verdict.Status = escalation.VerdictNeedsHuman
		case verdict.Status == escalation.VerdictResolved:
			verdict.Status = escalation.VerdictEscalate
			if s.chance(20, input.SessionID, "gives up") {
				verdict.Status = escalation.VerdictNeedsHuman
			}
		}
	}
	if verdict.Status == escalation.VerdictNeedsHuman && s.chance(50, input.SessionID, "names nothing") {
		verdict.Services = nil
	}
	return verdict
}

// checkRepair checks that no other agent works at the service, and that the chain has a reason to repair it: the service was broken
// at some time since the chain's latest look began, and no other chain had repaired it before that look ended.
func (s *simulation) checkRepair(input activities.RunTierInput, service string, span simulatedSpan) {
	for _, other := range s.repairs {
		if other.service == service && other.chainID != input.ChainID && other.ended.After(span.began) && span.ended.After(other.began) {
			s.violate("two agents at %s: chains %s and %s at %s", service, other.chainID, input.ChainID, span.began)
		}
	}
	chainID, isIssue := input.ChainID, false
	look, looked := s.looks[chainID]
	if !looked {
		chainID, _, isIssue = strings.Cut(chainID, "-issue-")
		look = s.looks[chainID]
	}
	if input.Guidance != "" || s.broken(service, span.began) != nil {
		return
	}
	for at := look.began; !at.After(span.began); at = at.Add(time.Minute) {
		fault := s.broken(service, at)
		if fault == nil {
			continue
		}
		closed := fault.repairedAt.Add(time.Minute) // the end of the session that repaired it
		if fault.repairedAt.IsZero() || fault.repairer == input.ChainID || closed.After(look.ended) {
			return
		}
		s.violate("chain %s repairs %s at %s: chain %s had repaired it at %s, before the look ended at %s (issue: %t)",
			input.ChainID, service, span.began, fault.repairer, fault.repairedAt, look.ended, isIssue)
		return
	}
	s.violate("chain %s repairs %s at %s, which was healthy since the look at %s", input.ChainID, service, span.began, look.began)
}

// notify receives a notification. In half of the cases a person reacts.
func (s *simulation) notify(ctx context.Context, input activities.NotifyInput) error {
	s.turns.take(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, input.Notification)
	chainID, number := input.Notification.ChainID, len(s.told)
	asks := input.Notification.Kind == escalation.NotifyNeedsHuman || input.Notification.Kind == escalation.NotifyBlocked
	if !asks || !s.chance(50, chainID, "a person") {
		return nil
	}
	after := time.Duration(10+s.draw(1200, chainID, "answers after")) * time.Minute
	s.env.RegisterDelayedCallback(func() { s.person(chainID, number) }, after)
	return nil
}

// person answers the gate of a chain, or repairs the service and closes the incident.
func (s *simulation) person(chainID string, number int) {
	encoded, err := s.env.QueryWorkflowByID(chainID, workflows.ChainQuery)
	if err != nil {
		return // the chain has gone
	}
	var chain escalation.Chain
	require.NoError(s.t, encoded.Get(&chain))
	gate := chain.OpenGate()
	if gate == nil {
		return
	}
	if own := chain.OwnIncidents(); len(own) > 0 && s.chance(30, chainID, number, "closes") {
		s.close(chainID, own[0])
		return
	}
	action := []escalation.GateAction{escalation.GateFix, escalation.GateFix, escalation.GateOverride, escalation.GateAbort}[s.draw(4, chainID, number, "action")]
	s.count("answers")
	_ = s.env.SignalWorkflowByID(chainID, workflows.ResolveGate, escalation.GateAnswer{ // the chain may have ended
		GateID: gate.ID, Action: action, Guidance: "do this", Actor: "ada",
	})
}

func (s *simulation) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

// close repairs the services of an incident by hand, and closes the incident.
func (s *simulation) close(chainID, id string) {
	now := s.env.Now()
	incident, err := s.records.Incident(s.t.Context(), id)
	require.NoError(s.t, err)
	s.mu.Lock()
	for _, service := range firstNames(incident.Services) {
		for fault := s.broken(service, now); fault != nil; fault = s.broken(service, now) {
			fault.repairedAt = now
		}
	}
	s.mu.Unlock()
	s.count("closes")
	if _, err := s.records.CloseIncident(s.t.Context(), id, store.IncidentClosing{Actor: "ada", At: now}); errors.Is(err, store.ErrConflict) {
		return
	}
	_ = s.env.SignalWorkflowByID(chainID, workflows.IncidentSignalName, workflows.IncidentSignal{ // the chain may have ended
		IncidentID: id, Status: escalation.IncidentGone, Actor: "ada",
	})
}

// simulatedRecords gives each chain the records of its namespace. During an outage, every call fails.
type simulatedRecords struct{ s *simulation }

var _ activities.Recorder = simulatedRecords{}

// in returns the records for a chain, or an error during an outage of the database.
func (r simulatedRecords) in(ctx context.Context, chainID string) (storeRecords, error) {
	r.s.turns.take(ctx)
	r.s.calls++
	if r.s.chance(8, "slow", r.s.calls) { // some local activities time out, and other chains move on meanwhile
		time.Sleep(time.Duration(1+r.s.draw(9, "slow for", r.s.calls)) * time.Second)
		r.s.turns.take(ctx)
	}
	now := r.s.env.Now()
	if until, away := during(r.s.outages, now); away {
		return storeRecords{}, temporal.NewApplicationErrorWithOptions("the database is away", "Away",
			temporal.ApplicationErrorOptions{NextRetryDelay: until.Sub(now) + time.Duration(r.s.draw(600, chainID, until))*time.Second})
	}
	return storeRecords{r.s.of[namespaceOf(chainID)]}, nil
}

// namespaceOf returns the namespace of a chain by its ID.
func namespaceOf(chainID string) string {
	if strings.HasPrefix(chainID, "chain-there") {
		return "there"
	}
	return "here"
}

func (r simulatedRecords) OpenSession(
	ctx context.Context, session escalation.Session, request escalation.AdmissionRequest, policy escalation.Policy,
) (escalation.AdmissionResult, error) {
	records, err := r.in(ctx, session.ChainID)
	if err != nil {
		return escalation.AdmissionResult{}, err
	}
	return records.OpenSession(ctx, session, request, policy)
}

func (r simulatedRecords) Review(
	ctx context.Context, request escalation.AdmissionRequest, policy escalation.Policy,
) (escalation.Admission, error) {
	records, err := r.in(ctx, request.ChainID)
	if err != nil {
		return escalation.Admission{}, err
	}
	return records.Review(ctx, request, policy)
}

func (r simulatedRecords) ReleaseServices(ctx context.Context, chainID string) error {
	records, err := r.in(ctx, chainID)
	if err != nil {
		return err
	}
	return records.ReleaseServices(ctx, chainID)
}

func (r simulatedRecords) KnownIncidents(ctx context.Context, input activities.KnownIncidentsInput) ([]escalation.Incident, error) {
	records, err := r.in(ctx, "")
	if err != nil {
		return nil, err
	}
	return records.KnownIncidents(ctx, input)
}

func (r simulatedRecords) ChainIncidents(
	ctx context.Context, chain escalation.ChainRun, sessionID string,
) (own, healed []escalation.Incident, err error) {
	records, err := r.in(ctx, chain.ChainID)
	if err != nil {
		return nil, nil, err
	}
	return records.ChainIncidents(ctx, chain, sessionID)
}

func (r simulatedRecords) RecordProgress(ctx context.Context, chain escalation.ChainRun, progress escalation.ChainProgress) error {
	records, err := r.in(ctx, chain.ChainID)
	if err != nil {
		return err
	}
	return records.RecordProgress(ctx, chain, progress)
}

func (r simulatedRecords) FindSession(ctx context.Context, sessionID string) (escalation.Session, bool, error) {
	records, err := r.in(ctx, "")
	if err != nil {
		return escalation.Session{}, false, err
	}
	return records.FindSession(ctx, sessionID)
}

func (r simulatedRecords) CloseSession(ctx context.Context, sessionID string, report escalation.Report, endedAt time.Time) error {
	records, err := r.in(ctx, "")
	if err != nil {
		return err
	}
	return records.CloseSession(ctx, sessionID, report, endedAt)
}

func (r simulatedRecords) AppendEvents(ctx context.Context, events []escalation.Event) error {
	if len(events) == 0 {
		return nil
	}
	records, err := r.in(ctx, events[0].ChainID)
	if err != nil {
		return err
	}
	r.s.mu.Lock()
	for _, event := range events {
		switch event.Kind { //nolint:exhaustive // the others are not counted
		case escalation.EventChainEnded:
			r.s.ended[event.ChainID] = true
			r.s.counts[string(outcomeOf(event))]++
		case escalation.EventGateOpened:
			r.s.counts["gates"]++
		}
	}
	r.s.mu.Unlock()
	return records.AppendEvents(ctx, events)
}

// DescribeWorkflowExecution implements reconcile.Describer: chains run until they have recorded their end.
func (s *simulation) DescribeWorkflowExecution(
	_ context.Context, chainID, _ string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	if s.ended[chainID] {
		status = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: status}}, nil
}

// Sweep sweeps in a namespace, unless the database is away. After an outage the namespaces come back one after the other. No chain is
// ever terminated, so no sweep may settle anything of a chain that runs.
func (s *simulation) Sweep(ctx context.Context, namespace string) error {
	s.turns.take(ctx)
	now := s.env.Now()
	if _, away := during(s.outages, now); away {
		return nil
	}
	if _, just := during(s.outages, now.Add(-30*time.Minute)); just && namespace == "there" {
		return nil
	}
	host := fmt.Sprint("host-", s.draw(2, namespace, "host", now))
	records := simulatedSweep{s.of[namespace], s, s.clock(host)}
	if due, err := records.ClaimDuty(ctx, "sweep "+namespace, host, records.clock, records.clock.Add(simulatedSweeps/2)); err != nil || !due {
		return err
	}
	reconcile.Sweeper{
		Host: namespace, Records: records, Temporal: s, NamespaceID: namespace, Converter: converter.GetDefaultDataConverter(),
		Interval: simulatedSweeps, Logger: slog.New(slog.DiscardHandler),
	}.Sweep(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.swept[namespace] = now
	s.counts["sweeps"]++
	return nil
}

// clock returns the time by the clock of a host, which steps forward and back. Temporal's clock is the one of the environment.
func (s *simulation) clock(host string) time.Time {
	now := s.env.Now()
	step := s.draw(7, host, "clock", int(now.Sub(s.begin)/(5*time.Hour)))
	return now.Add([]time.Duration{-3 * time.Hour, -7 * time.Minute, 0, 0, 0, 7 * time.Minute, 3 * time.Hour}[step])
}

// simulatedSweep checks that a sweep settles nothing, whatever the clock of its host says.
type simulatedSweep struct {
	*store.Store
	s     *simulation
	clock time.Time
}

func (r simulatedSweep) ReportAlive(ctx context.Context, host string, _ time.Time) ([]store.Absence, error) {
	return r.Store.ReportAlive(ctx, host, r.clock)
}

func (r simulatedSweep) check(what string, settled bool, err error) (bool, error) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if settled {
		r.s.violate("a sweep at %s settled %s", r.s.env.Now(), what)
	}
	return settled, err
}

func (r simulatedSweep) SettleSession(
	ctx context.Context, sessionID string, report escalation.Report, endedAt time.Time,
) (bool, error) {
	settled, err := r.Store.SettleSession(ctx, sessionID, report, endedAt)
	return r.check("session "+sessionID+": "+report.Error, settled, err)
}

func (r simulatedSweep) ReleaseLock(ctx context.Context, lock store.ServiceLock) (bool, error) {
	released, err := r.Store.ReleaseLock(ctx, lock)
	return r.check("the lock on "+lock.Service+" of chain "+lock.ChainID, released, err)
}

func (r simulatedSweep) AbandonIncidents(ctx context.Context, chain store.ChainAtWork, reason string) (bool, error) {
	abandoned, err := r.Store.AbandonIncidents(ctx, chain, reason)
	return r.check("the incidents of chain "+chain.ChainID+": "+reason, abandoned, err)
}

// simulatedSchedule starts cycles.
type simulatedSchedule struct {
	Name          string
	Every, Offset time.Duration
	Input         workflows.ChainInput
}

// simulate runs schedules for some days. A cycle that is still running delays the next one, as with the overlap policy skip.
// No cycle may take longer than a repair and a wait for the day's budget can take. After the last look, Conclude runs. Chains that
// wait end later.
func (s *simulation) simulate(ctx workflow.Context, schedules []simulatedSchedule) error {
	const hangs = 12 * time.Hour
	begin := workflow.Now(ctx)
	running := workflow.NewWaitGroup(ctx)
	for _, schedule := range schedules {
		running.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer running.Done()
			for n := 0; ; n++ {
				next := begin.Add(schedule.Offset + time.Duration(n)*schedule.Every)
				if next.After(begin.Add(simulatedDays * 24 * time.Hour)) {
					return // the days are over
				}
				if next.Before(workflow.Now(ctx)) {
					continue // skipped
				}
				_ = workflow.Sleep(ctx, next.Sub(workflow.Now(ctx)))
				cycle := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
					WorkflowID: fmt.Sprintf("cycle-%s-%03d", schedule.Name, n), ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON,
				})
				_ = workflow.ExecuteChildWorkflow(cycle, workflows.Cycle, schedule.Input).Get(ctx, nil) // a failed cycle is over, too
				if took := workflow.Now(ctx).Sub(next); took > hangs {
					s.violate("cycle %s %d, which began at %s, took %s", schedule.Name, n, next, took)
				}
			}
		})
	}
	for _, namespace := range []string{"here", "there"} {
		workflow.Go(ctx, func(ctx workflow.Context) {
			for {
				ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
				_ = workflow.ExecuteActivity(ctx, "Sweep", namespace).Get(ctx, nil)
				_ = workflow.Sleep(ctx, simulatedSweeps)
			}
		})
	}
	running.Wait(ctx)
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	return workflow.ExecuteActivity(ctx, "Conclude").Get(ctx, nil)
}

// Conclude checks what must hold after the last look.
func (s *simulation) Conclude(ctx context.Context) error {
	s.turns.take(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checkIncidents()
	s.checkTold()
	s.checkSwept()
	return nil
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	t.Helper()
	records, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "records.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, records.Close()) })
	suite := new(testsuite.WorkflowTestSuite)
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	s := &simulation{
		t: t, seed: seed, env: newEnvironment(suite), begin: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), records: records,
		of: map[string]*store.Store{}, looks: map[string]simulatedSpan{}, turns: newTurns(), ended: map[string]bool{}, counts: map[string]int{},
		swept: map[string]time.Time{},
	}
	for _, id := range []string{"here", "there"} {
		s.of[id] = records.In(store.Namespace{ID: id, Name: "default"})
	}
	s.plan()
	s.policy = testPolicy()
	s.policy.Notify, s.policy.MaxParallelIssues = true, 2
	s.policy.Returns = escalation.Limit{Max: 3, Window: escalation.Duration(7 * 24 * time.Hour)}
	s.policy.Cooldowns = escalation.Cooldowns{
		Restarts: escalation.Limit{Max: 3, Window: escalation.Duration(4 * time.Hour)}, MaxWait: escalation.Duration(6 * time.Hour),
	}
	s.policy.EscalationLimit = escalation.Limit{Max: 8, Window: escalation.Duration(time.Hour)}
	s.policy.Gate = escalation.GatePolicy{OnTimeout: escalation.GateAbort, OnHealed: escalation.HealedClose}
	s.policy.Gate.Timeout = escalation.Duration([]time.Duration{0, 20 * time.Hour, 100 * time.Hour}[s.draw(3, "gates")])
	for tier, budget := range map[escalation.Tier]float64{1: 0.5, 2: 2.5, 3: 10} {
		s.policy.Tiers[tier-1].BudgetUSD = budget
	}
	s.policy.DayBudgetUSD = []float64{0, 0, 40}[s.draw(3, "day budget")]
	s.register()
	return s
}

// patience makes activities fail with the database's own error, which says when it is back. The test environment gives up after
// ten attempts, and Temporal never does. In between, the store's callers wrap the error.
type patience struct {
	interceptor.WorkerInterceptorBase
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (*patience) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &patientActivity{interceptor.ActivityInboundInterceptorBase{Next: next}}
}

type patientActivity struct {
	interceptor.ActivityInboundInterceptorBase
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (p *patientActivity) ExecuteActivity(ctx context.Context, input *interceptor.ExecuteActivityInput) (any, error) {
	result, err := p.Next.ExecuteActivity(ctx, input)
	if away, is := errors.AsType[*temporal.ApplicationError](err); is {
		return result, away
	}
	return result, err
}

func (s *simulation) register() {
	s.env.SetWorkerOptions(worker.Options{
		DeadlockDetectionTimeout: time.Minute, Interceptors: []interceptor.WorkerInterceptor{new(patience)},
	})
	s.env.SetStartTime(s.begin)
	s.env.RegisterWorkflow(s.simulate)
	s.env.RegisterWorkflow(workflows.Cycle)
	s.env.RegisterWorkflowWithOptions(workflows.EscalationChain, workflow.RegisterOptions{Name: workflows.ChainWorkflow})
	s.activities = &activities.Records{Store: simulatedRecords{s}}
	s.describeServices("")
	s.env.RegisterActivity(s.activities)
	s.env.RegisterActivity(&activities.Settings{})
	s.env.RegisterActivity(&activities.Tiers{})
	s.env.RegisterActivity(&activities.Notifications{})
	s.env.RegisterActivity(s.Sweep)
	s.env.RegisterActivity(s.Conclude)
	s.env.OnActivity("LoadPolicy", mock.Anything, mock.Anything).Return(
		func(ctx context.Context, input activities.LoadPolicyInput) (activities.LoadPolicyResult, error) {
			s.turns.take(ctx)
			return activities.LoadPolicyResult{Policy: s.policy, Services: s.catalog.CanonicalAll(input.Services)}, nil
		})
	s.env.OnActivity("RunTier", mock.Anything, mock.Anything).After(sessionTakes).Return(s.runTier)
	s.env.OnActivity("FindTranscript", mock.Anything, mock.Anything).Maybe().Return(activities.FindTranscriptResult{Reachable: true}, nil)
	s.env.OnActivity("Notify", mock.Anything, mock.Anything).Maybe().Return(s.notify)
}

// run runs the simulation and checks it. It returns the figures.
func (s *simulation) run() (figures string) {
	if s.renames != "" {
		s.env.RegisterDelayedCallback(func() { s.rename(s.renames) }, time.Duration(10+s.draw(45, "rename at"))*time.Hour+26*time.Minute)
	}
	stop := s.turns.give(s.draw)
	defer stop()
	defer time.Sleep(time.Minute) // until the last slow call has returned
	s.env.ExecuteWorkflow(s.simulate, []simulatedSchedule{
		{Name: "hourly", Every: time.Hour},
		{Name: "often", Every: 45 * time.Minute, Offset: 22 * time.Minute},
		{Name: "there", Every: 2 * time.Hour, Offset: 31 * time.Minute},
		{Name: "dry", Every: 7 * time.Hour, Offset: 50 * time.Minute, Input: workflows.ChainInput{DryRun: true}},
	})
	require.NoError(s.t, s.env.GetWorkflowError())
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("seed=%d faults=%d sessions=%d/%d/%d known=%d resolved=%d gates=%d told=%d answers=%d closed=%d renamed=%d sweeps=%d open_at_the_end=%d violations=%d",
		s.seed, len(s.faults), s.counts["tier 1"], s.counts["tier 2"], s.counts["tier 3"], s.counts["known"], s.counts["resolved"],
		s.counts["gates"], len(s.told), s.counts["answers"], s.counts["closes"],
		s.counts["renamed"], s.counts["sweeps"], s.counts["open"], len(s.violations))
}

// checkIncidents checks that what is open at the end is broken, what is broken is open, and what waits has a reason.
func (s *simulation) checkIncidents() {
	now := s.env.Now()
	recently := func(service string) bool {
		for ago := time.Duration(0); ago <= 2*time.Hour; ago += 5 * time.Minute {
			if s.broken(service, now.Add(-ago)) != nil {
				return true
			}
		}
		return false
	}
	incidents, err := s.records.Incidents(s.t.Context(), store.IncidentFilter{})
	require.NoError(s.t, err)
	var affected []string
	for _, incident := range incidents {
		services := firstNames(incident.Services)
		if !slices.ContainsFunc(services, recently) {
			s.violate("%s is open, and all its services are healthy", incident.Describe())
		}
		for _, chain := range incident.Chains {
			if chain.Status == escalation.ChainWaiting && chain.Reason == "" {
				s.violate("chain %s waits with %s without a reason", chain.ChainID, incident.ID)
			}
		}
		affected = append(affected, services...)
	}
	for _, fault := range s.faults {
		if s.broken(fault.service, now) == fault && now.Sub(fault.begins) > (quietHours-1)*time.Hour && !slices.Contains(affected, fault.service) {
			s.violate("%s is broken since %s, and no incident says so", fault.service, fault.begins)
		}
	}
	s.counts["open"] = len(incidents)
}

// checkSwept checks that no wrong clock keeps a namespace from sweeping.
func (s *simulation) checkSwept() {
	for _, namespace := range []string{"here", "there"} {
		if now := s.env.Now(); now.Sub(s.swept[namespace]) > time.Hour {
			s.violate("the latest sweep in the namespace %s was at %s, now it is %s", namespace, s.swept[namespace], now)
		}
	}
}

// checkTold checks that people were told of each fault that only a person can repair, and not over and over.
func (s *simulation) checkTold() {
	now, lasting := s.env.Now(), 0
	for _, fault := range s.faults {
		if fault.repairedBy != 0 || now.Sub(fault.begins) < 30*time.Hour || !fault.heals.IsZero() || !fault.repairedAt.IsZero() {
			continue
		}
		lasting++
		if !slices.ContainsFunc(s.told, func(n escalation.Notification) bool {
			return strings.Contains(n.Title+n.Text, fault.service) && n.Kind != escalation.NotifyResolved
		}) {
			s.violate("nobody was told of %s, which is broken since %s", fault.service, fault.begins)
		}
	}
	keys := map[string]bool{}
	for i := range s.told {
		if key := s.told[i].Key; keys[key] {
			s.violate("people got the notification %s twice", key)
		}
		keys[s.told[i].Key] = true
	}
	// Of each fault people hear when it begins, when it becomes worse, when its gate expires and when it is over. Answers, outages of the
	// looks and faults that flap lead to more.
	if most := 8 * (len(s.faults) + len(s.failing) + s.counts["answers"] + s.counts["closes"]); len(s.told) > most {
		s.violate("people got %d notifications of %d faults, at most %d were expected", len(s.told), len(s.faults), most)
	}
}

// runSimulations runs simulations, and prints the seed of each one that fails.
func runSimulations(t *testing.T, first uint64, count int) {
	t.Helper()
	if *simulationSeed != 0 {
		first, count = *simulationSeed, 1
	}
	for i := range count {
		seed := first + uint64(i)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSimulation(t, seed)
				t.Log("soak: simulation: " + s.run())
				require.Empty(t, s.violations, "run it again with: go test ./workflows -run TestSimulation -simulation %d\n%s",
					seed, strings.Join(s.violations, "\n"))
			})
		})
	}
}

// TestSimulation runs days of random faults with the real store, and checks what must always hold: no repair of a healthy
// service, never two agents at one service, each lasting fault is told, and what is open at the end is broken at the end.
func TestSimulation(t *testing.T) {
	t.Parallel()
	skipUnderRace(t)
	runSimulations(t, 1, 3)
}
