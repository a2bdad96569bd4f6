package activities

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/escalation"
)

// fakeHeartbeats returns answer for each heartbeat and stores the progress.
type fakeHeartbeats struct {
	answer func(ctx context.Context, call int) error

	mu   sync.Mutex
	told []TierProgress
}

var _ Heartbeats = (*fakeHeartbeats)(nil)

func (f *fakeHeartbeats) RecordActivityHeartbeat(ctx context.Context, _ []byte, details ...any) error {
	f.mu.Lock()
	f.told = append(f.told, details[0].(TierProgress))
	call := len(f.told)
	f.mu.Unlock()
	return f.answer(ctx, call)
}

// last returns the progress of the last heartbeat.
func (f *fakeHeartbeats) last() TierProgress {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.told[len(f.told)-1]
}

// startTestHeartbeater is like startHeartbeater with a heartbeat every second, but needs no activity.
func startTestHeartbeater(t *testing.T, heartbeats Heartbeats) (context.Context, *heartbeater) {
	t.Helper()
	return startHeartbeaterFor(t, heartbeats, escalation.Policy{})
}

// startHeartbeaterFor starts a heartbeater with the interval and the deadline of a policy.
func startHeartbeaterFor(t *testing.T, heartbeats Heartbeats, policy escalation.Policy) (context.Context, *heartbeater) {
	t.Helper()
	agent, end := context.WithCancelCause(t.Context())
	h := &heartbeater{
		heartbeats: heartbeats, interval: policy.HeartbeatInterval(), deadline: policy.HeartbeatTimeout() / 2, end: end,
	}
	h.start(agent)
	return agent, h
}

// rarely is the policy for a server on which heartbeats cost money.
var rarely = escalation.Policy{Heartbeat: escalation.Duration(10 * time.Second)}

func TestHeartbeaterEndsTheAgent(t *testing.T) {
	t.Parallel()
	away := func(_ context.Context, call int) error {
		if call < 3 {
			return nil
		}
		return serviceerror.NewUnavailable("away")
	}
	swallowed := func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }
	tests := map[string]struct {
		policy escalation.Policy
		answer func(ctx context.Context, call int) error
		after  time.Duration
		want   error
	}{
		"cancelled": {
			answer: func(context.Context, int) error { return temporal.NewCanceledError() }, want: errCancelled,
		},
		"no longer known": {
			answer: func(context.Context, int) error { return serviceerror.NewNotFound("gone") }, want: errHeartbeatLost,
		},
		"paused": {
			answer: func(context.Context, int) error { return activity.ErrActivityPaused }, want: errHeartbeatLost,
		},
		"refused from the third on":         {answer: away, after: 17 * time.Second, want: errHeartbeatLost},
		"swallowed by the network":          {answer: swallowed, after: 16 * time.Second, want: errHeartbeatLost},
		"refused from the third on, rarely": {policy: rarely, answer: away, after: 41 * time.Second, want: errHeartbeatLost},
		"swallowed by the network, rarely":  {policy: rarely, answer: swallowed, after: 31 * time.Second, want: errHeartbeatLost},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				agent, h := startHeartbeaterFor(t, &fakeHeartbeats{answer: tt.answer}, tt.policy)
				<-agent.Done()
				require.ErrorIs(t, context.Cause(agent), tt.want)
				require.InDelta(t, tt.after, time.Since(began), float64(heartbeatCall+heartbeatRetry),
					"the agent must be gone, grace and all, before the heartbeat timeout")
				h.stop(t.Context(), false)
			})
		})
	}
}

// TestHeartbeatRate counts the heartbeats of each minute. On Temporal Cloud each of them is billed.
func TestHeartbeatRate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy    escalation.Policy
		perMinute int
	}{
		"where they are free":   {escalation.Policy{}, 60},
		"where they cost money": {rarely, 6},
		"five seconds":          {escalation.Policy{Heartbeat: escalation.Duration(5 * time.Second)}, 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				heartbeats := &fakeHeartbeats{answer: func(context.Context, int) error { return nil }}
				_, h := startHeartbeaterFor(t, heartbeats, tt.policy)
				const minutes = 10
				time.Sleep(minutes*time.Minute - time.Millisecond)
				h.stop(t.Context(), false) // the heartbeater writes no longer
				require.Len(t, heartbeats.told, minutes*tt.perMinute)
			})
		})
	}
}

