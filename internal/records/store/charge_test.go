package store_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// twiceInFour returns cooldowns that allow two restarts in four hours and one redeployment a day, with different limits
// for the services db and cache.
func twiceInFour() escalation.Cooldowns {
	const hour = escalation.Duration(time.Hour)
	once, never, unlimited := escalation.Limit{Max: 1, Window: 12 * hour}, escalation.Limit{Window: 24 * hour}, escalation.Limit{}
	return escalation.Cooldowns{
		Restarts: escalation.Limit{Max: 2, Window: 4 * hour}, Redeployments: escalation.Limit{Max: 1, Window: 24 * hour},
		Services: map[string]escalation.ServiceCooldowns{
			"db":    {Restarts: &once, Redeployments: &never},
			"cache": {Restarts: &unlimited},
		},
	}
}

// restart returns the charge of a call of session a that restarts services.
func restart(call string, at time.Time, services ...string) escalation.Charge {
	charge := escalation.Charge{ChainID: "chain", SessionID: "a", Call: call, At: at, Cooldowns: twiceInFour()}
	for _, service := range services {
		charge.Actions = append(charge.Actions, escalation.CallAction{Kind: escalation.ActionRestart, Service: service})
	}
	return charge
}

// of returns charge with this chain and session.
func of(chainID, sessionID string, charge escalation.Charge) escalation.Charge {
	charge.ChainID, charge.SessionID = chainID, sessionID
	return charge
}

func mustCharge(t testing.TB, s *store.Store, charge escalation.Charge) {
	t.Helper()
	refusal, err := s.Charge(bounded(t), charge)
	require.NoError(t, err)
	require.Nil(t, refusal)
}

func mustRefuse(t testing.TB, s *store.Store, charge escalation.Charge) *escalation.ChargeRefusal {
	t.Helper()
	before := ledger(t, s, time.Time{})
	refusal, err := s.Charge(bounded(t), charge)
	require.NoError(t, err)
	require.NotNil(t, refusal)
	require.Equal(t, before, ledger(t, s, time.Time{}), "what is refused is not entered")
	return refusal
}

func testCharge(t *testing.T, database backend) {
	s := database(t)()
	mustOpen(t, s, opening("chain", "a", 0))
	mustOpen(t, s, opening("other", "b", 0))
	mustCharge(t, s, restart("1", noon, "web"))
	mustCharge(t, s, of("other", "b", restart("2", noon.Add(time.Hour), "web")))
	require.Equal(t, []escalation.LedgerEntry{
		{Service: "web", Kind: escalation.ActionRestart, At: noon, ChainID: "chain", SessionID: "a", Call: "1"},
		{Service: "web", Kind: escalation.ActionRestart, At: noon.Add(time.Hour), ChainID: "other", SessionID: "b", Call: "2"},
	}, ledger(t, s, time.Time{}))

	refusal := mustRefuse(t, s, restart("3", noon.Add(90*time.Minute), "web"))
	require.Equal(t, "the cooldown of web does not allow a restart now: the limit over all chains is 2 within 4h, and the ledger has 2; "+
		"the next one is allowed at 2026-03-01T16:00:00Z, in 2h30m", refusal.Reason())
	mustCharge(t, s, restart("4", noon.Add(90*time.Minute), "tv"))
	redeployment := restart("5", noon.Add(90*time.Minute), "web")
	redeployment.Actions[0].Kind = escalation.ActionRedeployment
	mustCharge(t, s, redeployment)

	mustRefuse(t, s, restart("6", refusal.Use.FreeAt.Add(-time.Millisecond), "web"))
	mustCharge(t, s, restart("6", refusal.Use.FreeAt, "web"))
	require.Equal(t, noon.Add(5*time.Hour), mustRefuse(t, s, of("other", "b", restart("7", refusal.Use.FreeAt, "web"))).Use.FreeAt)
}

