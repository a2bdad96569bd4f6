package daily

import (
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

func TestTheTitleTellsWhatASessionWaitsFor(t *testing.T) {
	t.Parallel()
	model := watchModel{app: &app{&console.Console{Clock: chaintest.Clock}}, seen: true, size: tea.WindowSizeMsg{Width: 80, Height: 24}}
	model.now = operations.Snapshot{Chain: chaintest.Working(), Attempt: &operations.Attempt{State: operations.AttemptScheduled, Number: 2, StartsAt: chaintest.Noon}}
	require.Contains(t, model.title(model.now.Chain), "  waits for the next attempt  ")
	model.now.Chain.Outcome = escalation.OutcomeFailed
	require.Contains(t, model.title(model.now.Chain), "  failed  ")
}

func TestWatchSaysWhichSessionsAreLeftOut(t *testing.T) {
	t.Parallel()
	chain := chaintest.Climbed()
	chain.Earlier = escalation.Earlier{Sessions: 40, Cost: escalation.Cost{CostUSD: 1.2}}
	model := watchModel{app: &app{&console.Console{Clock: chaintest.Clock}}, seen: true, size: tea.WindowSizeMsg{Width: 80, Height: 24}}
	model.now.Chain = chain
	require.Contains(t, model.overview(), "  … 40 earlier sessions, $1.20: in the records")
}
