package store_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// strict is a policy with every limit set.
func strict() escalation.Policy {
	within := func(times int, span time.Duration) escalation.Limit {
		return escalation.Limit{Max: times, Window: escalation.Duration(span)}
	}
	return escalation.Policy{
		Tiers:        []escalation.TierPolicy{{BudgetUSD: 1}, {BudgetUSD: 4}, {BudgetUSD: 10}},
		DayBudgetUSD: 10,
		Cooldowns: escalation.Cooldowns{
			Restarts:      within(2, 4*time.Hour),
			Redeployments: within(1, 24*time.Hour),
			MaxWait:       escalation.Duration(6 * time.Hour),
		},
		EscalationLimit: within(2, time.Hour),
	}
}

// repair returns a session of tier 2 that a chain opens at the given time.
func repair(chainID, sessionID string, at time.Time) escalation.Session {
	session := opening(chainID, sessionID, 0)
	session.Tier, session.StartedAt = escalation.TierSafeRepair, at
	return session
}

func about(services ...string) escalation.AdmissionRequest {
	return escalation.AdmissionRequest{Services: services}
}

// did returns a report with the given number of restarts of a service.
func did(service string, restarts int) escalation.Report {
	report := completed(0.5)
	for range restarts {
		report.Verdict.Actions = append(report.Verdict.Actions,
			escalation.Action{Kind: escalation.ActionRestart, Service: service, Succeeded: true})
	}
	return report
}

func admit(
	t testing.TB, s *store.Store, session escalation.Session, request escalation.AdmissionRequest, policy escalation.Policy,
) escalation.AdmissionResult {
	t.Helper()
	opened, err := s.OpenSession(bounded(t), session, request, policy)
	require.NoError(t, err)
	return opened
}

func mustClose(t testing.TB, s *store.Store, sessionID string, report escalation.Report, at time.Time) {
	t.Helper()
	require.NoError(t, s.CloseSession(bounded(t), sessionID, report, at))
}

func lock(service, chainID string, since time.Time) store.ServiceLock {
	return store.ServiceLock{Service: service, ChainID: chainID, Since: since}
}

func locks(t testing.TB, s *store.Store) []store.ServiceLock {
	t.Helper()
	locks, err := s.ServiceLocks(bounded(t))
	require.NoError(t, err)
	return locks
}

func testAdmitted(t *testing.T, database backend) {
	open := database(t)
	s := open()
	ignored := repair("chain", "session", noon)
	ignored.BudgetUSD, ignored.Forced, ignored.DryRun = 99, true, true
	request := about("web", "db")
	request.ChainID, request.Tier, request.At = "another", 3, noon.Add(-99*time.Hour) // replaced by the session's values

	opened := admit(t, s, ignored, request, strict())
	require.Nil(t, opened.Refusal)
	require.InDelta(t, 4, opened.Session.BudgetUSD, 0)
	require.False(t, opened.Session.Forced)
	require.False(t, opened.Session.DryRun)
	require.Len(t, opened.Services, 2)
	want := []store.ServiceLock{lock("db", "chain", noon), lock("web", "chain", noon)}
	require.Equal(t, want, locks(t, s))

	// Open the session again on another Store, like a retry on another host. By now the policy would grant nothing.
	never := strict()
	never.DayBudgetUSD, never.EscalationLimit.Max = 0.01, 0
	require.Equal(t, opened, admit(t, open(), repair("chain", "session", noon), about("web", "db"), never))
	require.Equal(t, want, locks(t, s))
}

