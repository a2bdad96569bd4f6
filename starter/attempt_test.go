package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"
	activitypb "go.temporal.io/api/activity/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
)

// refused is how an attempt ended whose agent did not reach its model.
func refused() *failurepb.Failure {
	return &failurepb.Failure{Message: "the API call failed: Connection refused"}
}

// timedOut is how an attempt ended that Temporal has given up.
func timedOut(kind enumspb.TimeoutType) *failurepb.Failure {
	info := &failurepb.TimeoutFailureInfo{TimeoutType: kind}
	return &failurepb.Failure{Message: "activity timeout", FailureInfo: &failurepb.Failure_TimeoutFailureInfo{TimeoutFailureInfo: info}}
}

func TestEffort(t *testing.T) {
	t.Parallel()
	const (
		waiting = enumspb.PENDING_ACTIVITY_STATE_SCHEDULED
		taken   = enumspb.PENDING_ACTIVITY_STATE_STARTED
	)
	at := func(after time.Duration) *timestamppb.Timestamp { return timestamppb.New(noon.Add(after)) }
	for name, test := range map[string]struct {
		pending *workflowpb.PendingActivityInfo
		heard   int // the attempt of the last heartbeat; 0 if there was none
		waits   string
		want    string
	}{
		"on its way to a worker": {
			pending: &workflowpb.PendingActivityInfo{State: waiting, Attempt: 1, ScheduledTime: at(-time.Second)},
		},
		"taken and not heard of": {
			pending: &workflowpb.PendingActivityInfo{State: taken, Attempt: 1, ScheduledTime: at(-time.Minute)},
		},
		"at work": {
			pending: &workflowpb.PendingActivityInfo{State: taken, Attempt: 1}, heard: 1,
			want: "attempt 1, by worker process 4711 on host-1",
		},
		"being cancelled": {
			pending: &workflowpb.PendingActivityInfo{State: enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED, Attempt: 1}, heard: 1,
			want: "attempt 1, by worker process 4711 on host-1",
		},
		"no worker is free": {
			pending: &workflowpb.PendingActivityInfo{State: waiting, Attempt: 1, ScheduledTime: at(-time.Minute)},
			waits:   "waits for a free worker",
			want:    "attempt 1 waits for a free worker on task queue claudeops-agents",
		},
		"no worker is free again": {
			pending: &workflowpb.PendingActivityInfo{
				State: waiting, Attempt: 2, ScheduledTime: at(-time.Minute), LastFailure: timedOut(enumspb.TIMEOUT_TYPE_HEARTBEAT),
			},
			heard: 1, waits: "waits for a free worker",
			want: "attempt 2 waits for a free worker on task queue claudeops-agents; attempt 1 ended: its worker was not heard of any more",
		},
		"it failed": {
			pending: &workflowpb.PendingActivityInfo{
				State: waiting, Attempt: 4, ScheduledTime: at(90 * time.Second), NextAttemptScheduleTime: at(90 * time.Second), LastFailure: refused(),
			},
			heard: 3, waits: "waits for the next attempt",
			want: "attempt 4 starts at 12:01:30; attempt 3 ended: the API call failed: Connection refused",
		},
		"at work again, and not heard of": {
			pending: &workflowpb.PendingActivityInfo{State: taken, Attempt: 2, LastFailure: timedOut(enumspb.TIMEOUT_TYPE_START_TO_CLOSE)}, heard: 1,
			want: "attempt 1 ended: its worker did not end it in time",
		},
		"at work again": {
			pending: &workflowpb.PendingActivityInfo{State: taken, Attempt: 2, LastFailure: refused()}, heard: 2,
			want: "attempt 2, by worker process 4711 on host-1; attempt 1 ended: the API call failed: Connection refused",
		},
		"paused": {
			pending: &workflowpb.PendingActivityInfo{State: enumspb.PENDING_ACTIVITY_STATE_PAUSED, Attempt: 1, ScheduledTime: at(-time.Minute)},
			waits:   "paused",
			want:    "attempt 1 is paused in Temporal",
		},
		"an agent's words": {
			pending: &workflowpb.PendingActivityInfo{
				State: taken, Attempt: 2, LastFailure: &failurepb.Failure{Message: "\x1b[2J\r\n" + strings.Repeat("x", 400)},
			},
			want: "attempt 1 ended: [2J  " + strings.Repeat("x", 300-6) + "…",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.pending.ActivityOptions = &activitypb.ActivityOptions{TaskQueue: &taskqueuepb.TaskQueue{Name: "claudeops-agents"}}
			now := sight{attempt: newTierAttempt(test.pending, noon)}
			if test.heard > 0 {
				now.progress = &activities.TierProgress{Host: "host-1", WorkerPID: 4711, Attempt: test.heard}
			}
			require.Equal(t, test.want, fixedApp().effort(now))
			require.Equal(t, test.waits, now.attempt.waits())
		})
	}
	require.Empty(t, fixedApp().effort(sight{}), "no session runs")
}

