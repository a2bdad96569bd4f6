package cli

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

// triggered creates a schedule with an overlap policy and triggers it the given number of times. The agent of the first
// cycle runs until release is called. The result first is the ID of the first cycle.
func (b scheduleBench) triggered(overlap string, times int) (first string, release func()) {
	b.t.Helper()
	// The offset puts the next regular cycle half a day ahead, after the end of the test.
	offset := (time.Duration(time.Now().Unix())*time.Second + 12*time.Hour) % (24 * time.Hour)
	b.must("schedule", "create", overlap, "--every", "24h", "--offset", offset.String(), "--overlap", overlap)
	release = b.hold()
	for i := range times {
		b.must("schedule", "trigger", overlap)
		if i == 0 {
			running := b.until(overlap, "the first cycle at work", func(s operations.ScheduleDetail) bool {
				return len(s.Recent) == 1 && b.isHeld(s.Recent[0])
			})
			first = running.Recent[0]
		}
		time.Sleep(1100 * time.Millisecond) // IDs of cycles have a resolution of one second
	}
	return first, release
}

// over waits until the schedule has completed the given number of cycles. It returns the schedule and the chains of
// the cycles, oldest first.
func (b scheduleBench) over(id string, cycles int) (operations.ScheduleDetail, []escalation.Chain) {
	b.t.Helper()
	var chains []escalation.Chain
	detail := b.until(id, "the end of all cycles", func(s operations.ScheduleDetail) bool {
		chains = chains[:0]
		for _, cycle := range s.Recent {
			chain, _ := b.chainOf(cycle)
			chains = append(chains, chain)
		}
		return s.Cycles == cycles && len(s.Recent) == cycles && len(s.Running) == 0 &&
			!slices.ContainsFunc(chains, func(chain escalation.Chain) bool { return chain.Outcome == "" })
	})
	require.False(b.t, detail.Paused)
	return detail, chains
}

// requireOneByOne checks that no chain began before the end of the previous one. All but the first must end healthy.
func requireOneByOne(t *testing.T, chains []escalation.Chain) {
	t.Helper()
	for i, chain := range chains[1:] {
		require.False(t, chain.StartedAt.Before(chains[i].EndedAt), "%s beside %s", chain.ID, chains[i].ID)
		require.Equal(t, escalation.OutcomeHealthy, chain.Outcome, chain.Reason)
	}
}

// TestScheduleOverlaps triggers a cycle while another one runs, under each overlap policy except skip.
func TestScheduleOverlaps(t *testing.T) {
	t.Parallel()
	b := startScheduleBench(t, "")

	_, release := b.triggered("buffer_one", 3)
	require.Equal(t, 1, b.describe("buffer_one").Cycles, "one waits, and there is no room for another")
	release()
	detail, chains := b.over("buffer_one", 2)
	require.Equal(t, 1, detail.Skipped)
	requireOneByOne(t, chains)
	require.Equal(t, escalation.OutcomeHealthy, chains[0].Outcome)

	_, release = b.triggered("buffer_all", 3)
	require.Equal(t, 1, b.describe("buffer_all").Cycles, "the others wait")
	release()
	detail, chains = b.over("buffer_all", 3)
	require.Zero(t, detail.Skipped)
	requireOneByOne(t, chains)
	require.Equal(t, escalation.OutcomeHealthy, chains[0].Outcome)

	_, release = b.triggered("allow_all", 2)
	b.until("allow_all", "two cycles at work", func(s operations.ScheduleDetail) bool {
		return len(s.Recent) == 2 && b.isHeld(s.Recent[0]) && b.isHeld(s.Recent[1])
	})
	release()
	_, chains = b.over("allow_all", 2)
	require.NotEqual(t, chains[0].Sessions[0].SessionID, chains[1].Sessions[0].SessionID)
	for _, chain := range chains {
		require.Equal(t, escalation.OutcomeHealthy, chain.Outcome, chain.Reason)
	}

	first, release := b.triggered("cancel_other", 2)
	b.until("cancel_other", "the second cycle at work", func(s operations.ScheduleDetail) bool {
		return s.Cycles == 2 && len(s.Running) == 1 && s.Running[0] != first && b.isHeld(s.Running[0])
	})
	release()
	_, chains = b.over("cancel_other", 2)
	requireOneByOne(t, chains)
	cancelled := chains[0]
	require.Equal(t, escalation.OutcomeAborted, cancelled.Outcome, cancelled.Reason)
	require.Equal(t, escalation.SessionStopped, cancelled.Sessions[0].Status)
	require.Zero(t, cancelled.Sessions[0].Survivors, "its agent is gone")
}
