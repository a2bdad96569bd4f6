//go:build linux

package systemtest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/systemtest/forgetest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// TestFaultResetPlan resets the work on a plan, after it has ended, to a moment before its push, its pull request, its
// last review or its last turn. It ends as before: the remote has the same commit, from one push that had an effect,
// and there is one pull request.
func TestFaultResetPlan(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	for _, beforeThe := range []string{"PushChange", "ProposeChange", "RunReview", "RunAuthor"} {
		t.Run(beforeThe, func(t *testing.T) {
			t.Parallel()
			live, remote := newPlanRepository(t)
			gitIn(t, live, "remote", "set-url", "origin", "https://github.com/acme/infra")
			gitIn(t, live, "remote", "set-url", "--push", "origin", remote)
			gitIn(t, remote, "config", "core.logAllRefUpdates", "always")
			forge := forgetest.Install(t, "gh")
			s := startSite(t, temporalServer, environment(t, simtest.Install(t, twoPhases()), "CLAUDEOPS_WORK_DIR="+live,
				"PATH="+forge.Bin+":"+os.Getenv("PATH")))
			run := s.startPlan(workflows.PhaseExecutionWorkflow)
			first, err := s.finish(run)
			require.NoError(t, err)
			requireCarriedOut(t, first, remote)

			again, _ := resetBefore(t, s, run, beforeThe)
			requireCarriedOut(t, again, remote)
			require.Equal(t, first.Reason, again.Reason)
			require.Equal(t, first.Plan.Phases[0], again.Plan.Phases[0])
			require.Equal(t, []string{first.Plan.Commit, first.Plan.Pushed, first.Plan.PullRequest},
				[]string{again.Plan.Commit, again.Plan.Pushed, again.Plan.PullRequest})
			require.Equal(t, "https://github.com/acme/infra/pull/1", again.Plan.PullRequest)
			require.Len(t, again.Sessions, len(first.Sessions))
			require.Equal(t, "push", gitIn(t, remote, "reflog", "show", "--format=%gs", again.Plan.Branch), "one push has had an effect")
			require.Len(t, forge.PullRequests(t), 1)
			requireUntouched(t, live)
		})
	}
}