func testChargeWhole(t *testing.T, database backend) {
	s := database(t)()
	mustOpen(t, s, opening("chain", "a", 0))
	mustCharge(t, s, restart("1", noon, "web"))
	require.Equal(t, "web", mustRefuse(t, s, restart("2", noon, "tv", "web", "web")).Service)
	require.Contains(t, mustRefuse(t, s, restart("3", noon, "tv", "tv", "tv")).Reason(), "never allows 3 restarts in one call")
	mustCharge(t, s, restart("4", noon, "tv", " tv ", "web"))
	require.Len(t, ledger(t, s, time.Time{}, "tv"), 2)
	require.Len(t, ledger(t, s, time.Time{}, "web"), 2)
}

func testChargeOnce(t *testing.T, database backend) {
	open := database(t)
	s := open()
	mustOpen(t, s, opening("chain", "a", 0))
	mustOpen(t, s, opening("chain", "b", 0))
	for range 3 {
		mustCharge(t, s, restart("1", noon, "web"))
	}
	require.Len(t, ledger(t, s, time.Time{}), 1)
	mustCharge(t, s, of("chain", "b", restart("1", noon, "web"))) // another session can have the same call id
	mustCharge(t, open(), restart("1", noon.Add(time.Minute), "web"))
	require.Len(t, ledger(t, s, time.Time{}), 2, "a repetition is no third")
}

func testReturnCharge(t *testing.T, database backend) {
	s := database(t)()
	mustOpen(t, s, opening("chain", "a", 0))
	mustOpen(t, s, opening("chain", "b", 0))
	mustCharge(t, s, restart("1", noon, "web", "tv"))
	mustCharge(t, s, restart("2", noon, "web"))
	mustRefuse(t, s, restart("3", noon, "web"))
	require.NoError(t, s.ReturnCharge(bounded(t), "b", "1"), "another session's")
	require.NoError(t, s.ReturnCharge(bounded(t), "a", "unknown"))
	require.ErrorIs(t, s.ReturnCharge(bounded(t), "a", ""), store.ErrInvalid)
	require.Len(t, ledger(t, s, time.Time{}), 3)

	for range 2 {
		require.NoError(t, s.ReturnCharge(bounded(t), "a", "1"))
	}
	require.Empty(t, ledger(t, s, time.Time{}, "tv"))
	require.Len(t, ledger(t, s, time.Time{}, "web"), 1)
	mustCharge(t, s, restart("3", noon, "web"))
	mustRefuse(t, s, restart("4", noon, "web"))
	require.NoError(t, s.ReturnCharge(bounded(t), "a", "3"))
	mustCharge(t, s, restart("3", noon, "web"))
	require.Len(t, ledger(t, s, time.Time{}, "web"), 2, "what was given back can be charged again")
}

func testTakeBack(t *testing.T, database backend) {
	s := database(t)()
	mustOpen(t, s, opening("chain", "a", 0))
	mustOpen(t, s, opening("other", "b", 0))
	mustCharge(t, s, restart("1", noon, "web", "tv"))
	mustCharge(t, s, restart("2", noon.Add(time.Hour), "web"))
	later := noon.Add(2 * time.Hour)
	_, err := s.TakeBack(bounded(t), "web", "ada", later)
	require.ErrorIs(t, err, store.ErrConflict, "its verdict would name it again")
	mustClose(t, s, "a", completed(0.1), noon.Add(90*time.Minute))
	mustRefuse(t, s, of("other", "b", restart("3", later, "web")))

	taken, err := s.TakeBack(bounded(t), " WEB", "ada", later)
	require.NoError(t, err)
	require.Equal(t, noon.Add(time.Hour), taken.At, "the latest one")
	require.Len(t, ledger(t, s, time.Time{}, "web"), 1)
	require.Len(t, ledger(t, s, time.Time{}, "tv"), 1)
	events, err := s.Events(bounded(t), "chain")
	require.NoError(t, err)
	require.Equal(t, "ada has taken back the restart of web at 2026-03-01 13:00 UTC: no limit counts it",
		events[len(events)-1].Message)
	mustCharge(t, s, of("other", "b", restart("3", later, "web")))
	_, err = s.TakeBack(bounded(t), "radio", "ada", later)
	require.ErrorIs(t, err, store.ErrNotFound)
}

