package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/store"
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

// testRepetitionClaims opens a session again after the locks of its chain were released. That happens if the chain
// seemed to be dead.
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
