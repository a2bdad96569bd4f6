package operations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// TestWaitsFor checks what a person reads about the activity on which a chain waits.
func TestWaitsFor(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pending := func(name string, state enumspb.PendingActivityState, age time.Duration, failure string) *workflowpb.PendingActivityInfo {
		info := &workflowpb.PendingActivityInfo{
			ActivityType: &commonpb.ActivityType{Name: name}, State: state, ScheduledTime: timestamppb.New(now.Add(-age)), Attempt: 1,
		}
		if failure != "" {
			info.Attempt, info.LastFailure = 4, &failurepb.Failure{Message: failure}
		}
		return info
	}
	const scheduled, started = enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, enumspb.PENDING_ACTIVITY_STATE_STARTED
	for name, tt := range map[string]struct {
		pending *workflowpb.PendingActivityInfo
		want    string // after ten seconds
		atOnce  bool
	}{
		"a database that takes no writes": {
			pending("OpenSession", scheduled, time.Second, "the database takes no writes"), "OpenSession, which is tried again: the database takes no writes",
			true,
		},
		"no worker":      {pending("LoadPolicy", scheduled, time.Minute, ""), "a worker that takes LoadPolicy from the queue ", false},
		"just scheduled": {pending("LoadPolicy", scheduled, time.Second, ""), "", false},
		"at work":        {pending("OpenSession", started, time.Minute, ""), "", false},
		"an agent":       {pending(activities.AgentActivities()[0], scheduled, time.Minute, "the API is overloaded"), "", false},
		"notifications":  {pending(activities.NotifyActivity, scheduled, time.Minute, "connection refused"), "", false},
	} {
		all, data := []*workflowpb.PendingActivityInfo{tt.pending}, converter.GetDefaultDataConverter()
		require.Equal(t, tt.want, waitsFor(all, data, now, true), name)
		if !tt.atOnce {
			tt.want = ""
		}
		require.Equal(t, tt.want, waitsFor(all, data, now, false), name)
	}
}

// TestNewsOfAChain checks when a chain counts as silent: not while an agent works, a person is asked, or something
// changes.
func TestNewsOfAChain(t *testing.T) {
	t.Parallel()
	before := time.Now().Add(-time.Hour)
	quiet := news{since: before}
	silent := Snapshot{Chain: escalation.Chain{ID: "chain"}}
	require.False(t, quiet.longAgo(silent), "the first look is news")
	quiet.since = before
	require.True(t, quiet.longAgo(silent))
	changed := silent
	changed.Chain.Events = []escalation.Event{{Key: "run/1"}}
	require.False(t, quiet.longAgo(changed))
	quiet.since = before
	works := changed
	works.Progress = &activities.TierProgress{}
	require.False(t, quiet.longAgo(works))
	quiet.since = before
	asks := changed
	asks.Chain.Gates = []escalation.Gate{{ID: "gate-1"}}
	require.False(t, quiet.longAgo(asks))
}
