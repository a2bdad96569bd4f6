package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/workflows"
)

const (
	monthDays   = 30
	monthCycles = monthDays * 24
)

// monthly runs one cycle an hour, as a schedule does.
func monthly(ctx workflow.Context, cycles int) error {
	begin := workflow.Now(ctx)
	for hour := range cycles {
		cycle := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
			WorkflowID: fmt.Sprintf("cycle-%03d", hour), ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON,
		})
		err := workflow.ExecuteChildWorkflow(cycle, workflows.Cycle, workflows.ChainInput{}).Get(ctx, nil)
		failure, failed := errors.AsType[*temporal.ApplicationError](err)
		if err != nil && (!failed || failure.Type() != workflows.ErrorTypeChainFailed) {
			return err
		}
		if err := workflow.Sleep(ctx, begin.Add(time.Duration(hour+1)*time.Hour).Sub(workflow.Now(ctx))); err != nil {
			return err
		}
	}
	return nil
}

// monthFault is a fault of a service that begins at an hour of the month.
type monthFault struct {
	service  string
	begins   int
	severity escalation.Severity
	// repairedBy is the tier that repairs the fault; 0 if no tier can.
	repairedBy escalation.Tier
	// heals is the number of hours after which the fault heals without a repair. worsens is the number of hours after
	// which the fault becomes critical. 0 means never.
	heals, worsens int

	repaired bool
}

// month holds the state of the test: five services, their faults, and the notifications to people.
type month struct {
	mu     sync.Mutex
	env    *testsuite.TestWorkflowEnvironment
	policy escalation.Policy
	begin  time.Time
	faults []*monthFault
	// silent makes the agents omit known incidents and kinds from their verdicts.
	silent bool
	// unrepaired is the status of Tier 3's verdict about a fault that no tier can repair.
	unrepaired escalation.VerdictStatus
	// fails returns how a look at this hour ends without a verdict; "" if it has one. The field can be nil.
	fails func(hour int) escalation.SessionStatus
	// services maps a chain to the services on which the chain works.
	services map[string][]string
	ran      map[escalation.Tier]int
	climbs   map[string]map[string]bool // the chains with a repair, by service
	told     []escalation.Notification
	prompts  []activities.RunTierInput
}

func (m *month) hour() int { return int(m.env.Now().Sub(m.begin) / time.Hour) }

// broken returns the current fault of a service. If the service is healthy, it returns nil.
func (m *month) broken(service string) *monthFault {
	for _, fault := range m.faults {
		age := m.hour() - fault.begins
		if fault.service == service && age >= 0 && !fault.repaired && (fault.heals == 0 || age < fault.heals) {
			return fault
		}
	}
	return nil
}

func (m *month) worse(fault *monthFault) bool {
	return fault.worsens > 0 && m.hour() >= fault.begins+fault.worsens
}

func monthServices() []string { return []string{"db", "dns", "files", "mail", "web"} }

func (m *month) runTier(_ context.Context, input activities.RunTierInput) (activities.RunTierResult, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ran[input.Tier]++
	m.prompts = append(m.prompts, input)
	report := escalation.Report{
		Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: []float64{0.02, 0.40, 2.00}[input.Tier-1]}, ReportedSessionID: input.SessionID,
		ContextTokens: 10_000, ContextWindow: 200_000, Turns: 3, Attempts: 1,
	}
	switch {
	case input.Tier == escalation.TierObserve && m.fails != nil && m.fails(m.hour()) != "":
		report.Status, report.Error = m.fails(m.hour()), "the provider is away"
	case input.Tier == escalation.TierObserve:
		report.Verdict = m.look(input)
	default:
		report.Verdict = m.repair(input)
	}
	return activities.RunTierResult{Report: report, EndedAt: m.env.Now()}, nil
}

