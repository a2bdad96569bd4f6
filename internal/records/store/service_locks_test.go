package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

func testServiceLocks(t *testing.T, database backend) {
	s := database(t)()
	policy := lenient()
	admit(t, s, repair("one", "one/1", noon), about("web", "db"), policy)
	admit(t, s, repair("two", "two/1", noon), about("tv"), policy)
	admit(t, s, opening("three", "three/1", 0), about("free"), policy)
	admit(t, s, repair("one", "one/2", noon.Add(time.Minute)), about("web"), policy)
	require.Equal(t, []store.ServiceLock{
		lock("db", "one", noon), lock("tv", "two", noon), lock("web", "one", noon.Add(time.Minute)),
	}, locks(t, s), "what only looks claims nothing")

	for range 2 {
		require.NoError(t, s.ReleaseServices(bounded(t), "one"))
		require.Equal(t, []store.ServiceLock{lock("tv", "two", noon)}, locks(t, s))
	}
	dry := lenient()
	dry.DryRun = true
	admit(t, s, repair("four", "four/1", noon), about("web"), dry)
	require.Len(t, locks(t, s), 1, "a dry run claims nothing")
}

// testRepairOfAllServices covers a chain that repairs without naming a service. Such a repair and every other repair
// exclude each other.
func testRepairOfAllServices(t *testing.T, database backend) {
	s := database(t)()
	policy := lenient()
	policy.Cooldowns.MaxWait = escalation.Duration(time.Hour)
	refused := func(chainID string, services ...string) string {
		t.Helper()
		opened := admit(t, s, repair(chainID, chainID, noon), about(services...), policy)
		require.NotNil(t, opened.Refusal)
		require.Equal(t, escalation.RuleServiceBusy, opened.Refusal.Rule)
		require.Equal(t, noon.Add(time.Minute), opened.Refusal.WaitUntil)
		return opened.Refusal.Reason
	}
	admit(t, s, repair("one", "one/1", noon), about("web", "db"), policy)
	require.Contains(t, refused("all"), "chain one is at db")
	require.NoError(t, s.ReleaseServices(bounded(t), "one"))

	require.Nil(t, admit(t, s, repair("all", "all/1", noon), about(), policy).Refusal)
	require.Equal(t, []store.ServiceLock{{Service: "", ChainID: "all", Since: noon}}, locks(t, s))
	require.Contains(t, refused("one", "web"), "chain all names no service")
	require.Contains(t, refused("another"), "chain all repairs and names none either")
	require.Nil(t, admit(t, s, opening("looks", "looks", 0), about(), policy).Refusal, "who only looks waits for nobody")
	require.Nil(t, admit(t, s, repair("all", "all/2", noon), about(), policy).Refusal, "nor does the chain itself")

	mustClose(t, s, "all/2", escalation.Report{Status: escalation.SessionTimedOut, Attempts: 1, Cost: escalation.Cost{CostUSD: 1}}, noon)
	require.Empty(t, ledger(t, s, time.Time{}), "nobody knows what it restarted")
	later := noon.Add(time.Minute)
	admit(t, s, repair("all", "all/3", later), about("web"), policy)
	require.Equal(t, []store.ServiceLock{{Service: "web", ChainID: "all", Since: later}}, locks(t, s), "now it names a service and lets go of the others")
	require.Nil(t, admit(t, s, repair("one", "one/2", later), about("db"), policy).Refusal)
	require.NoError(t, s.ReleaseServices(bounded(t), "all"))
	require.NoError(t, s.ReleaseServices(bounded(t), "one"))

	admit(t, s, repair("all", "all/4", later), about(), policy)
	released, err := s.ReleaseLock(bounded(t), locks(t, s)[0])
	require.NoError(t, err)
	require.True(t, released, "as a sweep does it")
	require.Empty(t, locks(t, s))
}

