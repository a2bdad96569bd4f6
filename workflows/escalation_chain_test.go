package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// underTest is the workflow type of the chain under test. It differs from the real type, so that another function can
// stand in for the chains of issues, which the chain starts by the real type.
const underTest = "ChainUnderTest"

// world is the environment of a chain under test: a policy, scripted tiers, and the records that were stored.
type world struct {
	mu     sync.Mutex // protects the fields below while a chain runs
	env    *testsuite.TestWorkflowEnvironment
	policy escalation.Policy
	// catalog holds the services of the workers' services file; nil for none.
	catalog *escalation.Catalog
	// tiers holds the results of the agents, in the order in which they run.
	tiers []tierScript
	ran   []activities.RunTierInput
	// writes holds the results of the agents that are asked for a handoff, in order.
	writes []handoffScript
	asked  []activities.WriteHandoffInput
	// change returns what the session with this number commits, from 1; nil means nothing. review stands in for
	// reviewers.
	change func(session int) *activities.Change
	review func(input activities.RunReviewInput) (activities.RunReviewResult, error)
	// pushed holds the requests to push, and pushProblem says why they fail.
	pushed      []activities.PushRequest
	pushProblem string
	// push stands in for the remote; nil for one that takes everything unless pushProblem says why not.
	push    func(request activities.PushRequest) activities.PushResult
	nowhere bool // the repository has no remote
	// proposed holds the requests for pull requests. propose answers them; nil stands for a forge that accepts all.
	proposed []activities.ProposeRequest
	propose  func(request activities.ProposeRequest) (activities.ProposeResult, error)
	// tierTakes is the duration of a tier, in the test environment's time.
	tierTakes time.Duration
	// These fields make an activity fail while they are true.
	failPolicy, failOpen, failReview, failFind, failRecord bool
	// openTakes is the time that the opening of a record takes.
	openTakes time.Duration
	// failClose is the number of times that recording a session's end fails.
	failClose int

	// facts returns the facts for an admission; nil means no facts. The time is filled in.
	facts func(request escalation.AdmissionRequest, now time.Time) escalation.AdmissionFacts
	// issue stands in for the chains of issues; nil means that the test has none.
	issue func(workflow.Context, workflows.ChainInput) (escalation.Chain, error)
	// known holds the records of conversations, by conversation id.
	known map[string]escalation.Session

	// incidents holds the incidents in the records. brief is the answer of the records at the end of a session.
	incidents []escalation.Incident
	brief     escalation.IncidentBrief
	// opening is the answer of the records about incidents when a session is opened.
	opening  escalation.IncidentBrief
	compared []escalation.KnownIncidents

	// transcript reports whether a conversation can be resumed; nil means that it can.
	transcript func() (reachable bool, err error)
	// inFlight holds the calls that every tier leaves without a result.
	inFlight []activities.ToolCall
	// spentSoFar returns what an agent has spent; nil means nothing.
	spentSoFar func() (escalation.Report, error)
	// recordTakes is the duration of recording events.
	recordTakes time.Duration

	requests []escalation.AdmissionRequest
	// notes is what the records know of each gate; nil for nothing.
	notes    *escalation.GateNotes
	opened   []escalation.Session
	closed   []activities.CloseSessionInput
	recorded []activities.RecordEventsInput
	// withdrawn holds the withdrawals of sessions. The chain does not know whether their records were open.
	withdrawn []activities.CloseSessionInput
	events    []escalation.Event
}

// close stands in for the activity that closes a session's record. The caller must hold the lock.
func (w *world) close(input activities.CloseSessionInput) error {
	if w.failClose > 0 {
		w.failClose--
		return errAway
	}
	w.closed = append(w.closed, input)
	w.events = append(w.events, input.Events...)
	return nil
}

// admit decides on an admission with the same rules as the store.
func (w *world) admit(request escalation.AdmissionRequest, policy escalation.Policy) escalation.Admission {
	w.requests = append(w.requests, request)
	var facts escalation.AdmissionFacts
	if w.facts != nil {
		facts = w.facts(request, request.At)
	}
	if facts.Services == nil {
		facts.Services = policy.Cooldowns.States(nil, request.Services, request.At)
	}
	return escalation.Admit(policy, request, facts)
}