// look is Tier 1. It finds what is broken.
func (m *month) look(input activities.RunTierInput) *escalation.Verdict {
	verdict := &escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all is well"}
	services := input.Services
	if len(services) == 0 {
		services = monthServices()
	}
	for _, service := range services {
		fault := m.broken(service)
		check := escalation.CheckResult{Service: service, CheckType: "http", Status: escalation.CheckHealthy}
		if fault != nil {
			check.Status = escalation.CheckDegraded
			if m.worse(fault) {
				check.Status = escalation.CheckDown
			}
			issue := escalation.Issue{Summary: service + " is broken", Services: []string{service}, Severity: fault.severity}
			if !m.silent {
				issue.Kind = "down"
			}
			if m.worse(fault) {
				issue.Severity = escalation.SeverityCritical
			}
			verdict.Issues, verdict.Services = append(verdict.Issues, issue), append(verdict.Services, service)
		}
		verdict.Checks = append(verdict.Checks, check)
	}
	if len(verdict.Issues) > 0 {
		verdict.Status, verdict.Summary = escalation.VerdictEscalate, verdict.Issues[0].Summary
	}
	if len(verdict.Issues) == 1 {
		verdict.Kind, verdict.Issues = verdict.Issues[0].Kind, nil
	}
	for _, incident := range input.Incidents {
		if m.silent {
			break
		}
		known := escalation.KnownIncident{ID: incident.ID, Status: escalation.IncidentGone}
		if fault := m.broken(incident.Services[0]); fault != nil {
			known.Status = escalation.IncidentUnchanged
			if m.worse(fault) && incident.WorseAt.IsZero() {
				known.Status, known.Note = escalation.IncidentWorse, "it does not answer at all now"
			}
		}
		verdict.Known = append(verdict.Known, known)
	}
	if len(verdict.Services) > 0 {
		m.services[input.ChainID] = verdict.Services
	}
	return verdict
}

// repair plays an agent of Tier 2 or 3. With a person's guidance it repairs every fault.
func (m *month) repair(input activities.RunTierInput) *escalation.Verdict {
	services := m.services[input.ChainID]
	if len(input.Services) > 0 {
		services = input.Services
	}
	verdict := &escalation.Verdict{
		Status: escalation.VerdictResolved, Summary: "repaired", Services: services, Remediation: fmt.Sprintf("%s did what it could", input.Tier),
	}
	for _, service := range services {
		left := slices.ContainsFunc(input.Leave, func(i escalation.ChainIncident) bool { return slices.Contains(i.Services, service) })
		fault := m.broken(service)
		if fault == nil || left {
			continue
		}
		if m.climbs[service] == nil {
			m.climbs[service] = map[string]bool{}
		}
		m.climbs[service][input.ChainID] = true
		switch {
		case input.Guidance != "" || fault.repairedBy != 0 && input.Tier >= fault.repairedBy:
			fault.repaired = true
		case input.Tier == escalation.TierFullRepair:
			verdict.Status, verdict.Summary = m.unrepaired, "no agent can repair it"
		default:
			verdict.Status = escalation.VerdictEscalate
		}
	}
	return verdict
}

// answer sends a person's answer to the latest gate of a service: fix, with guidance.
func (m *month) answer(t *testing.T, service string) {
	m.mu.Lock()
	var chainID string
	for _, told := range m.told {
		if strings.Contains(told.Title, "("+service+")") {
			chainID = told.ChainID
		}
	}
	m.mu.Unlock()
	require.NotEmpty(t, chainID, "nobody was told about %s", service)
	require.NoError(t, m.env.SignalWorkflowByID(chainID, workflows.ResolveGate, escalation.GateAnswer{
		GateID: "gate-1", Action: escalation.GateFix, Guidance: "do this", Actor: "ada",
	}))
}

func (m *month) notify(_ context.Context, input activities.NotifyInput) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, input.Notification)
	return nil
}

