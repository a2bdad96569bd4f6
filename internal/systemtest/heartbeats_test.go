package systemtest

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// heartbeatTimes records when heartbeats leave a worker for Temporal.
type heartbeatTimes struct {
	mu    sync.Mutex
	times []time.Time
}

// intercept is a gRPC interceptor.
func (h *heartbeatTimes) intercept(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	if _, ok := request.(*workflowservice.RecordActivityTaskHeartbeatRequest); ok {
		h.mu.Lock()
		h.times = append(h.times, time.Now())
		h.mu.Unlock()
	}
	return invoke(ctx, method, request, reply, conn, options...)
}

func (h *heartbeatTimes) all() []time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]time.Time(nil), h.times...)
}

// TestHeartbeatsComeAtTheConfiguredInterval counts a worker's calls to a real Temporal server. Then it cancels the
// chain: the answer to a heartbeat ends the agent.
func TestHeartbeatsComeAtTheConfiguredInterval(t *testing.T) {
	t.Parallel()
	startTemporal(t)
	const interval = 2 * time.Second
	sent := &heartbeatTimes{}
	c, err := supervisor.Connect(t.Context(), client.Options{
		HostPort: sharedTemporal.server.Address(), Identity: "test", Logger: log.NewStructuredLogger(quiet()),
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(sent.intercept)}},
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	marker := filepath.Join(t.TempDir(), "started")
	claude := simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Bash("touch "+marker+"; sleep 600"))))
	s := startSite(t, c, environment(t, claude, append(toolsAllowed(), "CLAUDEOPS_HEARTBEAT_INTERVAL="+interval.String())...))
	run := s.start(nil)
	require.Eventually(t, exists(marker), testTimeout, 20*time.Millisecond)
	require.Eventually(t, func() bool { return len(sent.all()) >= 3 }, testTimeout, 20*time.Millisecond)
	require.NoError(t, c.CancelWorkflow(t.Context(), run.GetID(), ""))
	_, err = s.finish(run)
	require.Error(t, err)
	requireGone(t, run.GetID())

	times := sent.all()
	for i := range times[1:] {
		require.GreaterOrEqual(t, times[i+1].Sub(times[i]), interval)
	}
	history := c.GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		require.NoError(t, err)
		if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled.GetActivityType().GetName() == "RunTier" {
			require.Equal(t, s.cfg.Policy().HeartbeatTimeout(), scheduled.GetHeartbeatTimeout().AsDuration())
		}
	}
}