var errAway = errors.New("the database is away")

// tierScript is one run of a tier: it checks its input and returns a report.
type tierScript func(t *testing.T, input activities.RunTierInput) (escalation.Report, error)

// handoffScript is one run of a tier that is asked for its handoff.
type handoffScript func(input activities.WriteHandoffInput) (activities.WriteHandoffResult, error)

// newEnvironment returns a test environment with long timeouts, for busy machines. By default the environment fails a
// workflow that needs more than a second of real time for a step.
func newEnvironment(suite *testsuite.WorkflowTestSuite) *testsuite.TestWorkflowEnvironment {
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(5 * time.Minute)
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute})
	env.RegisterWorkflowWithOptions(workflows.Delivery, workflow.RegisterOptions{Name: workflows.DeliveryWorkflow})
	return env
}

func newWorld(t *testing.T, tiers ...tierScript) *world {
	t.Helper()
	w := &world{env: newEnvironment(new(testsuite.WorkflowTestSuite)), policy: testPolicy(), tiers: tiers}
	w.env.RegisterWorkflowWithOptions(workflows.EscalationChain, workflow.RegisterOptions{Name: underTest})
	w.env.RegisterWorkflowWithOptions(func(ctx workflow.Context, input workflows.ChainInput) (escalation.Chain, error) {
		return w.issue(ctx, input)
	}, workflow.RegisterOptions{Name: workflows.ChainWorkflow})
	w.env.RegisterActivity(&activities.Settings{})
	w.env.RegisterActivity(&activities.Records{})
	w.env.RegisterActivity(&activities.Tiers{})
	w.env.RegisterActivity(&activities.Notifications{})
	w.env.RegisterActivity(&activities.Schedules{})
	w.env.RegisterActivity(&activities.Attempts{})
	return w
}

// alone locks w until the returned function is called. The chains of several issues call the activities at the same
// time.
func (w *world) alone() func() {
	w.mu.Lock()
	return w.mu.Unlock
}

