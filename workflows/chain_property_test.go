package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"pgregory.net/rapid"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/workflows"
)

// trial is one chain, and the chains of its issues, with random policy, agents, records and signals.
type trial struct {
	policy  escalation.Policy
	input   workflows.ChainInput
	records *memoryRecords
	// scripts holds the runs of the agents in order: scripts[0] for the chain, scripts[n] for the chain of issue n.
	scripts [][]agentRun

	mu    sync.Mutex
	calls map[string]int
	// told counts the notifications of each chain.
	told map[string]int
	// wrongs lists calls of agents that must not happen.
	wrongs []string
}

// TestChainProperties runs random chains and checks properties that every chain must have. Some mistakes show in only
// one of a hundred chains, which is the number that one part runs.
func TestChainProperties(t *testing.T) {
	t.Parallel()
	for part := range 4 {
		t.Run(fmt.Sprint("part ", part+1), func(t *testing.T) {
			t.Parallel()
			seen := map[string]int{}
			rapid.Check(t, func(rt *rapid.T) { checkTrial(rt, seen) })
			t.Logf("branches: %v", seen)
		})
	}
}

// checkTrial runs a chain to its end, and counts in seen the branches that it took.
func checkTrial(t *rapid.T, seen map[string]int) {
	trial, env := drawTrial(t)
	env.ExecuteWorkflow(workflows.ChainWorkflow, trial.input)
	require.True(t, env.IsWorkflowCompleted())
	require.NoError(t, env.GetWorkflowError())
	var chain escalation.Chain
	require.NoError(t, env.GetWorkflowResult(&chain))
	requireChain(t, trial, chain)
	for _, branch := range branchesOf(chain) {
		seen[branch]++
	}
}

// drawTrial draws a chain and its test environment.
func drawTrial(t *rapid.T) (*trial, *testsuite.TestWorkflowEnvironment) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	world := &trial{
		policy: drawPolicy(t), records: newMemoryRecords(), calls: map[string]int{}, told: map[string]int{},
	}
	for range 1 + maxIssues {
		world.scripts = append(world.scripts, rapid.SliceOfN(rapid.Custom(drawRun), 1, 8).Draw(t, "agents"))
	}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := newEnvironment(&suite)
	env.SetStartTime(start)
	world.register(env)
	world.drawOthers(t, env, start)
	world.input = world.drawInput(t)
	for range rapid.IntRange(0, 3).Draw(t, "signals") {
		payload := drawSignal(t)
		env.RegisterDelayedCallback(func() {
			env.SignalWorkflow(workflows.EscalateSignalName, json.RawMessage(payload))
		}, time.Duration(rapid.IntRange(0, 300).Draw(t, "minutes"))*time.Minute)
	}
	for range rapid.IntRange(0, 6).Draw(t, "replies") {
		payload := drawReply(t)
		env.RegisterDelayedCallback(func() {
			env.SignalWorkflow(workflows.ResolveGate, json.RawMessage(payload))
		}, time.Duration(rapid.IntRange(0, 300).Draw(t, "minutes"))*time.Minute)
	}
	return world, env
}

// tierTakes is the duration of an agent's run.
const tierTakes = 7 * time.Minute

func (w *trial) register(env *testsuite.TestWorkflowEnvironment) {
	env.RegisterWorkflowWithOptions(workflows.EscalationChain, workflow.RegisterOptions{Name: workflows.ChainWorkflow})
	env.RegisterActivity(&activities.Records{
		Store: w.records, IsUnknown: func(err error) bool { return errors.Is(err, store.ErrNotFound) },
	})
	env.RegisterActivity(&activities.Settings{})
	env.RegisterActivity(&activities.Tiers{})
	env.RegisterActivity(&activities.Notifications{})
	env.OnActivity("LoadPolicy", mock.Anything, mock.Anything).Return(
		func(_ context.Context, input activities.LoadPolicyInput) (activities.LoadPolicyResult, error) {
			return activities.LoadPolicyResult{Policy: w.policy, Services: input.Services}, nil
		})
	env.OnActivity("RunTier", mock.Anything, mock.Anything).Maybe().After(tierTakes).Return(w.runTier)
	env.OnActivity("WriteHandoff", mock.Anything, mock.Anything).Maybe().After(tierTakes).Return(w.writeHandoff)
	env.OnActivity("FindTranscript", mock.Anything, mock.Anything).Maybe().Return(w.findTranscript)
	env.OnActivity("Notify", mock.Anything, mock.Anything).Maybe().Return(
		func(_ context.Context, input activities.NotifyInput) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told[input.ChainID]++
			return nil
		})
}

