package activities

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/claudeops/claudeops/internal/change/forge"
	"github.com/claudeops/claudeops/internal/escalation"
)

// proposerFunc implements Proposer.
type proposerFunc func() error

func (p proposerFunc) Propose(context.Context, Proposal) (ProposeResult, error) {
	return ProposeResult{}, p()
}

// TestProposeWaitsForAForge checks that Temporal asks a forge again only when its limit can have ended, and soon after
// other failures.
func TestProposeWaitsForAForge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		failure error
		waits   bool
	}{{new(forge.LimitedError), true}, {errors.New("bad gateway"), false}} {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		tiers := &Tiers{Proposer: proposerFunc(func() error { return c.failure })}
		env.RegisterActivity(tiers)
		_, err := env.ExecuteActivity(tiers.ProposeChange, ProposeRequest{})
		var failed *temporal.ApplicationError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, c.waits, failed.NextRetryDelay() == afterForgeLimit, "%v", failed.NextRetryDelay())
		require.False(t, failed.NonRetryable())
	}
}

// TestDescribePlan checks what a pull request says about the phases of a plan.
func TestDescribePlan(t *testing.T) {
	t.Parallel()
	request := ProposeRequest{
		Review: escalation.Review{Phase: "2"},
		Phases: []escalation.PlanPhase{
			{Number: "1", Status: escalation.PhaseApproved}, {Number: "2", Status: escalation.PhaseAccepted},
		},
	}
	described := (&Tiers{}).describe("plan-run-ports", request)
	require.Equal(t, "2", described.Phase)
	require.Equal(t, []string{"1: approved", "2: accepted by a person"}, described.Phases)
	request.Review.Phase = escalation.PlanItself
	require.Empty(t, (&Tiers{}).describe("plan-review-ports", request).Phase, "the review is about all of the change")
}
