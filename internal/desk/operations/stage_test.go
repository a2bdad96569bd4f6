package operations

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

// stage is a host with records, and the operations on them.
type stage struct {
	t          *testing.T
	operations *Operations
	config     config.Config
	records    *store.Store
}

// newStage returns a stage at chaintest.Noon. The services file, if any, has this text. The variables are settings.
func newStage(t *testing.T, services string, variables ...string) *stage {
	t.Helper()
	home := t.TempDir()
	environ := append([]string{"HOME=" + home}, variables...)
	if services != "" {
		file := filepath.Join(home, "services.yaml")
		require.NoError(t, os.WriteFile(file, []byte(services), 0o600))
		environ = append(environ, "CLAUDEOPS_SERVICES_FILE="+file)
	}
	s := &stage{t: t, operations: New(Options{Environ: environ, Clock: chaintest.Clock, Patience: time.Second, Masked: func() {}})}
	var err error
	s.config, err = s.operations.backend.config()
	require.NoError(t, err)
	s.records, err = supervisor.OpenStore(t.Context(), s.config)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.records.Close())
		require.NoError(t, s.operations.Close())
	})
	return s
}

// open records a session that starts at the time at. The function change, if any, changes it first.
func (s *stage) open(id string, at time.Time, change func(*escalation.Session)) escalation.Session {
	s.t.Helper()
	session := escalation.Session{
		ChainID: "chain-" + id, SessionID: id, Tier: escalation.TierObserve, Model: "haiku", Trigger: escalation.TriggerScheduled,
		Continuity: escalation.ContinuityFresh, ContinuityReason: escalation.ReasonFirstTier, StartedAt: at,
	}
	if change != nil {
		change(&session)
	}
	policy := escalation.Policy{Tiers: make([]escalation.TierPolicy, 3)}
	policy.Tiers[session.Tier-1].BudgetUSD = 0.5
	opened, err := s.records.OpenSession(s.t.Context(), session, escalation.AdmissionRequest{Services: session.Scope}, policy)
	require.NoError(s.t, err)
	require.Nil(s.t, opened.Refusal)
	return opened.Session
}

// close records the end of a session, a minute after its start, and releases the services of its chain.
func (s *stage) close(session escalation.Session, report escalation.Report) {
	s.t.Helper()
	require.NoError(s.t, s.records.CloseSession(s.t.Context(), session.SessionID, report, session.StartedAt.Add(time.Minute)))
	require.NoError(s.t, s.records.ReleaseServices(s.t.Context(), session.ChainID))
}

// ended returns the report of a session with a verdict.
func ended(costUSD float64, status escalation.VerdictStatus, services ...string) escalation.Report {
	return escalation.Report{
		Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: costUSD}, Attempts: 1,
		Verdict: &escalation.Verdict{Status: status, Summary: "It says so.", Services: services},
	}
}
