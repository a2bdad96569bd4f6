package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/prompts"
)

const (
	ownID    = "11111111-1111-4111-8111-111111111111"
	parentID = "22222222-2222-4222-8222-222222222222"
)

// fakeAgent returns the next of its replies for each run, and stores the runs.
type fakeAgent struct {
	replies       []agentReply
	conversations map[string]bool
	concluded     map[string]*activities.AgentReport
	unreachable   error // the error of HasConversation
	runs          []activities.AgentRun
}

type agentReply struct {
	report   activities.AgentReport
	err      error
	progress []activities.AgentProgress
}

var _ activities.Agent = (*fakeAgent)(nil)

func (f *fakeAgent) Run(
	_ context.Context, run activities.AgentRun, observe func(activities.AgentProgress),
) (activities.AgentReport, error) {
	if run.LatePrompt != nil {
		var err error
		if run.Prompt, err = run.LatePrompt(); err != nil {
			return activities.AgentReport{}, err
		}
	}
	f.runs = append(f.runs, run)
	reply := f.replies[len(f.runs)-1]
	for _, p := range reply.progress {
		observe(p)
	}
	return reply.report, reply.err
}

func (f *fakeAgent) HasConversation(_ context.Context, _, sessionID string) (bool, error) {
	return f.conversations[sessionID], f.unreachable
}

func (f *fakeAgent) Concluded(_ context.Context, sessionID, _ string) (*activities.AgentReport, error) {
	return f.concluded[sessionID], nil
}

// acceptingHeartbeats accepts every heartbeat.
type acceptingHeartbeats struct{}

var _ activities.Heartbeats = acceptingHeartbeats{}

func (acceptingHeartbeats) RecordActivityHeartbeat(context.Context, []byte, ...any) error { return nil }

// finished returns a reply that completes with this output after spending costUSD.
func finished(output string, costUSD float64) agentReply {
	var reply agentReply
	reply.report.Status, reply.report.CostUSD, reply.report.Turns = escalation.SessionCompleted, costUSD, 2
	reply.report.Tokens = escalation.TokenUsage{Input: 10, Output: 5}
	if output != "" {
		reply.report.Output = json.RawMessage(output)
	}
	return reply
}

func newTiers(t *testing.T, agent *fakeAgent) *activities.Tiers {
	t.Helper()
	texts, err := prompts.Load(prompts.Overrides{})
	require.NoError(t, err)
	return &activities.Tiers{
		Agent: agent, Prompts: texts, Heartbeats: acceptingHeartbeats{}, Host: "host-1",
		Briefs: func(tier escalation.Tier) string { return "- what is granted to " + tier.String() },
	}
}

func runTier(t *testing.T, agent *fakeAgent, input activities.RunTierInput, past *activities.TierProgress) (escalation.Report, error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	tiers := newTiers(t, agent)
	env.RegisterActivity(tiers)
	if past != nil {
		env.SetHeartbeatDetails(*past)
	}
	encoded, err := env.ExecuteActivity(tiers.RunTier, input)
	if err != nil {
		return escalation.Report{}, err
	}
	var result activities.RunTierResult
	require.NoError(t, encoded.Get(&result))
	return result.Report, nil
}

func tierInput(tier escalation.Tier, continuity escalation.Continuity) activities.RunTierInput {
	policy := escalation.Policy{MaxTier: 3, Continuity: escalation.ContinuityAuto, ResumeThreshold: 0.8}
	for _, model := range []string{"haiku", "sonnet", "opus"} {
		policy.Tiers = append(policy.Tiers, escalation.TierPolicy{
			Model: model, Tools: []string{"Bash"},
			Timeout: escalation.Duration(time.Hour),
		})
	}
	return activities.RunTierInput{
		ChainID: "chain-1", SessionID: ownID, Tier: tier, Policy: policy, Services: []string{"jellyfin"},
		Request: "why is it slow", Continuity: continuity,
	}
}

const healthy = `{"status":"healthy","summary":"all is well"}`