func testRefused(t *testing.T, database backend) {
	s := database(t)()
	policy := strict()
	policy.DayBudgetUSD = 0
	admit(t, s, repair("first", "a", noon), about("web"), policy)

	opened := admit(t, s, repair("second", "b", noon.Add(time.Minute)), about("db", "web"), policy)
	require.Equal(t, escalation.RuleServiceBusy, opened.Refusal.Rule)
	require.Contains(t, opened.Refusal.Reason, "web now: chain first is at it")
	require.Equal(t, noon.Add(2*time.Minute), opened.Refusal.WaitUntil)
	require.Zero(t, opened.Session)
	require.Len(t, opened.Services, 2)
	_, err := s.BySessionID(bounded(t), "b")
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Equal(t, []store.ServiceLock{lock("web", "first", noon)}, locks(t, s), "not even db, which was free")

	require.NoError(t, s.ReleaseServices(bounded(t), "first"))
	require.Nil(t, admit(t, s, repair("second", "b", noon.Add(2*time.Minute)), about("db", "web"), policy).Refusal)
}

func testOpenRefusesRequests(t *testing.T, database backend) {
	s := database(t)()
	for message, change := range map[string]func(*escalation.Policy, *escalation.AdmissionRequest){
		"the policy has no tier 2": func(p *escalation.Policy, _ *escalation.AdmissionRequest) { p.Tiers = p.Tiers[:1] },
		"NaN":                      func(_ *escalation.Policy, r *escalation.AdmissionRequest) { r.ChainSpentUSD = math.NaN() },
	} {
		policy, request := strict(), about("web")
		change(&policy, &request)
		_, err := s.OpenSession(bounded(t), repair("chain", "session", noon), request, policy)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, message)
		request.Tier, request.At = 2, noon
		_, err = s.Review(bounded(t), request, policy)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, message)
	}
	_, err := s.Review(bounded(t), escalation.AdmissionRequest{Tier: 2}, strict())
	require.ErrorContains(t, err, "it has no time")
	require.Empty(t, locks(t, s))
}

// testDaySpent checks the remainder of the day's budget after each change.
func testDaySpent(t *testing.T, database backend) {
	s := database(t)()
	policy := strict()
	rest := func(at time.Time) float64 {
		policy.Tiers[0].BudgetUSD = 0
		admission, err := s.Review(bounded(t), escalation.AdmissionRequest{Tier: 1, At: at}, policy)
		require.NoError(t, err)
		return 4 * admission.BudgetUSD // a session without a cap gets a quarter of what is left
	}
	midnight := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	elsewhere := time.FixedZone("far east", 12*3600)
	require.InDelta(t, 10, rest(noon), 1e-9)

	admit(t, s, repair("chain", "a", noon), about(), policy)
	require.InDelta(t, 6, rest(noon), 1e-9, "reserved")
	admit(t, s, repair("chain", "late", midnight.Add(-time.Millisecond)), about(), policy)
	require.InDelta(t, 2, rest(midnight.Add(-time.Hour).In(elsewhere)), 1e-9, "the day is that of UTC")
	admit(t, s, repair("chain", "tomorrow", midnight), about(), policy)
	require.InDelta(t, 2, rest(noon), 1e-9, "another day")
	require.InDelta(t, 6, rest(midnight), 1e-9)

	mustClose(t, s, "a", completed(0.5), noon.Add(20*time.Hour))
	require.InDelta(t, 5.5, rest(noon), 1e-9, "paid, whenever it ended")
	mustClose(t, s, "a", completed(1.25), noon)
	mustClose(t, s, "a", completed(0.25), noon)
	mustClose(t, s, "a", completed(0.5), noon)
	require.InDelta(t, 4, rest(noon), 1e-9, "what was replaced was paid, too: 0.5 + 1.25 + 0.25, and 4 reserved")
	mustClose(t, s, "late", completed(8.5), noon)
	require.Zero(t, rest(noon), "overspent")
	require.InDelta(t, 6, rest(midnight), 1e-9)

	unknown := escalation.Report{Status: escalation.SessionFailed, Cost: escalation.Cost{CostEstimated: true}}
	_, err := s.SettleSession(bounded(t), "tomorrow", unknown, midnight)
	require.NoError(t, err)
	require.InDelta(t, 6, rest(midnight), 1e-9, "what nobody knows of may have cost all that was reserved")
	estimated := unknown
	estimated.CostUSD, estimated.Attempts = 0.75, 1
	mustClose(t, s, "tomorrow", estimated, midnight)
	require.InDelta(t, 9.25, rest(midnight), 1e-9, "an estimate takes its place")
}

