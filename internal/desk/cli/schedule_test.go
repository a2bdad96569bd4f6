package cli

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/calendar"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/internal/systemtest/notifytest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// scheduleBench is a real server with a worker. Its agents run until the test releases them.
type scheduleBench struct {
	t       *testing.T
	environ []string
	workDir string
	claude  string
}

// describe returns the schedule.
func (b scheduleBench) describe(id string) operations.ScheduleDetail {
	b.t.Helper()
	return b.until(id, "it is there", func(operations.ScheduleDetail) bool { return true })
}

// asks runs a command and decodes its JSON output into v. It returns false if the command fails.
func (b scheduleBench) asks(v any, args ...string) bool {
	got := starter(b.t, b.environ, append(args, "-o", "json")...)
	return got.Code == program.ExitOK && json.Unmarshal([]byte(got.Stdout), v) == nil
}

// must runs a command, and fails the test if the command fails.
func (b scheduleBench) must(args ...string) clitest.Result {
	b.t.Helper()
	got := starter(b.t, b.environ, args...)
	require.Equal(b.t, program.ExitOK, got.Code, got.Stderr)
	return got
}

// until waits until reached returns true for the schedule, and returns the schedule.
func (b scheduleBench) until(id, what string, reached func(operations.ScheduleDetail) bool) operations.ScheduleDetail {
	b.t.Helper()
	var last operations.ScheduleDetail
	require.Eventually(b.t, func() bool {
		last = operations.ScheduleDetail{}
		return b.asks(&last, "schedule", "describe", id) && reached(last)
	}, clitest.Timeout, 300*time.Millisecond, what)
	return last
}

// hold makes agents that start from now on run until release is called.
func (b scheduleBench) hold() (release func()) {
	b.t.Helper()
	file := filepath.Join(b.workDir, "hold")
	require.NoError(b.t, os.WriteFile(file, []byte(rand.Text()), 0o600))
	return func() { require.NoError(b.t, os.Remove(file)) }
}

