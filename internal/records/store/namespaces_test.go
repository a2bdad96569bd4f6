package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// here and there are namespaces of the same name in two clusters.
var (
	here  = store.Namespace{ID: "0b1f2f0a-6a0e-4a57-9f39-1f0a3f6f2c11", Name: "default"}
	there = store.Namespace{ID: "b7d0c5c2-92a4-4c0e-8a26-5e0d7f1f9a42", Name: "default"}
)

// testNamespaces records a chain of the same ID in two namespaces.
func testNamespaces(t *testing.T, database backend) {
	readers := database(t)()
	own, other := readers.In(here), readers.In(there)
	own1 := mustOpen(t, own, opening("nightly", "own 1", 0))
	other1 := mustOpen(t, other, opening("nightly", "other 1", 0))
	own2 := mustOpen(t, own, opening("nightly", "own 2", own1.ID))
	require.Equal(t, []int{1, 1, 2}, []int{own1.Sequence, other1.Sequence, own2.Sequence})
	require.Equal(t, []string{here.ID, there.ID}, []string{own1.NamespaceID, other1.NamespaceID})
	require.Equal(t, "default", own1.Namespace)
	require.NoError(t, own.AppendEvents(bounded(t), []escalation.Event{event("nightly", "own")}))
	require.NoError(t, other.AppendEvents(bounded(t), []escalation.Event{event("nightly", "other")}))
	require.NoError(t, readers.AppendDecisions(bounded(t), []escalation.CallDecision{
		decision("nightly", "own 2", "1"), decision("nightly", "other 1", "2"), decision("nightly", "own 1", "3"),
	}), "the store knows in which namespace a session is")

	for _, tt := range []struct {
		records  *store.Store
		sessions []escalation.Session
		events   []string
		calls    []string
	}{
		{own, []escalation.Session{own1, own2}, []string{"own"}, []string{"1", "3"}},
		{other, []escalation.Session{other1}, []string{"other"}, []string{"2"}},
		{readers, []escalation.Session{own1, own2, other1}, []string{"own", "other"}, []string{"1", "2", "3"}},
	} {
		sessions, err := tt.records.Chain(bounded(t), "nightly")
		require.NoError(t, err)
		require.Equal(t, tt.sessions, sessions)
		events, err := tt.records.Events(bounded(t), "nightly")
		require.NoError(t, err)
		require.Len(t, events, len(tt.events))
		for i, key := range tt.events {
			require.Equal(t, key, events[i].Key)
		}
		calls := decisions(t, tt.records, "nightly")
		require.Len(t, calls, len(tt.calls))
		for i, call := range tt.calls {
			require.Equal(t, call, calls[i].Call)
		}
	}
	running, err := own.Running(bounded(t))
	require.NoError(t, err)
	require.Len(t, running, 3, "of all namespaces")
}

// testNamespacesLock lets a chain repair a service. A chain with the same ID in another namespace must wait for the
// service.
func testNamespacesLock(t *testing.T, database backend) {
	readers := database(t)()
	own, other := readers.In(here), readers.In(there)
	policy := lenient()
	policy.Cooldowns.MaxWait = escalation.Duration(time.Hour)
	require.Nil(t, admit(t, own, repair("nightly", "own 1", noon), about("web"), policy).Refusal)
	held := lock("web", "nightly", noon)
	held.Namespace, held.NamespaceID = here.Name, here.ID

	refusal := admit(t, other, repair("nightly", "other 1", noon), about("web"), policy).Refusal
	require.NotNil(t, refusal)
	require.Equal(t, escalation.RuleServiceBusy, refusal.Rule)
	require.Contains(t, refusal.Reason, "chain nightly of another Temporal namespace (default) is at it")
	review := about("web")
	review.ChainID, review.Tier, review.At = "nightly", escalation.TierSafeRepair, noon
	for s, want := range map[*store.Store]bool{own: true, other: false} {
		admission, err := s.Review(bounded(t), review, policy)
		require.NoError(t, err)
		require.Equal(t, want, admission.Granted)
	}
	require.NoError(t, other.ReleaseServices(bounded(t), "nightly"))
	namesake := held
	namesake.NamespaceID = there.ID
	released, err := other.ReleaseLock(bounded(t), namesake)
	require.NoError(t, err)
	require.False(t, released)
	require.Equal(t, []store.ServiceLock{held}, locks(t, readers))

	// If a session may have acted, each service that the session itself has locked counts as restarted.
	require.Nil(t, admit(t, other, repair("nightly", "other 2", noon), about("db"), policy).Refusal)
	timedOut := escalation.Report{Status: escalation.SessionTimedOut, Attempts: 1, ContextTokens: 1_000, Cost: escalation.Cost{CostUSD: 0.1}}
	mustClose(t, other, "other 2", timedOut, noon.Add(time.Minute))
	entries, err := readers.Ledger(bounded(t), noon)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, "db", entries[0].Service)

	held.Since = noon.Add(time.Minute)
	require.Nil(t, admit(t, own, repair("nightly", "own 2", held.Since), about("web"), policy).Refusal)
	require.Contains(t, locks(t, readers), held, "the chain takes its own lock again")
	require.NotNil(t, admit(t, own, repair("nightly", "own 3", held.Since), about("db"), policy).Refusal)
	require.NoError(t, own.ReleaseServices(bounded(t), "nightly"))
	left := locks(t, readers)
	require.Len(t, left, 1)
	require.Equal(t, there.ID, left[0].NamespaceID)

	taken := lock("web", "nightly", noon.Add(2*time.Minute))
	taken.Namespace, taken.NamespaceID = there.Name, there.ID
	require.Nil(t, admit(t, other, repair("nightly", "other 3", taken.Since), about("web"), policy).Refusal)
	admit(t, own, repair("nightly", "own 2", held.Since), about("web"), policy)
	require.Contains(t, locks(t, readers), taken, "a repeated opening takes nothing away")
}