func testEscalationsPerWindow(t *testing.T, database backend) {
	s := database(t)()
	policy := strict()
	policy.DayBudgetUSD = 0
	rule := func(chainID string, at time.Time) escalation.Rule {
		admission, err := s.Review(bounded(t), escalation.AdmissionRequest{
			ChainID: chainID, Tier: 2, At: at, Services: []string{"service of " + chainID},
		}, policy)
		require.NoError(t, err)
		return admission.Rule
	}
	admit(t, s, repair("one", "one/1", noon), about("web"), policy)
	admit(t, s, repair("one", "one/2", noon.Add(time.Minute)), about("web"), policy)
	looking := opening("looking", "looking", 0)
	admit(t, s, looking, about(), policy)
	writing := repair("writing", "writing", noon)
	writing.Purpose = escalation.PurposeHandoff
	admit(t, s, writing, about(), policy)
	dry := policy
	dry.DryRun = true
	require.True(t, admit(t, s, repair("rehearsing", "rehearsing", noon), about(), dry).Session.DryRun)
	require.Equal(t, escalation.RuleAdmitted, rule("three", noon), "only one has repaired, however often")

	admit(t, s, repair("two", "two/1", noon.Add(30*time.Minute)), about("db"), policy)
	require.Equal(t, escalation.RuleEscalationLimit, rule("three", noon.Add(40*time.Minute)))
	require.Equal(t, escalation.RuleEscalationLimit, rule("three", noon), "also by a clock that is behind")
	require.Equal(t, escalation.RuleEscalationLimit, rule("rehearsing", noon.Add(40*time.Minute)), "it has not repaired either")
	require.Equal(t, escalation.RuleAdmitted, rule("one", noon.Add(40*time.Minute)), "it counts already")
	again, err := s.Review(bounded(t), escalation.AdmissionRequest{
		ChainID: "one", FirstRunID: "a later run", Tier: 2, At: noon.Add(40 * time.Minute), Services: []string{"web"},
	}, policy)
	require.NoError(t, err)
	require.Equal(t, escalation.RuleEscalationLimit, again.Rule, "it uses the workflow ID again, and is another chain")
	require.Equal(t, escalation.RuleEscalationLimit, rule("three", noon.Add(61*time.Minute-time.Millisecond)))
	require.Equal(t, escalation.RuleAdmitted, rule("three", noon.Add(61*time.Minute)))
}

// testSpendingOfAResetChain covers a chain that was reset and so has lost all knowledge of its first session.
func testSpendingOfAResetChain(t *testing.T, database backend) {
	s := database(t)()
	policy := strict()
	policy.ChainBudgetUSD, policy.DayBudgetUSD = 4, 0
	first := repair("chain", "discarded", noon)
	first.FirstRunID = "run-1"
	admit(t, s, first, about("web"), policy)
	mustClose(t, s, first.SessionID, completed(3.5), noon.Add(time.Minute))

	again := repair("chain", "again", noon.Add(time.Hour))
	again.FirstRunID = "run-1"
	require.InDelta(t, 0.5, admit(t, s, again, about("web"), policy).Session.BudgetUSD, 1e-9, "what is left of the chain's budget")
	third := repair("chain", "third", noon.Add(90*time.Minute))
	third.FirstRunID = "run-1"
	require.InDelta(t, 0.5, admit(t, s, third, about("web"), policy).Session.BudgetUSD, 1e-9, "a discarded session that is open reserves nothing")
	other := repair("chain", "another", noon.Add(2*time.Hour))
	other.FirstRunID = "run-2"
	require.InDelta(t, 4, admit(t, s, other, about("db"), policy).Session.BudgetUSD, 1e-9, "another chain with the same workflow ID")
}