// answer mocks the activities with the contents of w.
func (w *world) answer(t *testing.T) {
	t.Helper()
	w.env.OnActivity("LoadPolicy", mock.Anything, mock.Anything).Maybe().Return(
		func(_ context.Context, input activities.LoadPolicyInput) (activities.LoadPolicyResult, error) {
			defer w.alone()()
			if w.failPolicy {
				return activities.LoadPolicyResult{}, errAway
			}
			services := w.catalog.CanonicalAll(input.Services)
			return activities.LoadPolicyResult{Policy: w.policy, Services: services, Unknown: w.catalog.Unknown(services)}, nil
		})
	w.env.OnActivity("OpenSession", mock.Anything, mock.Anything).Maybe().After(w.openTakes).Return(
		func(_ context.Context, input activities.OpenSessionInput) (escalation.AdmissionResult, error) {
			defer w.alone()()
			if w.failOpen {
				return escalation.AdmissionResult{}, errAway
			}
			if input.Closing != nil {
				if err := w.close(*input.Closing); err != nil {
					return escalation.AdmissionResult{}, err
				}
			}
			w.events = append(w.events, input.Events...)
			admission := w.admit(input.Request, input.Policy)
			if !admission.Granted {
				refused := escalation.AdmissionResult{Refusal: &admission}
				if input.Closing != nil {
					refused.IncidentBrief = w.brief
				}
				return refused, nil
			}
			session := input.Session
			session.ID, session.Sequence = int64(18+len(w.opened)), 1+len(w.opened)
			session.BudgetUSD = admission.BudgetUSD
			w.opened = append(w.opened, session)
			return escalation.AdmissionResult{
				IncidentBrief: w.opening,
				Session:       session, Services: input.Policy.Cooldowns.States(nil, input.Request.Services, input.Request.At),
			}, nil
		})
	w.env.OnActivity("Review", mock.Anything, mock.Anything).Maybe().Return(
		func(_ context.Context, input activities.ReviewInput) (escalation.Admission, error) {
			defer w.alone()()
			if w.failReview {
				return escalation.Admission{}, errAway
			}
			return w.admit(input.Request, input.Policy), nil
		})
	w.env.OnActivity("FindSession", mock.Anything, mock.Anything).Maybe().Return(
		func(_ context.Context, sessionID string) (activities.FindSessionResult, error) {
			if w.failFind {
				return activities.FindSessionResult{}, errAway
			}
			defer w.alone()()
			session, found := w.known[sessionID]
			return activities.FindSessionResult{Found: found, Session: session}, nil
		})
	w.env.OnActivity("FindTranscript", mock.Anything, mock.Anything).Maybe().Return(
		func(_ context.Context, input activities.FindTranscriptInput) (activities.FindTranscriptResult, error) {
			defer w.alone()()
			require.NotEmpty(t, input.SessionID)
			if w.transcript == nil {
				return activities.FindTranscriptResult{Reachable: true}, nil
			}
			reachable, err := w.transcript()
			return activities.FindTranscriptResult{Reachable: reachable}, err
		})
	w.env.OnActivity("SpentSoFar", mock.Anything, mock.Anything).Maybe().Return(
		func(_ context.Context, input activities.SpentSoFarInput) (escalation.Report, error) {
			defer w.alone()()
			require.NotEmpty(t, input.SessionID)
			if w.spentSoFar == nil {
				return escalation.Report{}, nil
			}
			return w.spentSoFar()
		})
	w.env.OnActivity("RecordEvents", mock.Anything, mock.Anything).Maybe().After(w.recordTakes).Return(
		func(_ context.Context, input activities.RecordEventsInput) error {
			defer w.alone()()
			if w.failRecord {
				return errAway
			}
			w.recorded = append(w.recorded, input)
			w.events = append(w.events, input.Events...)
			return nil
		})
	w.env.OnActivity("CloseSession", mock.Anything, mock.Anything).Maybe().Return(
		func(_ context.Context, input activities.CloseSessionInput) (escalation.IncidentBrief, error) {
			defer w.alone()()
			brief := w.brief
			if input.Notes != nil {
				brief.Notes = w.notes
			}
			return brief, w.close(input)
		})
	w.env.OnActivity("KnownIncidents", mock.Anything, mock.Anything).Maybe().Return(
		func(_ context.Context, input escalation.KnownIncidents) ([]escalation.Incident, error) {
			defer w.alone()()
			w.compared = append(w.compared, input)
			return w.incidents, nil
		})
	w.env.OnActivity("WithdrawSession", mock.Anything, mock.Anything).Maybe().Return(
		func(_ context.Context, input activities.CloseSessionInput) error {
			defer w.alone()()
			w.withdrawn = append(w.withdrawn, input)
			if w.failOpen {
				return errAway
			}
			w.events = append(w.events, input.Events...)
			return nil
		})
	w.env.OnActivity("RunTier", mock.Anything, mock.Anything).Maybe().After(w.tierTakes).Return(
		func(_ context.Context, input activities.RunTierInput) (activities.RunTierResult, error) {
			defer w.alone()()
			if len(w.ran) == len(w.tiers) {
				return activities.RunTierResult{}, fmt.Errorf("%s runs, and no more tiers were expected", input.Tier)
			}
			w.ran = append(w.ran, input)
			report, err := w.tiers[len(w.ran)-1](t, input)
			result := activities.RunTierResult{Report: report, InFlight: w.inFlight}
			if input.Inspect && w.change != nil {
				result.Change = w.change(len(w.ran))
			}
			if report.Verdict != nil {
				verdict := w.catalog.Verdict(*report.Verdict)
				result.Report.Verdict, result.Unknown = &verdict, w.catalog.Unknown(verdict.AllServices())
			}
			return result, err
		})
	w.env.OnActivity("RunReview", mock.Anything, mock.Anything).Maybe().After(w.tierTakes).Return(
		func(_ context.Context, input activities.RunReviewInput) (activities.RunReviewResult, error) {
			return w.review(input)
		})
	w.env.OnActivity("PushChange", mock.Anything, mock.Anything).Maybe().Return(
		func(_ context.Context, request activities.PushRequest) (activities.PushResult, error) {
			w.pushed = append(w.pushed, request)
			switch {
			case w.push != nil:
				return w.push(request), nil
			case w.nowhere:
				return activities.PushResult{NoRemote: true}, nil
			}
			return activities.PushResult{Remote: "https://git.example.org/infra", Problem: w.pushProblem}, nil
		})
	w.env.OnActivity("ProposeChange", mock.Anything, mock.Anything).Maybe().Return(
		func(_ context.Context, request activities.ProposeRequest) (activities.ProposeResult, error) {
			w.proposed = append(w.proposed, request)
			if w.propose != nil {
				return w.propose(request)
			}
			return activities.ProposeResult{PullRequest: "https://github.com/acme/infra/pull/1"}, nil
		})
	w.env.OnActivity("WriteHandoff", mock.Anything, mock.Anything).Maybe().After(w.tierTakes).Return(
		func(_ context.Context, input activities.WriteHandoffInput) (activities.WriteHandoffResult, error) {
			defer w.alone()()
			if len(w.asked) == len(w.writes) {
				return activities.WriteHandoffResult{}, temporal.NewNonRetryableApplicationError("no handoff was expected", "Test", nil)
			}
			w.asked = append(w.asked, input)
			return w.writes[len(w.asked)-1](input)
		})
}