// testNamespacesShareLimits checks that sessions of one namespace count for the admission in another.
func testNamespacesShareLimits(t *testing.T, database backend) {
	readers := database(t)()
	own, other := readers.In(here), readers.In(there)
	review := func(at time.Time, change func(*escalation.Policy)) escalation.Rule {
		t.Helper()
		policy := lenient()
		change(&policy)
		request := about("web")
		request.ChainID, request.Tier, request.At = "weekly", escalation.TierSafeRepair, at
		admission, err := other.Review(bounded(t), request, policy)
		require.NoError(t, err)
		return admission.Rule
	}
	dayBudget := func(policy *escalation.Policy) { policy.DayBudgetUSD = 0.5 }
	limits := strict()
	require.Nil(t, admit(t, own, repair("nightly", "own 1", noon), about("web"), limits).Refusal)
	mustClose(t, own, "own 1", did("web", limits.Cooldowns.Restarts.Max), noon.Add(time.Minute))
	require.NoError(t, own.ReleaseServices(bounded(t), "nightly"))

	at := noon.Add(2 * time.Minute)
	require.Equal(t, escalation.RuleDayBudget, review(at, dayBudget))
	require.Equal(t, escalation.RuleCooldown, review(at, func(policy *escalation.Policy) { policy.Cooldowns = limits.Cooldowns }))
	require.Equal(t, escalation.RuleEscalationLimit, review(at, func(policy *escalation.Policy) {
		policy.EscalationLimit = escalation.Limit{Max: 1, Window: limits.EscalationLimit.Window}
	}))
	require.Equal(t, escalation.RuleAdmitted, review(at, func(*escalation.Policy) {}))
}

// testNamespacesNotify delivers a notification whose key another namespace has used.
func testNamespacesNotify(t *testing.T, database backend) {
	readers := database(t)()
	own, other := readers.In(here), readers.In(there)
	require.NoError(t, own.RecordDelivery(bounded(t), "schedule/hourly/1/0", "ntfy-1", noon))
	for s, want := range map[*store.Store][]string{own: {"ntfy-1"}, other: {}} {
		delivered, err := s.Delivered(bounded(t), "schedule/hourly/1/0")
		require.NoError(t, err)
		require.Equal(t, want, delivered)
	}
}

// testNamespacesSeen checks that the absence of a namespace is counted in the sweeps of another one, whatever the workers'
// clocks say.
func testNamespacesSeen(t *testing.T, database backend) {
	readers := database(t)()
	report := func(namespace store.Namespace, at time.Time) []store.Absence {
		t.Helper()
		absences, err := readers.In(namespace).ReportAlive(bounded(t), "host of "+namespace.ID, at)
		require.NoError(t, err)
		return absences
	}
	require.Empty(t, report(there, noon))
	for sweeps := 1; sweeps <= 3; sweeps++ {
		at := noon.Add(time.Duration(sweeps*sweeps-5) * time.Hour) // a clock that jumps
		require.Equal(t, []store.Absence{{NamespaceID: there.ID, Host: "host of " + there.ID, Sweeps: sweeps}}, report(here, at))
	}
	require.Equal(t, []store.Absence{{NamespaceID: here.ID, Host: "host of " + here.ID, Sweeps: 1}}, report(there, noon.Add(-time.Hour)))
	require.Equal(t, []store.Absence{{NamespaceID: there.ID, Host: "host of " + there.ID, Sweeps: 1}}, report(here, noon.Add(24*time.Hour)), "it has reported since")
}