// testPresumedActions covers sessions that end without a verdict. Each counts as one restart of every service that it
// had to repair.
func testPresumedActions(t *testing.T, database backend) {
	s := database(t)()
	policy := strict() // two restarts in four hours
	policy.EscalationLimit, policy.DayBudgetUSD = escalation.Limit{}, 0
	timedOut := escalation.Report{Status: escalation.SessionTimedOut, Attempts: 1, ContextTokens: 1_000, Cost: escalation.Cost{CostUSD: 0.1}}
	run := func(chainID string, at time.Time, report escalation.Report) {
		t.Helper()
		require.Nil(t, admit(t, s, repair(chainID, chainID, at), about("web"), policy).Refusal)
		mustClose(t, s, chainID, report, at.Add(time.Minute))
		require.NoError(t, s.ReleaseServices(bounded(t), chainID))
	}
	used := func(at time.Time) int {
		t.Helper()
		look := opening(at.String(), at.String(), 0)
		look.StartedAt = at
		opened := admit(t, s, look, about("web"), policy)
		return opened.Services[0].Restarts.Used
	}
	run("never began", noon, escalation.Report{Status: escalation.SessionStopped})
	require.Zero(t, used(noon.Add(2*time.Minute)))
	run("no answer", noon.Add(5*time.Minute), escalation.Report{Status: escalation.SessionFailed, Attempts: 10})
	require.Zero(t, used(noon.Add(7*time.Minute)))
	run("refused", noon.Add(8*time.Minute), escalation.Report{ // the CLI counts a refused call as a turn
		Status: escalation.SessionResumeFailed, Ending: escalation.EndingUnusable, Attempts: 1, Turns: 1, ContextWindow: 200_000,
	})
	require.Zero(t, used(noon.Add(9*time.Minute+30*time.Second)))
	run("timed out", noon.Add(10*time.Minute), timedOut)
	require.Equal(t, 1, used(noon.Add(12*time.Minute)))
	run("terminated", noon.Add(15*time.Minute), escalation.Report{
		Status: escalation.SessionFailed, Cost: escalation.Cost{CostUSD: 0.2, CostEstimated: true}, Attempts: 1, Turns: 3, // as its last heartbeat told
	})
	require.Equal(t, 2, used(noon.Add(17*time.Minute)))
	later := noon.Add(5 * time.Hour)
	nobodyKnows := escalation.Report{Status: escalation.SessionFailed, Cost: escalation.Cost{CostEstimated: true}}
	run("lost with its host", later, nobodyKnows)
	require.Equal(t, 1, used(later.Add(2*time.Minute)))
	failed := timedOut
	failed.Status, failed.Verdict = escalation.SessionCompleted, &escalation.Verdict{Status: escalation.VerdictFailed, Summary: "no valid verdict"}
	run("no valid verdict", later.Add(10*time.Minute), failed)
	require.Equal(t, 2, used(later.Add(12*time.Minute)))
	refused := admit(t, s, repair("third", "third", later.Add(30*time.Minute)), about("web"), policy)
	require.Equal(t, escalation.RuleCooldown, refused.Refusal.Rule)

	later = noon.Add(11 * time.Hour)
	admit(t, s, repair("charged", "charged", later), about("web"), policy)
	refusal, err := s.Charge(bounded(t), escalation.Charge{
		ChainID: "charged", SessionID: "charged", Call: "toolu_1", At: later, Cooldowns: policy.Cooldowns,
		Actions: []escalation.CallAction{{Kind: escalation.ActionRestart, Service: "web"}},
	})
	require.NoError(t, err)
	require.Nil(t, refusal)
	mustClose(t, s, "charged", timedOut, later.Add(time.Minute))
	require.Equal(t, 1, used(later.Add(2*time.Minute)), "what it did is known")
}