func newMonth(t *testing.T, silent bool) (*month, *store.Store) {
	t.Helper()
	records, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "records.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, records.Close()) })
	suite := new(testsuite.WorkflowTestSuite)
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))) // the log of 720 chains is long
	m := &month{
		env: newEnvironment(suite), begin: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), silent: silent,
		unrepaired: escalation.VerdictNeedsHuman, services: map[string][]string{}, ran: map[escalation.Tier]int{}, climbs: map[string]map[string]bool{},
		faults: []*monthFault{
			{service: "web", begins: 34, severity: escalation.SeverityCritical},                   // nobody answers for three days
			{service: "mail", begins: 339, severity: escalation.SeverityWarning, heals: 5},        // heals by itself
			{service: "dns", begins: 408, severity: escalation.SeverityWarning, worsens: 10},      // gets worse
			{service: "files", begins: 505, severity: escalation.SeverityCritical, repairedBy: 2}, // is repaired at once
			{service: "mail", begins: 601, severity: escalation.SeverityWarning, repairedBy: 3},   // two at once
			{service: "dns", begins: 601, severity: escalation.SeverityWarning, repairedBy: 2},    //
		},
	}
	for flap := range 5 { // comes back until a person has it repaired for good
		m.faults = append(m.faults, &monthFault{service: "db", begins: 150 + 6*flap, severity: escalation.SeverityWarning, repairedBy: 2})
	}
	m.env.SetStartTime(m.begin)
	policy := testPolicy()
	policy.Notify, policy.MaxParallelIssues = true, 3
	policy.Returns = escalation.Limit{Max: 3, Window: escalation.Duration(7 * 24 * time.Hour)}
	policy.Gate = escalation.GatePolicy{
		Timeout: escalation.Duration(72 * time.Hour), OnTimeout: escalation.GateAbort, OnHealed: escalation.HealedClose,
	}
	m.policy = policy
	m.env.RegisterWorkflow(monthly)
	m.env.RegisterWorkflow(workflows.Cycle)
	m.env.RegisterWorkflowWithOptions(workflows.EscalationChain, workflow.RegisterOptions{Name: workflows.ChainWorkflow})
	m.env.RegisterActivity(&activities.Records{Store: records, IsUnknown: func(err error) bool { return errors.Is(err, store.ErrNotFound) }})
	m.env.RegisterActivity(&activities.Settings{})
	m.env.RegisterActivity(&activities.Tiers{})
	m.env.RegisterActivity(&activities.Notifications{})
	m.env.OnActivity("LoadPolicy", mock.Anything, mock.Anything).Return(
		func(_ context.Context, input activities.LoadPolicyInput) (activities.LoadPolicyResult, error) {
			return activities.LoadPolicyResult{Policy: m.policy, Services: input.Services}, nil
		})
	m.env.OnActivity("RunTier", mock.Anything, mock.Anything).After(5 * time.Minute).Return(m.runTier)
	m.env.OnActivity("FindTranscript", mock.Anything, mock.Anything).Maybe().Return(activities.FindTranscriptResult{Reachable: true}, nil)
	m.env.OnActivity("Notify", mock.Anything, mock.Anything).Return(m.notify)
	return m, records
}

// skipUnderRace skips a test that simulates one workflow after another, because the race detector slows it down
// tenfold. Shorter tests cover the same concurrency. The make target race runs the skipped tests without the detector.
func skipUnderRace(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("a long simulation: not under the race detector")
	}
}

// TestMonth runs hourly cycles over five services for 30 days, with the real store.
func TestMonth(t *testing.T) {
	t.Parallel()
	skipUnderRace(t)
	for name, silent := range map[string]bool{"agents that use the new fields": false, "agents that do not": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, records := newMonth(t, silent)
			for hour, service := range map[int]string{34 + 71: "web", 180: "db", 440: "dns"} {
				m.env.RegisterDelayedCallback(func() { m.answer(t, service) }, time.Duration(hour)*time.Hour+30*time.Minute)
			}
			m.env.ExecuteWorkflow(monthly, monthCycles)
			require.NoError(t, m.env.GetWorkflowError())
			m.check(t, records)
		})
	}
}