func testPolicy() escalation.Policy {
	tier := func(model string) escalation.TierPolicy {
		return escalation.TierPolicy{
			Model: model, ContextWindow: 200_000, Tools: []string{"Bash"},
			AllowedTools: []string{"Bash(" + model + ":*)"}, Timeout: escalation.Duration(time.Hour),
		}
	}
	return escalation.Policy{
		Tiers: []escalation.TierPolicy{tier("haiku"), tier("sonnet"), tier("opus")}, MaxTier: escalation.TierFullRepair,
		Continuity: escalation.ContinuityAuto, ResumeThreshold: 0.8,
	}
}

// run runs the chain to its end.
func (w *world) run(t *testing.T, input workflows.ChainInput) (workflows.ChainResult, error) {
	t.Helper()
	w.answer(t)
	w.env.ExecuteWorkflow(underTest, input)
	require.True(t, w.env.IsWorkflowCompleted())
	var result workflows.ChainResult
	if err := w.env.GetWorkflowError(); err != nil {
		return result, err
	}
	require.NoError(t, w.env.GetWorkflowResult(&result))
	return result, nil
}

// concludes returns a script that reports a session with this verdict.
func concludes(status escalation.VerdictStatus, costUSD float64) tierScript {
	return func(_ *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		return escalation.Report{
			Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: costUSD}, ContextTokens: 20_000, ContextWindow: 200_000,
			Turns: 4, DurationMS: 45_000, ReportedSessionID: input.SessionID, Attempts: 1,
			Verdict: &escalation.Verdict{Status: status, Summary: "what it saw", Services: []string{"jellyfin"}},
		}, nil
	}
}

// ends returns a script that reports a session with this status and without a verdict.
func ends(status escalation.SessionStatus) tierScript {
	return func(_ *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		return escalation.Report{Status: status, Cost: escalation.Cost{CostUSD: 0.25}, Error: "what went wrong", ReportedSessionID: input.SessionID}, nil
	}
}