// next returns the run of the next agent of a chain. It first checks that the chain has not spent its budget.
func (w *trial) next(chainID string, policy escalation.Policy) agentRun {
	w.mu.Lock()
	defer w.mu.Unlock()
	var spent float64
	w.records.mu.Lock()
	for _, session := range w.records.of(chainID) {
		spent += session.CostUSD
	}
	w.records.mu.Unlock()
	if policy.ChainBudgetUSD > 0 && spent >= policy.ChainBudgetUSD {
		w.wrongs = append(w.wrongs, fmt.Sprintf("a session of %s ran with $%v of $%v spent", chainID, spent, policy.ChainBudgetUSD))
	}
	script := w.scripts[issueNumber(chainID)]
	call := w.calls[chainID]
	w.calls[chainID]++
	if call >= len(script) {
		return agentRun{status: escalation.SessionCompleted, verdict: escalation.VerdictHealthy}
	}
	return script[call]
}

// issueNumber returns the number of the issue that a chain belongs to; 0 for the chain itself.
func issueNumber(chainID string) (number int) {
	if _, suffix, issue := strings.Cut(chainID, "-issue-"); issue {
		_, _ = fmt.Sscan(suffix, &number)
	}
	return number
}

func (w *trial) runTier(_ context.Context, input activities.RunTierInput) (activities.RunTierResult, error) {
	run := w.next(input.ChainID, input.Policy)
	report := run.report(input)
	if run.breaks {
		return activities.RunTierResult{}, temporal.NewNonRetryableApplicationError(
			"the model is not reachable", activities.ErrorTypeAgent, nil, escalation.Report{Cost: escalation.Cost{CostUSD: report.CostUSD}})
	}
	if (input.Continuity == escalation.ContinuityHandoff) != (input.Handoff != nil) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.wrongs = append(w.wrongs, fmt.Sprintf("%s starts by %s, and its handoff is %v", input.Tier, input.Continuity, input.Handoff))
	}
	return activities.RunTierResult{Report: report}, nil
}

func (w *trial) writeHandoff(_ context.Context, input activities.WriteHandoffInput) (activities.WriteHandoffResult, error) {
	run := w.next(input.ChainID, input.Policy)
	report := run.report(activities.RunTierInput{SessionID: input.SessionID, Tier: input.Tier})
	report.Verdict = nil
	if run.breaks || report.Status != escalation.SessionCompleted || run.verdict == escalation.VerdictFailed {
		return activities.WriteHandoffResult{Report: report, Problem: "there is no handoff that can be used"}, nil
	}
	handoff := escalation.NewHandoff(input.Tier, input.Next, run.conclusion(input.Tier), nil)
	return activities.WriteHandoffResult{Report: report, Handoff: &handoff}, nil
}

// findTranscript finds most transcripts. It derives the result from the conversation's id, because it has no random
// source.
func (w *trial) findTranscript(_ context.Context, input activities.FindTranscriptInput) (activities.FindTranscriptResult, error) {
	return activities.FindTranscriptResult{Reachable: input.SessionID[0]%4 != 0}, nil
}

// requireChain checks the properties of an ended chain and of the chains of its issues.
func requireChain(t *rapid.T, w *trial, chain escalation.Chain) {
	require.Empty(t, w.wrongs)
	require.Empty(t, w.records.wrongs)
	requireExplained(t, w, chain)
	requireLinked(t, w, chain.ID)
	requireGates(t, w, chain)
	sessions := w.records.of(chain.ID)
	requireWithinPolicy(t, w, chain, sessions)
	require.Len(t, chain.Sessions, len(sessions))
	require.InDelta(t, escalation.TotalCostUSD(sessions), chain.CostUSD, 1e-9, "the cost is that of the records")
	for _, issue := range chain.Issues {
		require.NotEmpty(t, issue.Outcome)
		require.NotEmpty(t, issue.Reason)
		if issue.ChainID == "" {
			require.Zero(t, issue.CostUSD)
			continue
		}
		mine := w.records.of(issue.ChainID)
		require.InDelta(t, escalation.TotalCostUSD(mine), issue.CostUSD, 1e-9)
		requireWithinPolicy(t, w, chain, mine)
		requireLinked(t, w, issue.ChainID)
	}
	for service, lock := range w.records.locks {
		require.True(t, strings.HasPrefix(lock.ChainID, "other"), "%s is still locked by %s", service, lock.ChainID)
	}
}