func TestRunTierLaunches(t *testing.T) {
	t.Parallel()
	resumed := tierInput(2, escalation.ContinuityResume)
	resumed.ParentTier, resumed.ParentSessionID = 1, parentID
	handedOff := tierInput(2, escalation.ContinuityHandoff)
	handedOff.ParentTier, handedOff.ParentSessionID = 1, parentID
	handoff := escalation.NewHandoff(1, 2, &escalation.Verdict{Summary: "the proxy answers 502"}, nil)
	handedOff.Handoff = &handoff
	dryRun := tierInput(3, escalation.ContinuityFresh)
	dryRun.Policy.DryRun = true

	tests := map[string]struct {
		input      activities.RunTierInput
		wantResume string
		wantPrompt []string
	}{
		"fresh":   {tierInput(1, escalation.ContinuityFresh), "", []string{"jellyfin", "why is it slow", "- what is granted to tier 1\n"}},
		"resume":  {resumed, parentID, []string{"- what is granted to tier 2\n"}},
		"handoff": {handedOff, "", []string{"the proxy answers 502", "- what is granted to tier 2\n"}},
		"dry run": {dryRun, "", []string{"- what is granted to tier 1\n"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := &fakeAgent{replies: []agentReply{finished(healthy, 0.1)}}
			report, err := runTier(t, agent, tt.input, nil)
			require.NoError(t, err)
			require.Equal(t, escalation.VerdictHealthy, report.Verdict.Status)
			require.Equal(t, "host-1", report.Host)
			require.Equal(t, 1, report.Attempts)

			require.Len(t, agent.runs, 1)
			run := agent.runs[0]
			require.Equal(t, ownID, run.SessionID)
			require.Equal(t, tt.wantResume, run.Resume)
			require.Equal(t, escalation.VerdictSchema, run.Schema)
			require.WithinDuration(t, time.Now(), run.Now(), time.Hour)
			require.Equal(t, tt.input.Policy.For(tt.input.Tier), run.Policy)
			for _, want := range tt.wantPrompt {
				require.Contains(t, run.Prompt, want)
			}
		})
	}
}

func TestRunTierHandoffWithoutDocument(t *testing.T) {
	t.Parallel()
	agent := &fakeAgent{}
	_, err := runTier(t, agent, tierInput(2, escalation.ContinuityHandoff), &activities.TierProgress{
		Host: "host-0", Attempt: 1, Spent: escalation.Report{Cost: escalation.Cost{CostUSD: 0.5}},
	})
	var refused *temporal.ApplicationError
	require.ErrorAs(t, err, &refused)
	require.True(t, refused.NonRetryable())
	require.Equal(t, activities.ErrorTypePrompt, refused.Type())
	require.Equal(t, "prompt of tier 2: there is no handoff to start from", refused.Message())
	require.InDelta(t, 0.5, activities.SpentBefore(err).CostUSD, 1e-9, "what earlier attempts spent counts")
	require.Empty(t, agent.runs)
}

func TestRunTierGoesOnAfterAnInterruption(t *testing.T) {
	t.Parallel()
	agent := &fakeAgent{replies: []agentReply{finished(healthy, 0.1)}, conversations: map[string]bool{ownID: true}}
	input := tierInput(2, escalation.ContinuityResume)
	input.ParentSessionID = parentID

	report, err := runTier(t, agent, input, &activities.TierProgress{
		Spent:    escalation.Report{Cost: escalation.Cost{CostUSD: 1}, Turns: 5},
		Now:      activities.AgentProgress{CostUSD: 0.5, Turns: 2, Tokens: escalation.TokenUsage{Input: 100}},
		InFlight: []activities.ToolCall{{Name: "Bash", Input: "docker restart jellyfin"}, {Name: "Bash", Input: "docker restart caddy"}},
	})
	require.NoError(t, err)
	require.Equal(t, ownID, agent.runs[0].Resume, "it goes on with its own conversation, not the parent's")
	require.Contains(t, agent.runs[0].Prompt, "docker restart jellyfin")
	require.Contains(t, agent.runs[0].Prompt, "docker restart caddy")
	require.InDelta(t, 1.6, report.CostUSD, 1e-9, "what was spent before counts")
	require.True(t, report.CostEstimated)
	require.True(t, report.Interrupted)
	require.Equal(t, 9, report.Turns)
	require.Equal(t, 110, report.Tokens.Input)
}