func TestChainClimbsAllTiers(t *testing.T) {
	t.Parallel()
	w := newWorld(t,
		concludes(escalation.VerdictEscalate, 0.03),
		concludes(escalation.VerdictEscalate, 0.47),
		concludes(escalation.VerdictResolved, 2.00))

	result, err := w.run(t, workflows.ChainInput{Prompt: "look at jellyfin"})
	require.NoError(t, err)

	require.Equal(t, escalation.OutcomeResolved, result.Outcome)
	require.InDelta(t, 2.50, result.CostUSD, 1e-9)
	require.Equal(t, []string{"jellyfin"}, result.Services)
	require.Len(t, result.Sessions, 3)
	require.Equal(t, []string{"haiku", "sonnet", "opus"}, []string{
		result.Sessions[0].Model, result.Sessions[1].Model, result.Sessions[2].Model,
	})
	for i, session := range result.Sessions {
		require.Equal(t, int64(18+i), session.ID)
		require.Equal(t, escalation.SessionCompleted, session.Status)
		require.Equal(t, session.SessionID, w.ran[i].SessionID, "the agent writes under the id in the record")
		require.Equal(t, session.SessionID, w.closed[i].SessionID)
		require.Equal(t, session.Report, w.closed[i].Report)
		require.Equal(t, "look at jellyfin", w.ran[i].Request)
	}
	for i := 1; i < 3; i++ {
		require.Equal(t, result.Sessions[i-1].ID, result.Sessions[i].ParentID)
		require.Equal(t, escalation.ContinuityResume, result.Sessions[i].Continuity)
		require.Equal(t, escalation.ReasonParentSession, result.Sessions[i].ContinuityReason)
		require.Equal(t, result.Sessions[i-1].SessionID, w.ran[i].ParentSessionID)
		require.NotEqual(t, result.Sessions[i-1].SessionID, result.Sessions[i].SessionID, "each tier forks")
	}
	require.Equal(t, result.Events, w.events, "every event that people see is recorded, in order")
	require.Equal(t, []escalation.EventKind{
		escalation.EventChainStarted,
		escalation.EventSessionCreated, escalation.EventSessionEnded, escalation.EventDecision,
		escalation.EventSessionCreated, escalation.EventSessionEnded, escalation.EventDecision,
		escalation.EventSessionCreated, escalation.EventSessionEnded, escalation.EventDecision,
		escalation.EventChainEnded,
	}, kinds(result.Events))
	requireDistinctKeys(t, result.Events)
}

func TestChainOutcomes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		input  workflows.ChainInput
		change func(*escalation.Policy)
		tiers  []tierScript
		want   escalation.Outcome
	}{
		"healthy": {
			tiers: []tierScript{concludes(escalation.VerdictHealthy, 0.01)}, want: escalation.OutcomeHealthy,
		},
		"a dry run is suppressed": {
			input: workflows.ChainInput{DryRun: true},
			tiers: []tierScript{concludes(escalation.VerdictEscalate, 0.01)}, want: escalation.OutcomeSuppressed,
		},
		"a configured dry run cannot be switched off": {
			change: func(p *escalation.Policy) { p.DryRun = true },
			tiers:  []tierScript{concludes(escalation.VerdictEscalate, 0.01)}, want: escalation.OutcomeSuppressed,
		},
		"the configured highest tier holds": {
			input:  workflows.ChainInput{MaxTier: 3},
			change: func(p *escalation.Policy) { p.MaxTier = 1 },
			tiers:  []tierScript{concludes(escalation.VerdictEscalate, 0.01)}, want: escalation.OutcomeNeedsHuman,
		},
		"the input's highest tier holds": {
			input: workflows.ChainInput{MaxTier: 2},
			tiers: []tierScript{concludes(escalation.VerdictEscalate, 0.01), concludes(escalation.VerdictEscalate, 0.01)},
			want:  escalation.OutcomeNeedsHuman,
		},
		"started at tier 3": {
			input: workflows.ChainInput{StartTier: 3},
			tiers: []tierScript{concludes(escalation.VerdictResolved, 0.01)}, want: escalation.OutcomeResolved,
		},
		"timed out": {tiers: []tierScript{ends(escalation.SessionTimedOut)}, want: escalation.OutcomeNeedsHuman},
		"broken":    {tiers: []tierScript{ends(escalation.SessionFailed)}, want: escalation.OutcomeFailed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.tiers...)
			if tt.change != nil {
				tt.change(&w.policy)
			}
			result, err := w.run(t, tt.input)
			require.NoError(t, err)
			require.Equal(t, tt.want, result.Outcome)
			require.Len(t, w.ran, len(tt.tiers))
			require.Len(t, w.closed, len(tt.tiers))
			require.NotEmpty(t, result.Reason)
			require.InDelta(t, escalation.TotalCostUSD(result.Sessions), result.CostUSD, 1e-9)
			require.Equal(t, escalation.EventChainEnded, result.Events[len(result.Events)-1].Kind)
		})
	}
}