func testForced(t *testing.T, database backend) {
	s := database(t)()
	admit(t, s, repair("chain", "a", noon), about("web"), strict())
	mustClose(t, s, "a", did("web", 2), noon.Add(time.Minute))
	request := about("web")
	refused := admit(t, s, repair("chain", "b", noon.Add(time.Hour)), request, strict())
	require.Equal(t, escalation.RuleCooldown, refused.Refusal.Rule)
	require.Equal(t, noon.Add(4*time.Hour+time.Minute), refused.Refusal.WaitUntil)
	require.Equal(t, 2, refused.Services[0].Restarts.Used)

	request.Force = true
	forced := admit(t, s, repair("chain", "b", noon.Add(time.Hour)), request, strict())
	require.Nil(t, forced.Refusal)
	require.True(t, forced.Session.Forced)
	require.Equal(t, forced, admit(t, s, repair("chain", "b", noon.Add(time.Hour)), about("web"), strict()), "a retry says so, too")
	unneeded := admit(t, s, repair("chain", "c", noon.Add(5*time.Hour)), request, strict())
	require.False(t, unneeded.Session.Forced)
}

// testReview compares the result of Review with the next decision of OpenSession, for random histories.
func testReview(t *testing.T, database backend) {
	s := database(t)()
	ctx := bounded(t)
	var opened int
	rapid.Check(t, func(t *rapid.T) {
		opened++
		at := noon.Add(time.Duration(opened) * 7 * time.Minute)
		chainID := fmt.Sprint("chain ", rapid.IntRange(0, 5).Draw(t, "chain"))
		session := repair(chainID, fmt.Sprint("session ", opened), at)
		session.Tier = rapid.SampledFrom(escalation.Tiers()).Draw(t, "tier")
		request := escalation.AdmissionRequest{
			ChainID: chainID, Tier: session.Tier, At: at, Force: rapid.Bool().Draw(t, "force"),
			Services: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"web", "db", "tv"}), 0, 3, rapid.ID).Draw(t, "services"),
		}
		before, err := s.ServiceLocks(ctx)
		require.NoError(t, err)
		review, err := s.Review(ctx, request, strict())
		require.NoError(t, err)
		after, err := s.ServiceLocks(ctx)
		require.NoError(t, err)
		require.Equal(t, before, after)

		result, err := s.OpenSession(ctx, session, request, strict())
		require.NoError(t, err)
		if review.Granted {
			require.Nil(t, result.Refusal)
			require.InDelta(t, review.BudgetUSD, result.Session.BudgetUSD, 0)
		} else {
			require.Equal(t, &review, result.Refusal)
		}
		require.Equal(t, review.Granted, result.Session.ID != 0)
		if review.Granted && rapid.Bool().Draw(t, "ends") {
			require.NoError(t, s.CloseSession(ctx, session.SessionID, did("web", rapid.IntRange(0, 1).Draw(t, "restarts")), at))
			require.NoError(t, s.ReleaseServices(ctx, chainID))
		}
	})
}

// testConcurrentAdmission opens sessions of many chains concurrently on two Stores. The reserved budgets must stay
// within the day's budget, and each service must be locked by one chain.
func testConcurrentAdmission(t *testing.T, database backend) {
	open := database(t)
	stores := []*store.Store{open(), open()}
	policy := strict()
	policy.DayBudgetUSD, policy.EscalationLimit = 17.5, escalation.Limit{}
	var granted [writers][]escalation.AdmissionResult
	group, ctx := errgroup.WithContext(bounded(t))
	for writer := range writers {
		group.Go(func() (err error) {
			granted[writer], err = grab(ctx, stores[writer%len(stores)], writer, policy)
			return err
		})
	}
	require.NoError(t, group.Wait())

	var reserved float64
	owner := map[string]string{}
	for _, lock := range locks(t, stores[0]) {
		owner[lock.Service] = lock.ChainID
	}
	for _, all := range granted {
		for _, opened := range all {
			reserved += opened.Session.BudgetUSD
			require.Equal(t, opened.Session.ChainID, owner[opened.Session.Model], "no two chains got it")
		}
	}
	require.InDelta(t, policy.DayBudgetUSD, reserved, 1e-9, "all of it is given out, and no more")
	require.Len(t, owner, 5, "four budgets of 4, and the rest")
}

