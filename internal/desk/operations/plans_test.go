package operations

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
	"github.com/claudeops/claudeops/workflows"
)

func TestPlanID(t *testing.T) {
	t.Parallel()
	id := func(task escalation.PlanTask, repository, file string) string {
		return PlanStart{Task: task, Input: workflows.PlanInput{Repository: repository, File: file}}.workflowID()
	}
	run := id(escalation.PlanRun, "infra", "docs/plan.md")
	require.Regexp(t, `^plan-run-plan-[a-z2-7]{8}$`, run)
	require.Equal(t, run, id(escalation.PlanRun, "/srv/infra", "docs/plan.md"), "workers take a repository by its last element, too")
	seen := map[string]bool{run: true}
	for _, other := range []string{
		id(escalation.PlanReviewed, "infra", "docs/plan.md"), id(escalation.PlanRun, "", "docs/plan.md"),
		id(escalation.PlanRun, "other", "docs/plan.md"), id(escalation.PlanRun, "infra", "plan.md"), id(escalation.PlanRun, "infra", "docs/plan.txt"),
	} {
		require.False(t, seen[other], other)
		seen[other] = true
	}
	for _, file := range []string{"---", "ü.md", ".md", "a b\tc$(x).md", strings.Repeat("x", 500), "docs/PLAN.md"} {
		require.NoError(t, CheckChainID(id(escalation.PlanRun, "infra", file)), file)
	}
	require.Equal(t, "own", PlanStart{ID: "own"}.workflowID())
}

func TestPlanCheck(t *testing.T) {
	t.Parallel()
	input := workflows.PlanInput{File: "docs/plan.md"}
	require.NoError(t, PlanStart{Task: escalation.PlanReviewed, Input: input}.Check())
	phases := input
	phases.Phases = []string{"1"}
	require.NoError(t, PlanStart{Task: escalation.PlanRun, Input: phases}.Check())
	for want, start := range map[string]PlanStart{
		`task is "amend"; it must be review or run`: {Task: "amend", Input: input},
		"a review is of the whole plan":             {Task: escalation.PlanReviewed, Input: phases},
		"file is empty":                             {Task: escalation.PlanRun},
		"id 7 would be taken for the number":        {Task: escalation.PlanRun, ID: "7", Input: input},
	} {
		err := start.Check()
		require.ErrorContains(t, err, want)
		require.Equal(t, KindInvalid, KindOf(err))
	}
}

func TestPhases(t *testing.T) {
	t.Parallel()
	plan := chaintest.Planned().Plan
	var progress []string
	for _, phase := range plan.Phases {
		progress = append(progress, PhaseName(phase)+": "+PhaseProgress(plan, phase))
	}
	require.Equal(t, []string{
		"1 The port: approved", "2 The rule of the firewall: waits for a person", "2.1 Its test: waiting", "3 Old ports: skipped",
	}, progress)
	for state, want := range map[string]string{"auto_fix": "running (auto fix)", "": "not finished"} {
		plan.State = state
		require.Equal(t, want, PhaseProgress(plan, plan.Phases[1]))
		require.Equal(t, "approved", PhaseProgress(plan, plan.Phases[0]))
	}
	fixed, cost := PhaseFixes(plan.Phases[0])
	require.Equal(t, []string{"3 of 3", "$0.07"}, []string{fixed, cost})
	fixed, cost = PhaseFixes(escalation.PlanPhase{ReviewTotals: escalation.ReviewTotals{Found: 2, ReviewCostUSD: 1}})
	require.Equal(t, []string{"0 of 2", ""}, []string{fixed, cost}, "a cost for nothing is none")
	fixed, _ = PhaseFixes(plan.Phases[2])
	require.Empty(t, fixed)
}

func TestSessionTask(t *testing.T) {
	t.Parallel()
	for want, session := range map[string]escalation.Session{
		"":                {},
		"review":          {Purpose: escalation.PurposeReview},
		"review, phase 2": {Purpose: escalation.PurposeReview, Phase: "2"},
		"phase 2":         {Phase: "2"},
		"author":          {Purpose: escalation.PurposeAuthor, Phase: escalation.PlanItself},
	} {
		require.Equal(t, want, SessionTask(&session))
	}
}