// requireExplained checks that a chain explains its end: in its result, in its records and to people.
func requireExplained(t *rapid.T, w *trial, chain escalation.Chain) {
	require.NotEmpty(t, chain.Outcome)
	require.NotEmpty(t, chain.Reason)
	require.False(t, chain.EndedAt.IsZero())
	require.Nil(t, chain.Wait)
	requireRecorded(t, chain.Events, w.records.eventsOf(chain.ID))
	ended := eventsOf(chain.Events, escalation.EventChainEnded)
	require.Len(t, ended, 1)
	for _, event := range chain.Events[slices.Index(chain.Events, ended[0])+1:] {
		require.Contains(t, []escalation.EventKind{escalation.EventGateRefused, escalation.EventSignal}, event.Kind,
			"only answers and requests come too late")
		require.Contains(t, event.Message, "is refused")
	}
	decisions := eventsOf(chain.Events, escalation.EventDecision)
	require.NotEmpty(t, decisions)
	require.Contains(t, decisions[len(decisions)-1].Message, chain.Reason)
	for _, session := range chain.Sessions {
		require.NotEqual(t, escalation.SessionRunning, session.Status)
		decided := func(event escalation.Event) bool { return event.SessionID == session.SessionID }
		require.True(t, slices.ContainsFunc(decisions, decided), "session %d was decided on", session.ID)
	}
	switch {
	case chain.DryRun:
		require.Zero(t, w.told[chain.ID], "a dry run tells nobody")
	case chain.Outcome == escalation.OutcomeNeedsHuman, chain.Outcome == escalation.OutcomeFailed:
		require.Positive(t, w.told[chain.ID], "a person was told")
	}
}

// requireGates checks that each gate was closed by an option that it offered. It also checks that an interrupted
// session is continued only if a person chose that at a gate.
func requireGates(t *rapid.T, w *trial, chain escalation.Chain) {
	if w.policy.Gate.Timeout == 0 || chain.DryRun {
		require.Empty(t, chain.Gates)
	} else {
		require.NotContains(t, []escalation.Outcome{escalation.OutcomeNeedsHuman, escalation.OutcomeFailed}, chain.Outcome, chain.Reason)
	}
	var continued []string
	for i, gate := range chain.Gates {
		require.Equal(t, fmt.Sprint("gate-", i+1), gate.ID)
		require.NotNil(t, gate.Answer)
		require.False(t, gate.Answer.At.After(gate.ExpiresAt.Add(time.Minute)), "it was open for too long")
		require.Equal(t, gate.Continuation == nil, gate.NoContinuation != "")
		if gate.Answer.ToTier != 0 {
			continue
		}
		require.Contains(t, gate.Options, gate.Answer.Action)
		if gate.Answer.Action == escalation.GateContinue {
			continued = append(continued, gate.Continuation.SessionID)
		}
	}
	for _, session := range chain.Sessions {
		if session.Purpose == escalation.PurposeContinuation {
			require.Contains(t, continued, w.records.sessions[session.ParentID-1].SessionID)
		}
	}
}

// requireWithinPolicy checks that the sessions of one chain comply with the policy.
func requireWithinPolicy(t *rapid.T, w *trial, chain escalation.Chain, sessions []escalation.Session) {
	highest := w.policy.MaxTier
	raised := slices.ContainsFunc(chain.Gates, func(gate escalation.Gate) bool {
		return gate.MaxTier != 0 && gate.Answer != nil && gate.Answer.Actor != "" && gate.Answer.Action == escalation.GateFix
	})
	if w.input.MaxTier != 0 && !raised { // a person may raise the limit of the input, and not that of the workers
		highest = min(highest, w.input.MaxTier)
	}
	dryRun := w.policy.DryRun || w.input.DryRun
	require.Equal(t, dryRun, chain.DryRun)
	for _, session := range sessions {
		require.False(t, isOpen(session), "session %d is closed", session.ID)
		require.LessOrEqual(t, session.Tier, highest, "no tier above the highest")
		require.Equal(t, dryRun, session.DryRun)
		if dryRun {
			require.Equal(t, max(w.input.StartTier, escalation.TierObserve), session.Tier, "a dry run escalates nothing")
			require.Equal(t, escalation.PurposeTier, session.Purpose)
		}
		if session.Purpose == escalation.PurposeRecheck {
			require.Equal(t, escalation.TierObserve, session.Tier)
		}
	}
}

// requireLinked checks that the parent of each session is an earlier session of the chain, or the session that the
// chain started from.
func requireLinked(t *rapid.T, w *trial, chainID string) {
	sessions := w.records.of(chainID)
	if len(sessions) == 0 {
		return
	}
	root := sessions[0].ParentID
	if root != 0 {
		require.Less(t, root, sessions[0].ID)
		require.NotEqual(t, chainID, w.records.sessions[root-1].ChainID)
	}
	known := map[int64]bool{root: root != 0}
	for i, session := range sessions {
		require.Equal(t, i+1, session.Sequence)
		begins := session.ParentID == root // the first tier and its retries
		require.True(t, begins || known[session.ParentID], "session %d continues %d, which is none before it", session.ID, session.ParentID)
		known[session.ID] = true
	}
}