// grab tries to open a session for each of ten services in turn, and returns the granted results.
func grab(ctx context.Context, s *store.Store, writer int, policy escalation.Policy) (granted []escalation.AdmissionResult, err error) {
	for i := range sessionsByWriter {
		service := fmt.Sprint("service ", i)
		session := repair(fmt.Sprint("chain ", writer), fmt.Sprintf("writer %d session %d", writer, i), noon)
		session.Model = service
		opened, err := s.OpenSession(ctx, session, about(service), policy)
		if err != nil {
			return nil, err
		}
		if opened.Refusal == nil {
			granted = append(granted, opened)
		}
	}
	return granted, nil
}

// testAccountLimit covers a limit of the account that one session meets: no session starts before its end, whose ever,
// unless a person forces one and the model answers it.
func testAccountLimit(t *testing.T, database backend) {
	open := database(t)
	s, policy := open(), strict()
	policy.DayBudgetUSD, policy.EscalationLimit, policy.Cooldowns.MaxWait = 0, escalation.Limit{}, escalation.Duration(6*time.Hour)
	until := noon.Add(3 * time.Hour)
	limited := escalation.Report{Status: escalation.SessionFailed, Ending: escalation.EndingLimited, LimitedUntil: until, Turns: 1, Attempts: 1}
	admit(t, s, opening("first", "first", 0), about(), policy)
	mustClose(t, s, "first", limited, noon.Add(time.Minute))
	recorded, err := s.BySessionID(bounded(t), "first")
	require.NoError(t, err)
	require.Equal(t, []any{escalation.EndingLimited, until}, []any{recorded.Ending, recorded.LimitedUntil})

	at := noon.Add(10 * time.Minute)
	look := func(id string, at time.Time, request escalation.AdmissionRequest) *escalation.Admission {
		session := opening(id, id, 0)
		session.StartedAt = at
		return admit(t, open(), session, request, policy).Refusal
	}
	refusal := look("look", at, about())
	require.Equal(t, escalation.RuleAccountLimit, refusal.Rule)
	require.Equal(t, until, refusal.WaitUntil)
	policy.Cooldowns.MaxWait = escalation.Duration(time.Hour)
	require.Zero(t, look("look", at, about()).WaitUntil, "a chain waits no longer than for a cooldown")
	require.Nil(t, look("later", until, about()))

	forced := about()
	forced.Force = true
	require.Nil(t, look("forced in vain", at, forced))
	mustClose(t, s, "forced in vain", limited, at.Add(time.Minute))
	require.NotNil(t, look("look", at.Add(2*time.Minute), about()))
	require.Nil(t, look("forced", at.Add(3*time.Minute), forced))
	answered := completed(0.1)
	answered.Tokens.Output = 10
	mustClose(t, s, "forced", answered, at.Add(4*time.Minute))
	require.Nil(t, look("look", at.Add(5*time.Minute), about()), "the account has another limit")

	at = at.Add(10 * time.Minute)
	policy.Tiers = []escalation.TierPolicy{{Model: "haiku"}, {Model: "sonnet"}, {Model: "claude-OPUS-5[1m]"}}
	require.Nil(t, look("dear", at, about()))
	limited.LimitedModel = "opus"
	mustClose(t, s, "dear", limited, at.Add(time.Minute))
	require.Nil(t, look("cheap", at.Add(2*time.Minute), about()), "the limit is of another model")
	mustClose(t, s, "cheap", answered, at.Add(3*time.Minute))
	dear := opening("dear again", "dear again", 0)
	dear.StartedAt, dear.Tier, dear.Purpose = at.Add(4*time.Minute), escalation.TierFullRepair, escalation.PurposeReview
	refusal = admit(t, s, dear, about(), policy).Refusal
	require.NotNil(t, refusal, "the answer of another model says nothing about it")
	require.Contains(t, refusal.Reason, "the limit of the account for opus at the model's provider is used up")
}