// TestCancelledWithinFifteenSeconds cancels the chain right after a heartbeat, which is the worst moment. Temporal
// answers the next heartbeat slowly, but within heartbeatCall.
func TestCancelledWithinFifteenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		agent, h := startHeartbeaterFor(t, &fakeHeartbeats{answer: func(_ context.Context, call int) error {
			if call == 1 {
				return nil
			}
			time.Sleep(heartbeatCall)
			return temporal.NewCanceledError()
		}}, rarely)
		synctest.Wait()
		cancelled := time.Now()
		<-agent.Done()
		require.ErrorIs(t, context.Cause(agent), errCancelled)
		require.LessOrEqual(t, time.Since(cancelled), 15*time.Second)
		h.stop(t.Context(), false)
	})
}

// TestHeartbeaterStopsAtOnce stops the heartbeats while one of them is being sent. An agent that has ended must not
// wait for it.
func TestHeartbeaterStopsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		agent, h := startTestHeartbeater(t, &fakeHeartbeats{answer: func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		synctest.Wait()
		h.stop(t.Context(), false)
		require.Zero(t, time.Since(began))
		require.Equal(t, context.Canceled, context.Cause(agent), "stopping is no failure")
	})
}

func TestHeartbeaterOutlastsAShortOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		heartbeats := &fakeHeartbeats{answer: func(_ context.Context, call int) error {
			if call > 2 && call < 14 {
				return errors.New("away")
			}
			return nil
		}}
		agent, h := startTestHeartbeater(t, heartbeats)
		time.Sleep(time.Minute)
		require.NoError(t, agent.Err())
		h.stop(t.Context(), false)
		require.Greater(t, len(heartbeats.told), 50)
	})
}

// TestHeartbeaterRetriesSoon lets Temporal refuse heartbeats for 15 seconds, longer than an interval. The retries come
// soon, so that the agent lives on.
func TestHeartbeaterRetriesSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		agent, h := startHeartbeaterFor(t, &fakeHeartbeats{answer: func(context.Context, int) error {
			if since := time.Since(began); since > 15*time.Second && since < 30*time.Second {
				return errors.New("away")
			}
			return nil
		}}, rarely)
		time.Sleep(time.Hour)
		require.NoError(t, agent.Err())
		h.stop(t.Context(), false)
	})
}

// TestProgressKeepsWhatWasInFlight checks that the calls in flight are kept until the model has answered. If an attempt
// is lost before that, their effect is still unknown to the next attempt.
func TestProgressKeepsWhatWasInFlight(t *testing.T) {
	t.Parallel()
	doubtful := []ToolCall{{Number: 2, Name: "Bash", Input: "docker restart jellyfin"}}
	progress := TierProgress{InFlight: doubtful}.with(AgentProgress{PID: 4712})
	require.Equal(t, doubtful, progress.InFlight)
	require.Equal(t, 4712, progress.Now.PID)
	require.Empty(t, progress.with(AgentProgress{Turns: 1}).InFlight)
}

func TestHeartbeaterTellsProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		heartbeats := &fakeHeartbeats{answer: func(context.Context, int) error { return nil }}
		_, h := startTestHeartbeater(t, heartbeats)
		running := ToolCall{Number: 2, Name: "Bash", Input: "docker restart jellyfin", State: ToolRunning}
		h.observe(AgentProgress{Turns: 2, CostUSD: 0.5, InFlight: []ToolCall{running}})
		time.Sleep(3 * time.Second)
		last := heartbeats.last()
		require.Equal(t, []ToolCall{running}, last.InFlight)
		require.InDelta(t, 0.5, last.ended().Spent.CostUSD, 1e-9, "what is cut off now counts as an estimate")
		require.True(t, last.ended().Spent.CostEstimated)

		h.add(escalation.Report{Cost: escalation.Cost{CostUSD: 0.75}})
		require.InDelta(t, 0.75, h.progress().ended().Spent.CostUSD, 1e-9, "what has ended counts once")
		h.settle(AgentReport{Report: escalation.Report{Cost: escalation.Cost{CostUSD: 2}}, InFlight: []ToolCall{running}}, 3, nil)
		h.stop(t.Context(), true)
		last = heartbeats.last()
		require.InDelta(t, 2, last.Spent.CostUSD, 1e-9)
		require.Equal(t, []ToolCall{running}, last.InFlight, "the next attempt has to know")
		require.Equal(t, 3, last.Failures)
	})
}