// TestRunTierBeginsAgain covers an earlier process that may not have read its prompt, or that left no conversation. The
// agent gets the opening prompt again, with a note about that process.
func TestRunTierBeginsAgain(t *testing.T) {
	t.Parallel()
	const note = "This session was started before"
	call := activities.ToolCall{Name: "Bash", Input: "docker restart jellyfin"}
	tests := map[string]struct {
		known      bool
		past       *activities.TierProgress
		wantResume string
		wantNote   bool
	}{
		"first attempt": {false, nil, parentID, false},
		"conversation lost": {
			false, &activities.TierProgress{Spent: escalation.Report{Turns: 2}, InFlight: []activities.ToolCall{call}}, parentID, true,
		},
		"cut off before its first turn": {true, &activities.TierProgress{InFlight: []activities.ToolCall{call}}, ownID, true},
		"chain reset":                   {true, nil, ownID, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := &fakeAgent{replies: []agentReply{finished(healthy, 0.1)}, conversations: map[string]bool{ownID: tt.known}}
			input := tierInput(2, escalation.ContinuityResume)
			input.ParentTier, input.ParentSessionID = 1, parentID
			report, err := runTier(t, agent, input, tt.past)
			require.NoError(t, err)
			require.Equal(t, tt.known, report.Interrupted)
			require.Equal(t, tt.wantResume, agent.runs[0].Resume)
			require.Contains(t, agent.runs[0].Prompt, "- what is granted to tier 2", "it must be told its work")
			require.Equal(t, tt.wantNote, strings.Contains(agent.runs[0].Prompt, note))
			require.Equal(t, tt.past != nil, strings.Contains(agent.runs[0].Prompt, call.Input))
		})
	}
}

func TestRunTierRepairsAVerdict(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		replies []agentReply
		want    escalation.VerdictStatus
		summary string
	}{
		"missing, then given": {[]agentReply{finished("", 0.1), finished(healthy, 0.2)}, escalation.VerdictHealthy, "all is well"},
		"invalid, then given": {
			[]agentReply{finished(`{"status":"fine"}`, 0.1), finished(healthy, 0.2)}, escalation.VerdictHealthy, "all is well",
		},
		"missing twice": {
			[]agentReply{finished("", 0.1), finished("", 0.2)},
			escalation.VerdictFailed,
			"The agent gave no valid verdict, even when asked again: it ended without its structured verdict.",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := &fakeAgent{replies: tt.replies}
			report, err := runTier(t, agent, tierInput(1, escalation.ContinuityFresh), nil)
			require.NoError(t, err)
			require.Equal(t, escalation.SessionCompleted, report.Status)
			require.Equal(t, tt.want, report.Verdict.Status)
			require.Equal(t, tt.summary, report.Verdict.Summary)
			require.Len(t, agent.runs, 2)
			require.Empty(t, agent.runs[0].Resume)
			require.Equal(t, ownID, agent.runs[1].Resume, "in the same conversation")
			require.NotEqual(t, agent.runs[0].Prompt, agent.runs[1].Prompt)
			require.Less(t, agent.runs[1].Policy.Timeout, agent.runs[0].Policy.Timeout)
			require.Empty(t, agent.runs[1].Policy.Tools, "it can do no further work")
			require.NotEmpty(t, agent.runs[0].Policy.Tools)
			require.InDelta(t, 0.3, report.CostUSD, 1e-9)
			require.Equal(t, 4, report.Turns)
		})
	}
}

func TestRunTierResultsWithoutAVerdict(t *testing.T) {
	t.Parallel()
	for _, status := range []escalation.SessionStatus{
		escalation.SessionTimedOut, escalation.SessionBudgetExhausted, escalation.SessionResumeFailed,
		escalation.SessionTranscriptLost, escalation.SessionFailed, escalation.SessionStopped,
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			reply := finished("", 0.4)
			reply.report.Status, reply.report.Error = status, "why"
			agent := &fakeAgent{replies: []agentReply{reply}}
			report, err := runTier(t, agent, tierInput(1, escalation.ContinuityFresh), nil)
			require.NoError(t, err, "what could be judged is a result")
			require.Equal(t, status, report.Status)
			require.Nil(t, report.Verdict)
			require.InDelta(t, 0.4, report.CostUSD, 1e-9)
			require.Len(t, agent.runs, 1, "there is nothing to repair")
		})
	}
}