func TestChainRefusesInput(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		input workflows.ChainInput
		want  string
	}{
		"bad tier":             {workflows.ChainInput{StartTier: 7}, "start_tier 7 is not a tier: it must be 1, 2 or 3"},
		"above the configured": {workflows.ChainInput{StartTier: 3}, "start_tier 3 is higher than the highest tier allowed, 2"},
		"not what a list can show": {
			workflows.ChainInput{Trigger: "By Hand!", Services: []string{strings.Repeat("x", 3_000)}},
			`trigger "By Hand!" must be a lower-case word of up to 63 letters, digits, - and _`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.policy.MaxTier = 2
			var shown temporal.SearchAttributes
			w.env.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
				shown, _ = args.Get(0).(temporal.SearchAttributes)
			}).Return(nil)
			_, err := w.run(t, tt.input)
			var refused *temporal.ApplicationError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, tt.want, refused.Message())
			require.Equal(t, workflows.ErrorTypeInput, refused.Type())
			require.True(t, refused.NonRetryable())
			require.Empty(t, w.opened, "nothing may be recorded")
			require.Empty(t, w.ran)
			outcome, _ := shown.GetKeyword(workflows.OutcomeAttribute)
			require.Equal(t, string(escalation.OutcomeFailed), outcome, "it is listed as failed")
			trigger, _ := shown.GetKeyword(workflows.TriggerAttribute)
			require.Equal(t, string(escalation.TriggerManual), trigger)
			_, listed := shown.GetKeywordList(workflows.ServicesAttribute)
			require.False(t, listed)
		})
	}
}

func TestChainWithoutTheConversationBecomesOneHandoff(t *testing.T) {
	t.Parallel()
	for status, reason := range map[escalation.SessionStatus]escalation.ContinuityReason{
		escalation.SessionResumeFailed:   escalation.ReasonResumeFailed,
		escalation.SessionTranscriptLost: escalation.ReasonTranscriptLost,
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t,
				concludes(escalation.VerdictEscalate, 0.03),
				ends(status),
				concludes(escalation.VerdictResolved, 0.50))

			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)

			require.Equal(t, escalation.OutcomeResolved, result.Outcome)
			require.Len(t, result.Sessions, 3)
			failed, again := result.Sessions[1], result.Sessions[2]
			require.Equal(t, status, failed.Status)
			require.Equal(t, failed.Tier, again.Tier)
			require.Equal(t, failed.ParentID, again.ParentID)
			require.Equal(t, escalation.ContinuityHandoff, again.Continuity)
			require.Equal(t, reason, again.ContinuityReason)
			require.Equal(t, "what it saw", w.ran[2].Handoff.Summary)
			require.Empty(t, w.ran[2].Handoff.Remediation, "nothing was begun")
			require.NotEqual(t, failed.SessionID, again.SessionID)
		})
	}
}

func TestChainHandsOffUnderContextPressure(t *testing.T) {
	t.Parallel()
	crowded := func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		report, err := concludes(escalation.VerdictEscalate, 0.03)(t, input)
		report.ContextTokens = 160_001
		report.Verdict.Checks = []escalation.CheckResult{{Service: "jellyfin", CheckType: "http", Status: escalation.CheckDown}}
		return report, err
	}
	w := newWorld(t, crowded, concludes(escalation.VerdictResolved, 0.50))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.ContinuityHandoff, result.Sessions[1].Continuity)
	require.Equal(t, escalation.ReasonContextPressure, result.Sessions[1].ContinuityReason)
	require.Equal(t, []string{"jellyfin"}, w.ran[1].Handoff.Services)
}

func TestChainResumesANamedConversation(t *testing.T) {
	t.Parallel()
	const named = "4f2b7c1e-8b8e-4d53-9f0e-0d9c7e0f7a11"
	w := newWorld(t, concludes(escalation.VerdictResolved, 0.50))
	w.policy.Continuity = escalation.ContinuityHandoffOnly // the chain has nothing to build a handoff from
	result, err := w.run(t, workflows.ChainInput{StartTier: 2, ResumeFrom: &workflows.ResumeFrom{SessionID: named}})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome)
	require.Equal(t, named, w.ran[0].ParentSessionID)
	require.Equal(t, escalation.ContinuityResume, w.ran[0].Continuity)
	require.Zero(t, result.Sessions[0].ParentID)

	w = newWorld(t, ends(escalation.SessionResumeFailed))
	result, err = w.run(t, workflows.ChainInput{ResumeFrom: &workflows.ResumeFrom{SessionID: named}})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeFailed, result.Outcome)
}

