package escalation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

// TestHeartbeatTimeout checks that three heartbeats fit into half of the timeout, after which a worker stops its agent.
func TestHeartbeatTimeout(t *testing.T) {
	t.Parallel()
	for interval, timeout := range map[time.Duration]time.Duration{
		0: 30 * time.Second, time.Second: 30 * time.Second, 5 * time.Second: 30 * time.Second,
		8 * time.Second: 48 * time.Second, 10 * time.Second: time.Minute,
	} {
		policy := escalation.Policy{Heartbeat: escalation.Duration(interval)}
		require.Equal(t, timeout, policy.HeartbeatTimeout(), "%s", interval)
		require.GreaterOrEqual(t, policy.HeartbeatTimeout()/2, 3*policy.HeartbeatInterval())
	}
}