func TestRunTierSpendsItsBudgetOnce(t *testing.T) {
	t.Parallel()
	attempt := func(spent float64) *activities.TierProgress {
		return &activities.TierProgress{
			Spent: escalation.Report{Cost: escalation.Cost{CostUSD: spent - 0.25}, ReportedSessionID: ownID},
			Now:   activities.AgentProgress{CostUSD: 0.25}, // the process that was cut off
		}
	}
	tests := map[string]struct {
		granted, configured float64
		past                *activities.TierProgress
		costs               []float64 // one per process
		valid               bool      // whether the last process gives a verdict
		want                []float64 // one budget per process
		status              escalation.SessionStatus
		reason              string
	}{
		"no cap":                  {0, 0, attempt(5), []float64{0.1, 0.1}, true, []float64{0, 0}, escalation.SessionCompleted, ""},
		"the tier's":              {0, 1, nil, []float64{0.1}, true, []float64{1}, escalation.SessionCompleted, ""},
		"granted, not the tier's": {3, 1, nil, []float64{0.1}, true, []float64{3}, escalation.SessionCompleted, ""},
		"less after an attempt":   {3, 0, attempt(1), []float64{0.1}, true, []float64{2}, escalation.SessionCompleted, ""},
		"less for the repair turn": {
			3, 0, attempt(1), []float64{0.5, 0.5}, true, []float64{2, 1.5}, escalation.SessionCompleted, "",
		},
		"nothing for another attempt": {
			3, 0, attempt(3), nil, false, nil, escalation.SessionBudgetExhausted, "what the session may spend is spent (about $3.00)",
		},
		"more than all is spent": {
			0, 1, attempt(1.5), nil, false, nil, escalation.SessionBudgetExhausted, "what the session may spend is spent (about $1.50)",
		},
		"nothing for the repair turn": {
			1, 0, nil,
			[]float64{1.25},
			false,
			[]float64{1},
			escalation.SessionBudgetExhausted,
			"what the session may spend is spent ($1.25), without a valid verdict: it ended without its structured verdict",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := &fakeAgent{}
			total := 0.0
			for i, cost := range tt.costs {
				output := ""
				if tt.valid && i == len(tt.costs)-1 {
					output = healthy
				}
				agent.replies = append(agent.replies, finished(output, cost))
				total += cost
			}
			if tt.past != nil {
				total += tt.past.Spent.CostUSD + tt.past.Now.CostUSD
			}
			input := tierInput(1, escalation.ContinuityFresh)
			input.BudgetUSD, input.Policy.Tiers[0].BudgetUSD = tt.granted, tt.configured
			report, err := runTier(t, agent, input, tt.past)
			require.NoError(t, err)
			require.Equal(t, tt.status, report.Status)
			require.Equal(t, tt.reason, report.Error)
			require.InDelta(t, total, report.CostUSD, 1e-9)
			var budgets []float64
			for _, run := range agent.runs {
				budgets = append(budgets, run.Policy.BudgetUSD)
			}
			require.InDeltaSlice(t, tt.want, budgets, 1e-9)
			require.Len(t, budgets, len(tt.want))
			if tt.past != nil {
				require.NotEmpty(t, report.ReportedSessionID, "the conversation stays known")
			}
		})
	}
}

func TestRunTierTellsCooldowns(t *testing.T) {
	t.Parallel()
	agent := &fakeAgent{replies: []agentReply{finished(healthy, 0.1)}}
	input := tierInput(2, escalation.ContinuityFresh)
	input.Cooldowns = []escalation.ServiceState{{Service: "jellyfin", Restarts: escalation.Use{Used: 1}}}
	input.Policy.Cooldowns.Restarts = escalation.Limit{Max: 5, Window: escalation.Duration(time.Hour)}
	_, err := runTier(t, agent, input, nil)
	require.NoError(t, err)
	require.Equal(t, input.Cooldowns, agent.runs[0].Cooldowns)
	require.False(t, agent.runs[0].LeavesHandoff)
	require.Contains(t, agent.runs[0].Prompt, "5 restarts in 1 hour")
	require.Contains(t, agent.runs[0].Prompt, "`.claudeops/"+activities.ChainDirName("chain-1")+"/cooldown.json`")
}