// testServiceNames spells a service in several ways. Locks, charges and the entries of a verdict must treat the
// spellings as one service.
func testServiceNames(t *testing.T, database backend) {
	s := database(t)()
	policy := lenient()
	policy.Cooldowns = twiceInFour()
	admit(t, s, repair("chain", "a", noon), about("Web  Shop", "WEB shop"), policy)
	require.Equal(t, []store.ServiceLock{{Service: "Web  Shop", ChainID: "chain", Since: noon}}, locks(t, s))
	refused := admit(t, s, repair("other", "b", noon), about("web shop "), policy)
	require.Equal(t, escalation.RuleServiceBusy, refused.Refusal.Rule)
	require.Contains(t, refused.Refusal.Reason, "Web  Shop")

	mustCharge(t, s, restart("1", noon, "WEB SHOP"))
	mustClose(t, s, "a", did("web  shop", 2), noon)
	require.NoError(t, s.ReleaseServices(bounded(t), "chain"))
	refused = admit(t, s, repair("other", "b", noon), about("web shop"), policy)
	require.Equal(t, escalation.RuleCooldown, refused.Refusal.Rule)
	require.Len(t, refused.Services, 1)
	require.Equal(t, "web shop", refused.Services[0].Service)
	require.Equal(t, 2, refused.Services[0].Restarts.Used, "the verdict tells of the charged restart and of one more")
	mustRefuse(t, s, restart("2", noon, "Web Shop"))
	mustRefuse(t, s, restart("2", noon, "DB", "db"))
}

func testReleaseLock(t *testing.T, database backend) {
	s := database(t)()
	admit(t, s, repair("one", "one/1", noon), about("web"), lenient())
	stale := locks(t, s)[0]
	admit(t, s, repair("one", "one/2", noon.Add(time.Minute)), about("web"), lenient())
	released, err := s.ReleaseLock(bounded(t), stale)
	require.NoError(t, err)
	require.False(t, released, "it was claimed again since it was read")
	for _, want := range []bool{true, false} {
		released, err := s.ReleaseLock(bounded(t), store.ServiceLock{Service: "web", ChainID: "one", Since: noon.Add(time.Minute)})
		require.NoError(t, err)
		require.Equal(t, want, released)
	}
	require.Empty(t, locks(t, s))
}

// testRepetitionClaims opens a session again after the locks of its chain were released. The locks are released if the
// chain seemed to be dead.
func testRepetitionClaims(t *testing.T, database backend) {
	s := database(t)()
	admit(t, s, repair("one", "one/1", noon), about("web", "db"), lenient())
	require.NoError(t, s.ReleaseServices(bounded(t), "one"))
	admit(t, s, repair("two", "two/1", noon), about("db"), lenient())
	require.Nil(t, admit(t, s, repair("one", "one/1", noon), about("web", "db"), lenient()).Refusal)
	require.Equal(t, []store.ServiceLock{lock("db", "two", noon), lock("web", "one", noon)}, locks(t, s), "it takes nothing away")
}

func testSettle(t *testing.T, database backend) {
	s := database(t)()
	mustOpen(t, s, opening("chain", "left behind", 0))
	mustOpen(t, s, opening("chain", "closed", 0))
	mustClose(t, s, "closed", completed(1), noon)
	lost := escalation.Report{Status: escalation.SessionFailed, Error: "its chain is gone"}
	for sessionID, want := range map[string]bool{"left behind": true, "closed": false} {
		settled, err := s.SettleSession(bounded(t), sessionID, lost, noon.Add(time.Hour))
		require.NoError(t, err)
		require.Equal(t, want, settled)
		require.Empty(t, replaced(t, s, sessionID))
	}
	closed, err := s.BySessionID(bounded(t), "closed")
	require.NoError(t, err)
	require.Equal(t, completed(1), closed.Report, "it came too late")
	require.Equal(t, noon, closed.EndedAt)

	mustClose(t, s, "left behind", completed(2), noon)
	settled, err := s.BySessionID(bounded(t), "left behind")
	require.NoError(t, err)
	require.Equal(t, completed(2), settled.Report, "who knows more has the last word")
	_, err = s.SettleSession(bounded(t), "nobody", lost, noon)
	require.ErrorIs(t, err, store.ErrNotFound)
}