// outcomeOf returns the outcome in the event of a chain's end.
func outcomeOf(event escalation.Event) escalation.Outcome {
	_, said, _ := strings.Cut(event.Message, ": ")
	for _, outcome := range escalation.Outcomes() {
		if said == escalation.InWords(outcome) {
			return outcome
		}
	}
	return escalation.Outcome(said)
}

func (m *month) check(t *testing.T, records *store.Store) {
	t.Helper()
	ctx := t.Context()
	gates, outcomes := map[string]int{}, map[escalation.Outcome]int{}
	var dollars float64
	for hour := range monthCycles {
		chainID := fmt.Sprintf("chain-%03d", hour)
		for _, id := range []string{chainID, chainID + "-issue-1", chainID + "-issue-2"} {
			events, err := records.Events(ctx, id)
			require.NoError(t, err)
			for _, event := range events {
				if event.Kind == escalation.EventGateOpened {
					gates[strings.Join(m.services[id], ",")]++
				}
				if event.Kind == escalation.EventChainEnded {
					outcomes[outcomeOf(event)]++
				}
			}
			sessions, err := records.Chain(ctx, id)
			require.NoError(t, err)
			dollars += escalation.TotalCostUSD(sessions)
		}
	}
	told := map[escalation.NotificationKind]int{}
	for _, notification := range m.told {
		told[notification.Kind]++
	}
	t.Logf("%d cycles: %d/%d/%d sessions of tier 1/2/3, gates %v, notifications %v, outcomes %v, $%.2f",
		monthCycles, m.ran[1], m.ran[2], m.ran[3], gates, told, outcomes, dollars)

	// Each fault caused one gate and one repair, and each cycle one look. The chain of the fault that healed looked
	// once more.
	require.Equal(t, map[string]int{"web": 1, "db": 1, "mail": 1, "dns": 1}, gates)
	climbs := map[string]int{}
	for service, chains := range m.climbs {
		climbs[service] = len(chains)
	}
	require.Equal(t, map[string]int{"web": 1, "db": 5, "mail": 2, "dns": 2, "files": 1}, climbs, "chains that repaired, of 1, 5, 2, 2 and 1 faults")
	require.Equal(t, monthCycles+1, m.ran[escalation.TierObserve])
	require.Equal(t, 1, told[escalation.NotifyWorse])
	require.Equal(t, 4, told[escalation.NotifyNeedsHuman])
	require.Positive(t, outcomes[escalation.OutcomeKnown])
	m.checkReturns(t)

	incidents, err := records.Incidents(ctx, store.IncidentFilter{Since: m.begin})
	require.NoError(t, err)
	for _, incident := range incidents {
		require.Equal(t, escalation.IncidentResolved, incident.State, incident.Describe())
		t.Logf("%s: opened %s, %s, returned %d (%d after repairs), $%.2f", incident.Describe(), incident.OpenedAt.Format(time.DateTime),
			incident.Resolution, incident.Returned, len(incident.Returns), incident.CostUSD)
	}
}

// checkReturns checks the repairs of the fault that came back. Tier 2 repaired three times, then Tier 3 at once, then
// Tier 2 with a person's guidance. Each prompt described the earlier repairs.
func (m *month) checkReturns(t *testing.T) {
	t.Helper()
	var tiers []escalation.Tier
	for _, input := range m.prompts {
		if input.Tier == escalation.TierObserve || len(input.Incidents) != 1 || input.Incidents[0].Services[0] != "db" {
			continue
		}
		require.Len(t, input.Repairs, len(tiers), "what was tried before")
		tiers = append(tiers, input.Tier)
	}
	require.Equal(t, []escalation.Tier{2, 2, 2, 3, 2}, tiers)
}