func testChargeLimits(t *testing.T, database backend) {
	s := database(t)()
	mustOpen(t, s, opening("chain", "a", 0))
	for i := range 5 {
		mustCharge(t, s, restart(fmt.Sprint("cache ", i), noon, "cache"))
	}
	mustCharge(t, s, restart("db", noon, "db"))
	require.Equal(t, noon.Add(12*time.Hour), mustRefuse(t, s, restart("db again", noon.Add(5*time.Hour), "db")).Use.FreeAt)
	forbidden := restart("never", noon, "db")
	forbidden.Actions[0].Kind = escalation.ActionRedeployment
	require.Equal(t, "the policy allows no redeployment of db", mustRefuse(t, s, forbidden).Reason())
	for i := range 5 {
		unlimited := restart(fmt.Sprint("unlimited ", i), noon, "db")
		unlimited.Cooldowns = escalation.Cooldowns{}
		mustCharge(t, s, unlimited)
	}
	require.Len(t, ledger(t, s, time.Time{}, "db"), 6, "the ledger is kept where nothing is limited, too")
}

func testChargeForced(t *testing.T, database backend) {
	s := database(t)()
	mustOpen(t, s, opening("chain", "a", 0))
	mustCharge(t, s, restart("1", noon, "web", "web"))
	mustRefuse(t, s, restart("2", noon, "web"))

	policy := lenient()
	policy.Cooldowns = twiceInFour()
	session := opening("chain", "forced", 0)
	session.Tier = escalation.TierSafeRepair
	opened := admit(t, s, session, escalation.AdmissionRequest{Services: []string{"web"}, Force: true}, policy)
	require.True(t, opened.Session.Forced)
	mustCharge(t, s, of("chain", "forced", restart("2", noon, "web")))
	require.Len(t, ledger(t, s, time.Time{}, "web"), 3, "what a person let pass counts for those after it")
	mustRefuse(t, s, restart("3", noon, "web"))
}

func testChargeRefuses(t *testing.T, database backend) {
	s := database(t)()
	mustOpen(t, s, opening("chain", "a", 0))
	other := restart("1", noon, "web")
	other.Actions[0].Kind = escalation.ActionOther
	for name, tt := range map[string]struct {
		charge escalation.Charge
		want   error
	}{
		"no call":             {restart("", noon, "web"), store.ErrInvalid},
		"no time":             {restart("1", time.Time{}, "web"), store.ErrInvalid},
		"no service":          {restart("1", noon, " "), store.ErrInvalid},
		"a service of lines":  {restart("1", noon, "web\n"+"x"), store.ErrInvalid},
		"too many":            {restart("1", noon, slices.Repeat([]string{"cache"}, escalation.MaxServices+1)...), store.ErrInvalid},
		"what has no limit":   {other, store.ErrInvalid},
		"an unknown session":  {of("chain", "unknown", restart("1", noon, "web")), store.ErrNotFound},
		"of another chain":    {of("other", "a", restart("1", noon, "web")), store.ErrConflict},
		"invalid, and nobody": {of("chain", "unknown", restart("", noon, "web")), store.ErrInvalid},
	} {
		refusal, err := s.Charge(bounded(t), tt.charge)
		require.ErrorIs(t, err, tt.want, name)
		require.False(t, store.IsTransient(err), name)
		require.Nil(t, refusal, name)
	}
	require.Empty(t, ledger(t, s, time.Time{}))
}

// testChargeAndAdmission checks the admission of a second chain after a session has used up the limit and ended without
// a verdict.
func testChargeAndAdmission(t *testing.T, database backend) {
	s := database(t)()
	mustOpen(t, s, opening("chain", "a", 0))
	mustCharge(t, s, restart("1", noon, "web"))
	mustCharge(t, s, restart("2", noon, "web"))
	mustClose(t, s, "a", escalation.Report{Status: escalation.SessionTimedOut}, noon.Add(time.Hour))

	policy := lenient()
	policy.Cooldowns = twiceInFour()
	policy.Cooldowns.MaxWait = escalation.Duration(6 * time.Hour)
	session := opening("other", "b", 0)
	session.Tier, session.StartedAt = escalation.TierSafeRepair, noon.Add(2*time.Hour)
	opened := admit(t, s, session, escalation.AdmissionRequest{Services: []string{"web"}}, policy)
	require.NotNil(t, opened.Refusal)
	require.Equal(t, escalation.RuleCooldown, opened.Refusal.Rule)
	require.Equal(t, noon.Add(4*time.Hour), opened.Refusal.WaitUntil)
}