func TestRunTierErrorCarriesTheSpending(t *testing.T) {
	t.Parallel()
	failure := finished("", 0.2)
	failure.report.Status = escalation.SessionFailed
	failure.err = errors.New("the API is overloaded")
	agent := &fakeAgent{replies: []agentReply{failure}}

	_, err := runTier(t, agent, tierInput(1, escalation.ContinuityFresh), &activities.TierProgress{
		Spent: escalation.Report{Cost: escalation.Cost{CostUSD: 0.5}},
	})
	var application *temporal.ApplicationError
	require.ErrorAs(t, err, &application)
	require.False(t, application.NonRetryable())
	require.Equal(t, activities.ErrorTypeAgent, application.Type())
	require.Equal(t, "the API is overloaded", application.Message())
	require.InDelta(t, 0.7, activities.SpentBefore(err).CostUSD, 1e-9)
}

// TestRunTierGivesUp checks that only failed attempts count. Attempts whose worker ended do not count. The pause grows
// with the number of failures.
func TestRunTierGivesUp(t *testing.T) {
	t.Parallel()
	overloaded := errors.New("the API is overloaded")
	for name, tt := range map[string]struct {
		failures int
		err      error
		pause    time.Duration
		giveUp   bool
	}{
		"first":                      {0, overloaded, 10 * time.Second, false},
		"third":                      {2, overloaded, 90 * time.Second, false},
		"last but one":               {8, overloaded, 5 * time.Minute, false},
		"as many as may":             {9, overloaded, 5 * time.Minute, true},
		"the worker stops meanwhile": {9, activities.ErrDraining, activities.HandOverDelay, false},
		"the directory is not free":  {9, fmt.Errorf("%w: a session repairs there", activities.ErrDirectoryBusy), activities.HandOverDelay, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failure := finished("", 0.2)
			failure.report.Status, failure.err = escalation.SessionFailed, tt.err
			agent := &fakeAgent{replies: []agentReply{failure}}
			_, err := runTier(t, agent, tierInput(1, escalation.ContinuityFresh), &activities.TierProgress{Failures: tt.failures})
			var application *temporal.ApplicationError
			require.ErrorAs(t, err, &application)
			require.Equal(t, tt.giveUp, application.NonRetryable())
			require.Equal(t, tt.pause, application.NextRetryDelay())
			require.InDelta(t, 0.2, activities.SpentBefore(err).CostUSD, 1e-9)
		})
	}
}

// TestWhoRepairs checks which runs get a directory for themselves. A run that only asks for the verdict does not,
// because it changes nothing.
func TestWhoRepairs(t *testing.T) {
	t.Parallel()
	recheck, dryRun := tierInput(2, escalation.ContinuityFresh), tierInput(3, escalation.ContinuityFresh)
	recheck.Recheck, dryRun.Policy.DryRun = true, true
	repair := tierInput(2, escalation.ContinuityFresh)
	repair.FirstRunID = "run-1"
	for name, test := range map[string]struct {
		input activities.RunTierInput
		want  []bool
	}{
		"tier 1": {tierInput(1, escalation.ContinuityFresh), []bool{false, false}}, "tier 2": {repair, []bool{true, false}},
		"tier 3":    {tierInput(3, escalation.ContinuityFresh), []bool{true, false}},
		"a recheck": {recheck, []bool{false, false}}, "a dry run": {dryRun, []bool{false, false}},
	} {
		agent := &fakeAgent{replies: []agentReply{finished("", 0.1), finished(healthy, 0.1)}}
		agent.replies[0].report.Worktree = &escalation.Worktree{Path: "/worktrees/1"}
		report, err := runTier(t, agent, test.input, nil)
		require.NoError(t, err)
		require.Len(t, agent.runs, 2, "the second run asks for the verdict")
		require.Equal(t, test.want, []bool{agent.runs[0].Repairs, agent.runs[1].Repairs}, name)
		require.Equal(t, test.input.FirstRunID, agent.runs[0].FirstRunID)
		require.Equal(t, "/worktrees/1", report.Worktree.Path, "the second run has none of its own")
		section, err := agent.runs[0].InWorktree(escalation.Worktree{Path: "/worktrees/1"})
		require.NoError(t, err)
		require.Contains(t, section, "/worktrees/1")
	}
}