func startScheduleBench(t *testing.T, notifyURL string) scheduleBench {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	b := scheduleBench{t: t, workDir: t.TempDir()}
	b.claude = simtest.Install(t, claudesim.Play(claudesim.Always(
		claudesim.Bash(`while [ -e hold ]; do cp hold "held-$CLAUDEOPS_CHAIN_ID" || :; sleep 0.1; done`),
		claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all is well"}))))
	b.environ = startInstalled(t, b.claude, "CLAUDEOPS_WORK_DIR="+b.workDir, "CLAUDEOPS_TIER1_TOOLS=Bash",
		"CLAUDEOPS_NOTIFY_URLS="+notifyURL, "CLAUDEOPS_TRANSCRIPTS=none", "CLAUDEOPS_MAX_CONCURRENT_AGENTS=4")
	return b
}

// TestScheduleThroughTenCycles drives a real schedule: cycles in time, overlapping cycles, and a waiting chain that
// does not delay later cycles. It then pauses, triggers, resumes and deletes the schedule.
func TestScheduleThroughTenCycles(t *testing.T) {
	t.Parallel()
	people := notifytest.Start(t)
	b := startScheduleBench(t, people.Generic())

	created := b.must("schedule", "create", "looks", "--every", "2s", "--service", "nas", "--model", "tier1=claude-special", "--prompt", "be quick", "--actor", "grace")
	require.Contains(t, created.Stdout, "Created schedule looks, every 2s.")
	require.Contains(t, created.Stdout, "a month: 1296000 looks at $0.50 (its whole budget, because no price of claude-special is known)")
	again := starter(t, b.environ, "schedule", "create", "looks", "--every", "1h")
	require.Equal(t, program.ExitFailure, again.Code)
	require.Contains(t, again.Stderr, "schedule looks exists already")
	b.until("looks", "four cycles", func(s operations.ScheduleDetail) bool { return s.Cycles >= 4 })

	// A slow cycle: cycles that become due meanwhile are skipped, and people are notified.
	release := b.hold()
	before := b.describe("looks").Skipped
	overlapped := b.until("looks", "skipped cycles", func(s operations.ScheduleDetail) bool { return s.Skipped >= before+2 })
	toldBefore := len(people.Received())
	release()
	require.Eventually(t, func() bool { return len(people.Received()) > toldBefore }, clitest.Timeout, clitest.Look, "nobody was told of skipped cycles")
	told := people.Received()
	require.Contains(t, told[len(told)-1], "skipped because the one before still ran")
	require.Contains(t, told[len(told)-1], "claudeops schedule describe looks")

	// A chain that waits for a long time signals so, and later cycles are not delayed.
	release = b.hold()
	running := b.until("looks", "a running cycle", func(s operations.ScheduleDetail) bool { return len(s.Running) == 1 && b.isHeld(s.Running[0]) })
	waiting := chainOfCycle(running.Running[0])
	b.signal(waiting, workflows.WaitingSignal)
	after := b.until("looks", "a cycle after the one that waits", func(s operations.ScheduleDetail) bool { return s.Cycles > running.Cycles })
	require.NotContains(t, after.Running, running.Running[0])
	var chain escalation.Chain
	require.NoError(t, json.Unmarshal([]byte(b.must("chain", waiting, "-o", "json").Stdout), &chain))
	require.Empty(t, chain.Outcome, "it still runs")
	require.Equal(t, "grace", chain.Actor, "four eyes are hers and another's")
	release()

	// A paused schedule starts no cycle, trigger starts one cycle, and resume starts regular cycles again.
	b.must("schedule", "pause", "looks", "--note", "maintenance")
	paused := b.until("looks", "the last cycle before the pause", func(s operations.ScheduleDetail) bool { return s.Paused && len(s.Running) == 0 })
	require.Equal(t, "maintenance", paused.Note)
	require.Empty(t, paused.Next)
	time.Sleep(5 * time.Second)
	require.Equal(t, paused.Cycles, b.describe("looks").Cycles, "it is paused")

	// An update changes what its flags say, and nothing else.
	b.must("schedule", "update", "looks", "--every", "3s", "--service", "web")
	updated := b.describe("looks")
	require.Equal(t, "every 3s", updated.When)
	require.Equal(t, paused.Jitter, updated.Jitter)
	require.True(t, updated.Paused)
	require.Equal(t, "grace", updated.Actor)
	var input, was workflows.ChainInput
	require.NoError(t, json.Unmarshal(updated.Input, &input))
	require.NoError(t, json.Unmarshal(paused.Input, &was))
	was.Services = []string{"web"}
	require.Equal(t, was, input)
	b.must("schedule", "update", "looks", "--every", "2s", "--service", "nas")
	b.must("schedule", "trigger", "looks")
	b.until("looks", "the triggered cycle", func(s operations.ScheduleDetail) bool { return s.Cycles == paused.Cycles+1 && len(s.Running) == 0 })
	b.must("schedule", "resume", "looks")
	last := b.until("looks", "ten cycles", func(s operations.ScheduleDetail) bool { return s.Cycles >= max(10, paused.Cycles+3) })
	require.JSONEq(t, `{"trigger":"scheduled","prompt":"be quick","services":["nas"],"models":{"1":"claude-special"},"actor":"grace"}`, string(last.Input))
	require.Equal(t, "grace", last.Actor)
	require.Equal(t, "may repair, as far as the workers permit it (CLAUDEOPS_MAX_TIER)", last.May)
	last = b.until("looks", "the costs of chains", func(s operations.ScheduleDetail) bool { return s.Runs != nil && s.Runs.Ended >= 5 })
	require.Positive(t, last.Runs.CostUSD)
	require.Equal(t, last.Chains[0], last.Runs.Last)
	require.Contains(t, last.Recent, strings.Replace(last.Chains[0].ID, "chain-", "cycle-", 1))
	require.True(t, last.Chains[0].StartedAt.After(last.Chains[1].StartedAt), "the latest first")

	require.Eventually(t, func() bool {
		listed := starter(t, b.environ, "schedule", "list").Stdout
		return strings.Contains(listed, "every 2s") && strings.Contains(listed, "may repair") && strings.Contains(listed, "healthy")
	}, clitest.Timeout, 200*time.Millisecond)
	require.Equal(t, "Schedule looks: deleted.\n", b.must("schedule", "delete", "looks").Stdout)
	chains, sessions := b.requireOwnConversations(last.Cycles)
	t.Logf("schedule every 2s: %d cycles, %d skipped while one ran (%d when the first slow one ended), %d notifications; "+
		"1 chain waited and held up none; 0 cycles in 5 s of pause, 1 by trigger; %d chains with %d conversations, all their own",
		last.Cycles, last.Skipped, overlapped.Skipped, len(people.Received()), chains, sessions)
}

// requireOwnConversations checks that each scheduled chain began a conversation of its own and used no other. It
// returns the number of chains and of conversations.
func (b scheduleBench) requireOwnConversations(cycles int) (chains, conversations int) {
	b.t.Helper()
	var rows []operations.Row
	require.Eventually(b.t, func() bool {
		rows = nil
		return b.asks(&rows, "chains", "--trigger", "scheduled", "--limit", "100") && len(rows) >= cycles && !slices.ContainsFunc(rows, func(row operations.Row) bool { return row.Status != "completed" })
	}, clitest.Timeout, 500*time.Millisecond, "not every cycle had a chain that ended")
	seen := map[string]bool{}
	for _, row := range rows {
		require.Equal(b.t, "healthy", row.Outcome)
		require.Regexp(b.t, `^chain-looks-\d{4}-`, row.ID)
		var chain escalation.Chain
		require.NoError(b.t, json.Unmarshal([]byte(b.must("chain", row.ID, "-o", "json").Stdout), &chain))
		require.Equal(b.t, escalation.TriggerScheduled, chain.Trigger)
		for _, session := range chain.Sessions {
			require.Equal(b.t, "claude-special", session.Model)
			require.Zero(b.t, session.ParentID)
			require.Equal(b.t, escalation.ContinuityFresh, session.Continuity)
			require.False(b.t, seen[session.SessionID], "two chains share a conversation")
			seen[session.SessionID] = true
		}
	}
	for _, launch := range simtest.Launches(b.t, b.claude) {
		require.NotContains(b.t, launch.Args, "--resume")
		require.NotContains(b.t, launch.Args, "--continue")
	}
	return len(rows), len(seen)
}

// isHeld reports whether the agent of a cycle waits for the release of the latest hold.
func (b scheduleBench) isHeld(cycle string) bool {
	hold, err := os.ReadFile(filepath.Join(b.workDir, "hold"))
	held, _ := os.ReadFile(filepath.Join(b.workDir, "held-"+chainOfCycle(cycle))) // a missing file does not equal the hold
	return err == nil && len(hold) > 0 && bytes.Equal(hold, held)
}

// chainOfCycle returns the ID of the chain that a cycle starts.
func chainOfCycle(cycle string) string { return strings.Replace(cycle, "cycle-", "chain-", 1) }

// chainOf returns the chain of a cycle; false if `chain` fails.
func (b scheduleBench) chainOf(cycle string) (chain escalation.Chain, ok bool) {
	ok = b.asks(&chain, "chain", chainOfCycle(cycle))
	return chain, ok
}

// signal sends a signal to a workflow.
func (b scheduleBench) signal(id, name string) {
	b.t.Helper()
	c := b.client()
	require.NoError(b.t, c.SignalWorkflow(b.t.Context(), id, "", name, nil))
}

func (b scheduleBench) client() client.Client {
	b.t.Helper()
	cfg, err := config.Load(b.environ)
	require.NoError(b.t, err)
	options, err := supervisor.ConnectionOptions(b.environ, cfg, (&console.Console{Process: program.Process{Stderr: io.Discard}}).QuietLogger())
	require.NoError(b.t, err)
	c, err := supervisor.Connect(b.t.Context(), options)
	require.NoError(b.t, err)
	b.t.Cleanup(c.Close)
	return c
}

func TestSchedulesOnARealServer(t *testing.T) {
	t.Parallel()
	b := startScheduleBench(t, "")
	require.Equal(t, "No schedules.\n", b.must("schedule", "list").Stdout)

	// Errors that only Temporal can detect are printed in one sentence, too.
	for args, want := range map[string]string{
		"--cron=every now and then":            "schedule x: Temporal refuses it: ",
		"--cron=61 * * * *":                    "schedule x: Temporal refuses it: ",
		"--cron=@daily --timezone=Mars/Crater": "schedule x: Temporal refuses it: ",
	} {
		flags := []string{"schedule", "create", "x"}
		for flag := range strings.SplitSeq(args, " --") {
			flags = append(flags, "--"+strings.TrimPrefix(flag, "--"))
		}
		got := starter(t, b.environ, flags...)
		require.Equal(t, program.ExitUsage, got.Code, got.Stderr)
		require.Contains(t, got.Stderr, want)
		require.Equal(t, 1, strings.Count(got.Stderr, "\n"), got.Stderr)
		require.Contains(t, starter(t, b.environ, "schedule", "describe", "x").Stderr, "there is no schedule x", "nothing was made of it")
	}
	for _, command := range []string{"describe", "pause", "resume", "trigger", "delete"} {
		got := starter(t, b.environ, "schedule", command, "nobody")
		require.Equal(t, program.ExitFailure, got.Code, got.Stderr)
		require.Equal(t, "claudeops: there is no schedule nobody; `claudeops schedule list` shows those that are\n", got.Stderr, command)
	}

	b.must("schedule", "create", "nightly", "--cron", "30 2 * * MON-FRI", "--timezone", "Europe/Berlin", "--overlap", "buffer_one", "--jitter", "5m",
		"--catchup-window", "30s", "--pause-on-failure", "--paused", "--note", "for the nights", "--dry-run", "--max-tier", "2",
		"--actor", "Ada Lovelace")
	detail := b.describe("nightly")
	require.Equal(t, "30 2 * * MON-FRI (Europe/Berlin)", detail.When)
	require.Equal(t, "buffer_one", detail.Overlap)
	require.Equal(t, escalation.Duration(5*time.Minute), detail.Jitter)
	require.Equal(t, escalation.Duration(30*time.Second), detail.CatchupWindow)
	require.True(t, detail.PauseOnFailure)
	require.True(t, detail.Paused)
	shown := b.must("schedule", "describe", "nightly").Stdout
	require.Regexp(t, `State +paused \(for the nights\)`, shown)
	require.Regexp(t, `Input +\{"trigger":"scheduled","dry_run":true,"max_tier":2,"actor":"Ada Lovelace"\}`, shown)
	require.Regexp(t, `Actor +Ada Lovelace\n`, shown)

	// In the night in which the clocks skip 02:30, it starts when they continue. What an update does not name stays.
	york, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	changes := calendar.Changes(time.Now().In(york), time.Now().Add(400*24*time.Hour))
	spring, autumn := changes[0], changes[1]
	if spring.By < 0 {
		spring, autumn = autumn, spring
	}
	cron := fmt.Sprintf("30 2 %d %d * %d", spring.At.Day(), spring.At.Month(), spring.At.Year())
	b.must("schedule", "create", "spring", "--cron", cron, "--timezone", "America/New_York", "--model", "tier2=opus")
	b.must("schedule", "update", "spring", "--model", "tier3=haiku", "--note", "x")
	detail = b.describe("spring")
	require.Equal(t, cron+" (America/New_York)", detail.When)
	require.Len(t, detail.Next, 1)
	require.WithinDuration(t, spring.At, detail.Next[0], 0)
	require.JSONEq(t, `{"2":"opus","3":"haiku"}`, modelsOf(t, detail.Input))
	// In the night in which they show it twice, it starts the first time.
	cron = fmt.Sprintf("30 1 %d %d * %d", autumn.At.Day(), autumn.At.Month(), autumn.At.Year())
	b.must("schedule", "update", "spring", "--cron", cron)
	detail = b.describe("spring")
	require.Equal(t, cron+" (America/New_York)", detail.When)
	require.Len(t, detail.Next, 1)
	require.WithinDuration(t, autumn.At.Add(-30*time.Minute), detail.Next[0], time.Second)
	b.must("schedule", "update", "spring", "--cron", "@daily")
	require.Equal(t, "@daily (America/New_York)", b.describe("spring").When)

	// A schedule that `temporal` has made starts nothing at a time that is skipped, until it is updated.
	_, err = b.client().ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID: "plain", Spec: client.ScheduleSpec{TimeZoneName: "America/New_York", CronExpressions: []string{"30 2 * * *"}},
		Action: &client.ScheduleWorkflowAction{
			Workflow: workflows.CycleWorkflow, TaskQueue: "nowhere", Args: []any{workflows.ChainInput{}},
		}, Paused: true,
	})
	require.NoError(t, err)
	require.Contains(t, starter(t, b.environ, "doctor").Stdout, "renew them with `claudeops schedule update plain`\n")
	b.must("schedule", "update", "plain")
	require.Contains(t, starter(t, b.environ, "doctor").Stdout, "✓ schedules")
	b.must("schedule", "delete", "plain")

	// The defaults, and a schedule that pauses itself because its chains fail.
	b.must("schedule", "create", "broken", "--every", "1s", "--pause-on-failure", "--repository", "/nowhere")
	detail = b.until("broken", "it pauses itself", func(s operations.ScheduleDetail) bool { return s.Paused })
	require.Equal(t, "skip", detail.Overlap)
	require.Equal(t, escalation.Duration(time.Minute), detail.CatchupWindow)
	require.Equal(t, "every 1s", detail.When)
	require.NotEmpty(t, detail.Recent)
	failed := starter(t, b.environ, "chain", chainOfCycle(detail.Recent[0]))
	require.Contains(t, failed.Stdout, "Outcome: failed", failed.Stderr)
	require.Contains(t, failed.Stdout, `repository "/nowhere" is none that CLAUDEOPS_REPOSITORIES lists`)
}

func modelsOf(t *testing.T, input json.RawMessage) string {
	t.Helper()
	var said struct{ Models json.RawMessage }
	require.NoError(t, json.Unmarshal(input, &said))
	return string(said.Models)
}