func TestChainKeepsTheSpendingOfATierThatCouldNotBeJudged(t *testing.T) {
	t.Parallel()
	unreachable := func(*testing.T, activities.RunTierInput) (escalation.Report, error) {
		return escalation.Report{}, temporal.NewNonRetryableApplicationError("the model is not reachable",
			activities.ErrorTypeAgent, nil, escalation.Report{Cost: escalation.Cost{CostUSD: 0.75}, Turns: 3, Attempts: 6})
	}
	w := newWorld(t, unreachable)
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeFailed, result.Outcome)
	require.InDelta(t, 0.75, result.CostUSD, 1e-9)
	require.Equal(t, 6, result.Sessions[0].Attempts)
	require.Equal(t, "the model is not reachable", result.Sessions[0].Error)
	require.Equal(t, escalation.SessionFailed, w.closed[0].Report.Status)
}

func TestChainWaitsForRecordsAndRepeatsNoTier(t *testing.T) {
	t.Parallel()
	w := newWorld(t, concludes(escalation.VerdictHealthy, 0.01))
	w.failClose = 8 // fails for a minute, at the intervals of the retry policy
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeHealthy, result.Outcome)
	require.Zero(t, w.failClose)
	require.Len(t, w.closed, 1)
	require.Len(t, w.ran, 1)
}

func TestChainQueryWhileRunning(t *testing.T) {
	t.Parallel()
	var chain escalation.Chain
	w := newWorld(t)
	w.tiers = []tierScript{func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		encoded, err := w.env.QueryWorkflow(workflows.ChainQuery)
		if err != nil {
			return escalation.Report{}, err
		}
		if err := encoded.Get(&chain); err != nil {
			return escalation.Report{}, err
		}
		return concludes(escalation.VerdictHealthy, 0.01)(t, input)
	}}
	_, err := w.run(t, workflows.ChainInput{Trigger: "scheduled"})
	require.NoError(t, err)
	require.Empty(t, chain.Outcome)
	require.Equal(t, escalation.TriggerScheduled, chain.Trigger)
	require.Len(t, chain.Sessions, 1)
	require.Equal(t, escalation.SessionRunning, chain.Sessions[0].Status)
}

func kinds(events []escalation.Event) []escalation.EventKind {
	var all []escalation.EventKind
	for _, event := range events {
		all = append(all, event.Kind)
	}
	return all
}

func requireDistinctKeys(t *testing.T, events []escalation.Event) {
	t.Helper()
	seen := make(map[string]bool)
	for _, event := range events {
		require.False(t, seen[event.Key], "key %s twice", event.Key)
		seen[event.Key] = true
	}
}

// TestChainSurvivesAnAgentsExcess reports the longest verdict that can be decoded. It checks that the chain stays
// within Temporal's limits.
func TestChainSurvivesAnAgentsExcess(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("<", escalation.MaxServiceName-2) // JSON encodes each as six bytes
	excess := escalation.Verdict{Status: escalation.VerdictNeedsHuman, Summary: strings.Repeat("very ", 10_000)}
	for i := range escalation.MaxServices {
		excess.Services = append(excess.Services, fmt.Sprintf("%s%02d", name, i))
	}
	w := newWorld(t, func(*testing.T, activities.RunTierInput) (escalation.Report, error) {
		return escalation.Report{Status: escalation.SessionCompleted, Verdict: &excess}, nil
	})
	var listed []string
	w.env.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
		if services, ok := args.Get(0).(temporal.SearchAttributes).GetKeywordList(workflows.ServicesAttribute); ok {
			listed = services
		}
	}).Return(nil)
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeNeedsHuman, result.Outcome)
	require.Len(t, result.Services, escalation.MaxServices, "the result keeps them all")
	require.NotEmpty(t, listed)
	encoded, err := json.Marshal(listed)
	require.NoError(t, err)
	require.Less(t, len(encoded), 2048)
	for _, event := range result.Events {
		require.LessOrEqual(t, utf8.RuneCountInString(event.Message), 500)
	}
}