func testChargeAndVerdict(t *testing.T, database backend) {
	s := database(t)()
	mustOpen(t, s, opening("chain", "a", 0))
	late := noon.Add(time.Hour)
	outcomes := func(service string, succeeded ...bool) escalation.Report {
		report := completed(0.5)
		for _, done := range succeeded {
			action := escalation.Action{Kind: escalation.ActionRestart, Service: service, Succeeded: done}
			report.Verdict.Actions = append(report.Verdict.Actions, action)
		}
		return report
	}
	entry := func(call string, at time.Time, succeeded bool) escalation.LedgerEntry {
		return escalation.LedgerEntry{
			Service: "web", Kind: escalation.ActionRestart, At: at, ChainID: "chain", SessionID: "a", Call: call, Succeeded: succeeded,
		}
	}
	for _, call := range []string{"1", "2", "3"} {
		charge := restart(call, noon, "web")
		charge.Cooldowns = escalation.Cooldowns{}
		mustCharge(t, s, charge)
	}
	require.NoError(t, s.ReturnCharge(bounded(t), "a", "2"))
	for _, step := range []struct {
		why    string
		report escalation.Report
		want   []escalation.LedgerEntry
	}{
		{"nothing is told", escalation.Report{Status: escalation.SessionTimedOut}, []escalation.LedgerEntry{
			entry("1", noon, false), entry("3", noon, false),
		}},
		{"fewer are told than were charged", outcomes(" WEB", true), []escalation.LedgerEntry{
			entry("1", noon, true), entry("3", noon, false),
		}},
		{"as many", outcomes("Web", false, true), []escalation.LedgerEntry{
			entry("1", noon, false), entry("3", noon, true),
		}},
		{"more", outcomes("Web", true, true, true), []escalation.LedgerEntry{
			entry("1", noon, true), entry("3", noon, true), entry("", late, true),
		}},
		{"a late retry", outcomes("Web", false, true), []escalation.LedgerEntry{
			entry("1", noon, true), entry("3", noon, true), entry("", late, true),
		}},
		{"less, and what only a verdict told stays as it was", outcomes("web", false, false, false), []escalation.LedgerEntry{
			entry("1", noon, false), entry("3", noon, false), entry("", late, true),
		}},
	} {
		mustClose(t, s, "a", step.report, late)
		require.Equal(t, step.want, ledger(t, s, time.Time{}), step.why)
	}

	charge := restart("4", late, "web")
	charge.Cooldowns = escalation.Cooldowns{}
	mustCharge(t, s, charge) // the session runs again
	mustClose(t, s, "a", outcomes("web", true, true, true, true), late.Add(time.Hour))
	require.Len(t, ledger(t, s, time.Time{}), 4)
	require.Equal(t, entry("4", late, true), ledger(t, s, time.Time{})[3])
}

func testConcurrentCharges(t *testing.T, database backend) {
	open := database(t)
	stores := []*store.Store{open(), open()}
	for writer := range writers {
		mustOpen(t, stores[0], opening(fmt.Sprint("chain ", writer), fmt.Sprint("session ", writer), 0))
	}
	var admitted atomic.Int32
	group, ctx := errgroup.WithContext(bounded(t))
	for writer := range writers {
		group.Go(func() error {
			charge := of(fmt.Sprint("chain ", writer), fmt.Sprint("session ", writer), restart("1", noon, "web"))
			refusal, err := stores[writer%len(stores)].Charge(ctx, charge)
			if err == nil && refusal == nil {
				admitted.Add(1)
			}
			return err
		})
	}
	require.NoError(t, group.Wait())
	require.EqualValues(t, 2, admitted.Load())
	require.Len(t, ledger(t, stores[0], time.Time{}), 2)
}
