package api

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/internal/systemtest/webtest"
)

// planRepository returns a repository with a committed plan.
func planRepository(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "infra")
	require.NoError(t, os.Mkdir(dir, 0o700))
	plan := "# Ports\n\n## Phase 1: The port\n- [x] done\n\n## Phase 2: The rule\n- [ ] open\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plan.md"), []byte(plan), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bold.md"), []byte("## Phase 1: a\n\n**Phase 2**\n"), 0o600))
	for _, words := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "plan.md", "bold.md"},
		{"-c", "user.name=ada", "-c", "user.email=ada@example.org", "commit", "--quiet", "--message", "a plan"},
	} {
		said, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, words...)...).CombinedOutput()
		require.NoError(t, err, "%v: %s", words, said)
	}
	return dir
}

// TestPlanByAPI carries out a plan with the real workflow: its author asks for a person, who continues the author's
// session, and then ends the work.
func TestPlanByAPI(t *testing.T) {
	t.Parallel()
	dir := planRepository(t)
	asks := func(question string) claudesim.Reply {
		return claudesim.Conclude(review.Work{Status: review.WorkNeedsHuman, Summary: question})
	}
	author := claudesim.Play(claudesim.On(claudesim.Match{Prompt: "port 8443"}, asks("for whom?")), claudesim.Always(asks("which port?")))
	s := serve(t, webtest.Install(t, author, "CLAUDEOPS_GATE_TIMEOUT=1h", "CLAUDEOPS_REPOSITORIES="+dir))

	body := map[string]any{"task": "run", "file": "plan.md", "repository": "infra"}
	viewing := s.askAs(t, s.viewer, http.MethodPost, "/api/v1/plans", body)
	require.Equal(t, http.StatusForbidden, viewing.status)
	first := s.ask(t, http.MethodPost, "/api/v1/plans", body)
	require.Equal(t, http.StatusCreated, first.status, string(first.body))
	var started operations.PlanStarted
	first.into(t, &started)
	require.NotNil(t, started.Plan, "a worker has read the plan")
	require.NotEmpty(t, started.Plan.Phases)
	require.Contains(t, started.Warning, "no remote origin")
	require.Contains(t, started.ChainID, "plan-run-plan-")
	again := s.ask(t, http.MethodPost, "/api/v1/plans", body)
	require.Equal(t, http.StatusConflict, again.status)
	require.Equal(t, "the plan plan.md is being carried out already, by "+started.ChainID, again.problem(t).Detail)

	stopped := s.ask(t, http.MethodPost, "/api/v1/plans", map[string]any{"task": "run", "file": "bold.md", "repository": "infra"})
	require.Equal(t, http.StatusUnprocessableEntity, stopped.status, string(stopped.body))
	require.Contains(t, stopped.problem(t).Detail, `line 3: "**Phase 2**" is no heading`)

	var gates gateList
	require.Eventually(t, func() bool {
		s.ask(t, http.MethodGet, "/api/v1/gates", nil).into(t, &gates)
		return len(gates.Gates) == 1 && gates.Gates[0].Gate != nil
	}, testTimeout, testLook, "no gate is open")
	require.Equal(t, started.ChainID, gates.Gates[0].ChainID)
	require.Equal(t, []string{"2", "plan.md"}, []string{gates.Gates[0].Gate.Phase, gates.Gates[0].Gate.Plan})
	require.Contains(t, gates.Gates[0].Gate.Options, escalation.GateContinue, gates.Gates[0].Gate.NoContinuation)
	path := "/api/v1/chains/" + started.ChainID
	escalated := s.ask(t, http.MethodPost, path+"/escalate", map[string]any{"to_tier": 3})
	require.Equal(t, http.StatusUnprocessableEntity, escalated.status)
	require.Contains(t, escalated.problem(t).Detail, "it works on a plan, whose author and reviewer have no higher tier")

	var now operations.Snapshot
	s.ask(t, http.MethodGet, path, nil).into(t, &now)
	require.Equal(t, []string{"Ports", "infra"}, []string{now.Chain.Plan.Title, now.Chain.Plan.Repository})
	require.Equal(t, []escalation.PhaseStatus{escalation.PhaseSkipped, escalation.PhaseRunning}, []escalation.PhaseStatus{
		now.Chain.Plan.Phases[0].Status, now.Chain.Plan.Phases[1].Status,
	})
	require.True(t, now.Chain.Verified)
	session := now.Chain.Sessions[0]
	require.Equal(t, "author, phase 2", operations.SessionTask(&session))
	var page operations.ChainPage
	s.ask(t, http.MethodGet, "/api/v1/chains?trigger=plan&gate=true", nil).into(t, &page)
	require.Len(t, page.Chains, 1)
	require.Equal(t, "plan.md", page.Chains[0].Plan)
	var detail operations.SessionDetail
	s.ask(t, http.MethodGet, "/api/v1/sessions/1", nil).into(t, &detail)
	require.Equal(t, "author, phase 2", operations.SessionTask(&detail.Session), "the records have role and phase")

	continued := s.ask(t, http.MethodPost, path+"/gate", map[string]any{
		"gate_id": "gate-1", "action": "continue_session", "guidance": "port 8443",
	})
	require.Equal(t, http.StatusOK, continued.status, string(continued.body))
	var resolution escalation.GateResolution
	continued.into(t, &resolution)
	require.Equal(t, "the author goes on and keeps what it knows, with the guidance; it has begun", resolution.Next)
	require.Eventually(t, func() bool {
		s.ask(t, http.MethodGet, path, nil).into(t, &now)
		return len(now.Chain.Gates) == 2
	}, testTimeout, testLook, "the author has not asked again")
	second := now.Chain.Sessions[1]
	require.Equal(t, []any{session.ID, escalation.ContinuityResume, escalation.ReasonContinued, "author, phase 2", "for whom?"},
		[]any{second.ParentID, second.Continuity, second.ContinuityReason, operations.SessionTask(&second), second.Verdict.Summary})

	answered := s.ask(t, http.MethodPost, path+"/gate", map[string]any{"gate_id": "gate-2", "action": "abort"})
	require.Equal(t, http.StatusOK, answered.status, string(answered.body))
	require.Eventually(t, func() bool {
		s.ask(t, http.MethodGet, path, nil).into(t, &now)
		return now.Chain.Outcome == escalation.OutcomeAborted
	}, testTimeout, testLook)
	require.Equal(t, 2, now.Chain.Plan.Phases[1].Turns)
}