func TestTellerTellsEachAttemptOnce(t *testing.T) {
	t.Parallel()
	var told bytes.Buffer
	a := fixedApp()
	a.stdout = &told
	heard := func(number int) *activities.TierProgress {
		return &activities.TierProgress{SessionID: conversation(2), Host: "host-1", WorkerPID: 4711, Attempt: number}
	}
	const failure = "the API call failed: Connection refused"
	teller := &teller{app: a, event: "1", gates: make(map[string]bool)}
	for _, now := range []sight{
		{attempt: &tierAttempt{state: attemptStarted, number: 1}},
		{attempt: &tierAttempt{state: attemptQueued, number: 1, queue: "q"}},
		{attempt: &tierAttempt{state: attemptStarted, number: 1}, progress: heard(1)},
		{attempt: &tierAttempt{state: attemptScheduled, number: 2, startsAt: noon.Add(10 * time.Second), failure: failure}, progress: heard(1)},
		{attempt: &tierAttempt{state: attemptStarted, number: 2, failure: failure}, progress: heard(1)},
		{attempt: &tierAttempt{state: attemptStarted, number: 2, failure: failure}, progress: heard(2)},
		{attempt: &tierAttempt{state: attemptScheduled, number: 3, startsAt: noon.Add(40 * time.Second), failure: failure}, progress: heard(2)},
		{}, // Temporal did not tell
	} {
		now.chain = working()
		teller.saw(now)
		teller.saw(now)
	}
	require.Equal(t, []string{
		"12:00:00    attempt 1 waits for a free worker on task queue q",
		"12:00:00    attempt 1, by worker process 4711 on host-1",
		"12:00:00    attempt 1 ended: " + failure,
		"12:00:00    attempt 2 starts at 12:00:10",
		"12:00:00    attempt 2, by worker process 4711 on host-1",
		"12:00:00    attempt 2 ended: " + failure,
		"12:00:00    attempt 3 starts at 12:00:40",
		"",
	}, strings.Split(told.String(), "\n"))
}

func TestASessionThatRunsIsShownWithWhatItHasComeTo(t *testing.T) {
	t.Parallel()
	now := sight{chain: working(), live: true, progress: toolsInFlight(), attempt: &tierAttempt{state: attemptStarted, number: 2, failure: hostileFailure}}
	now.chain.ID = "chain-42"
	var b bytes.Buffer
	fixedApp().writeSight(&b, now)
	requireGolden(t, "tree-running.txt", b.Bytes())

	b.Reset()
	now.chain.Sessions[1].StartedAt = noon.Add(time.Minute)
	fixedApp().writeSight(&b, now)
	require.Contains(t, b.String(), "  0.0s  … running", "another clock is ahead")

	b.Reset()
	now.chain.Sessions[1].StartedAt = noon.Add(-72 * time.Hour)
	fixedApp().writeTree(&b, now.chain)
	require.NotContains(t, b.String(), "72h", "nobody knows until when a session of the records ran")
}

func TestTheTitleTellsWhatASessionWaitsFor(t *testing.T) {
	t.Parallel()
	model := watchModel{app: fixedApp(), seen: true, size: tea.WindowSizeMsg{Width: 80, Height: 24}}
	model.now = sight{chain: working(), attempt: &tierAttempt{state: attemptScheduled, number: 2, startsAt: noon}}
	require.Contains(t, model.title(model.now.chain), "  waits for the next attempt  ")
	model.now.chain.Outcome = escalation.OutcomeFailed
	require.Contains(t, model.title(model.now.chain), "  failed  ")
}

// TestAttemptsOnARealServer follows a chain whose model is not reachable, and looks at one that gets no
// worker because the only one is busy.
func TestAttemptsOnARealServer(t *testing.T) {
	t.Parallel()
	seen := filepath.Join(t.TempDir(), "seen") // an attempt lasts until it was seen
	environ := startInstallation(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "take long"}, claudesim.Bash("sleep 300")),
		claudesim.Always(claudesim.Bash("until rm "+seen+"; do sleep 0.1; done"), claudesim.Fail(claudesim.StatusRefused, ""))),
		"CLAUDEOPS_MAX_CONCURRENT_AGENTS=1", "CLAUDEOPS_API_RETRIES=0", "CLAUDEOPS_DRAIN_TIMEOUT=1s",
		"CLAUDEOPS_TIER1_TOOLS=Bash")
	b := scheduleBench{t: t, environ: environ}
	shows := func(id, want string) string {
		t.Helper()
		pattern := regexp.MustCompile(want)
		var shown string
		require.Eventually(t, func() bool {
			shown = starter(t, environ, "chain", id).stdout
			return pattern.MatchString(shown)
		}, 2*time.Minute, 250*time.Millisecond, want)
		return shown
	}

	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var printed transcript
	left := make(chan exitCode, 1)
	go func() {
		left <- execute(ctx, process{
			args: []string{"run", "--id", "unreachable", "--wait"}, environ: environ, stdin: strings.NewReader(""),
			stdout: &printed, stderr: &printed, now: time.Now, patience: screenTimeout,
		})
	}()
	printed.sees(t, "attempt 1, by worker process ")
	require.NoError(t, os.WriteFile(seen, nil, 0o600))
	printed.sees(t, "attempt 2, by worker process ") // the pause before it may be over before the next look
	require.NoError(t, os.WriteFile(seen, nil, 0o600))
	printed.sees(t, "attempt 3 starts at ") // after half a minute
	shown := shows("unreachable", `    attempt 3 starts at .*; attempt 2 ended: `)
	require.NotContains(t, shown, "  0.0s  … running")
	leave()
	<-left
	for _, once := range []string{
		"attempt 1, by worker process ", "attempt 1 ended: ", "attempt 2, by worker process ", "attempt 2 ended: ", "attempt 3 starts at ",
	} {
		require.Equal(t, 1, strings.Count(printed.text(), once), printed.text())
	}

	b.must("cancel", "unreachable")
	b.must("run", "--id", "busy", "--prompt", "take long")
	shows("busy", "    attempt 1, by worker process ")
	b.must("run", "--id", "queued", "--prompt", "take long")
	shows("queued", "    attempt 1 waits for a free worker on task queue claudeops-agents\n")
}