func TestRunTierIsTriedAgainWhenConversationsCannotBeLookedUp(t *testing.T) {
	t.Parallel()
	agent := &fakeAgent{unreachable: errors.New("the archive is away")}
	_, err := runTier(t, agent, tierInput(1, escalation.ContinuityFresh), &activities.TierProgress{
		Spent: escalation.Report{Cost: escalation.Cost{CostUSD: 0.5}},
	})
	var application *temporal.ApplicationError
	require.ErrorAs(t, err, &application)
	require.False(t, application.NonRetryable())
	require.Equal(t, "the archive is away", application.Message())
	require.InDelta(t, 0.5, activities.SpentBefore(err).CostUSD, 1e-9)
	require.Empty(t, agent.runs, "it must not begin anew what may be half done")
}

func TestSpentBeforeATimeoutComesFromTheHeartbeat(t *testing.T) {
	t.Parallel()
	timeout := temporal.NewHeartbeatTimeoutError(activities.TierProgress{
		SessionID: ownID, Host: "host-2", WorkerPID: 4711, Attempt: 3,
		Spent: escalation.Report{Cost: escalation.Cost{CostUSD: 0.5}, Turns: 2, Attempts: 2, Host: "host-1"},
		Now:   activities.AgentProgress{CostUSD: 0.25, Turns: 1, Tokens: escalation.TokenUsage{Input: 100}},
	})
	require.Equal(t, escalation.Report{
		Cost: escalation.Cost{CostUSD: 0.75, CostEstimated: true}, Turns: 3, Tokens: escalation.TokenUsage{Input: 100}, Attempts: 3, Host: "host-2",
	}, activities.SpentBefore(timeout))
}

func TestSpentBeforeATimeoutWithoutAHeartbeat(t *testing.T) {
	t.Parallel()
	for timeout, unknown := range map[enumspb.TimeoutType]bool{
		enumspb.TIMEOUT_TYPE_HEARTBEAT: true, enumspb.TIMEOUT_TYPE_START_TO_CLOSE: true, enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START: false,
	} {
		session := escalation.Session{Report: activities.SpentBefore(temporal.NewTimeoutError(timeout, nil))}
		require.Equal(t, unknown, session.CostUnknown(), "%s", timeout)
	}
}

func TestSpentBeforeOfAStranger(t *testing.T) {
	t.Parallel()
	require.Zero(t, activities.SpentBefore(errors.New("no details")))
}

// TestWorkOfOtherHosts checks that a session says on which other hosts earlier attempts may have committed something:
// those whose worker has died, and those that have left commits. A host whose name has changed is no other one.
func TestWorkOfOtherHosts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		past activities.TierProgress
		here escalation.Worktree
		want []string
	}{
		"the first attempt":         {},
		"its worker died":           {past: activities.TierProgress{Host: "b", Now: activities.AgentProgress{Turns: 3}}, want: []string{"b"}},
		"its worker died here":      {past: activities.TierProgress{Host: "host-1", Now: activities.AgentProgress{Turns: 3}}},
		"it had not begun":          {past: activities.TierProgress{Host: "b"}},
		"it has left nothing":       {past: activities.TierProgress{Host: "b", Spent: escalation.Report{Turns: 2, Host: "b"}}},
		"two hosts before":          {past: activities.TierProgress{Host: "c", Hosts: []string{"b", "c"}}, want: []string{"b", "c"}},
		"the host has another name": {past: activities.TierProgress{Host: "b", Hosts: []string{"b"}}, here: escalation.Worktree{Again: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reply := finished(healthy, 0.1)
			c.here.Path = "/w"
			reply.report.Worktree = &c.here
			agent := &fakeAgent{replies: []agentReply{reply}, conversations: map[string]bool{ownID: true}}
			report, err := runTier(t, agent, tierInput(2, escalation.ContinuityFresh), &c.past)
			require.NoError(t, err)
			require.ElementsMatch(t, c.want, report.Worktree.EarlierHosts)
		})
	}
}
