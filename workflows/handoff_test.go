package workflows_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// writesHandoff returns a script that writes a usable handoff.
func writesHandoff(summary string) handoffScript {
	return func(input activities.WriteHandoffInput) (activities.WriteHandoffResult, error) {
		return activities.WriteHandoffResult{
			Report: escalation.Report{Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.02}, ReportedSessionID: input.SessionID},
			Handoff: &escalation.Handoff{
				SchemaVersion: escalation.HandoffVersion, FromTier: input.Tier, RecommendedTier: input.Next,
				Summary: summary, Services: []string{"jellyfin"},
			},
		}, nil
	}
}

// leavesNoHandoff returns a script that ends with this status and a problem instead of a handoff.
func leavesNoHandoff(status escalation.SessionStatus) handoffScript {
	return func(activities.WriteHandoffInput) (activities.WriteHandoffResult, error) {
		return activities.WriteHandoffResult{
			Report: escalation.Report{Status: status, Cost: escalation.Cost{CostUSD: 0.02}, Error: "what went wrong"}, Problem: "tier 1 left nothing",
		}, nil
	}
}

// eventsOf returns the events of one kind.
func eventsOf(events []escalation.Event, kind escalation.EventKind) []escalation.Event {
	var found []escalation.Event
	for _, event := range events {
		if event.Kind == kind {
			found = append(found, event)
		}
	}
	return found
}

// handingOff returns a world in which context passes only by handoffs. Tier 1's verdict lacks fields that a handoff
// needs.
func handingOff(t *testing.T, write handoffScript) *world {
	t.Helper()
	w := newWorld(t, concludes(escalation.VerdictEscalate, 0.03), concludes(escalation.VerdictResolved, 0.50))
	w.policy.Continuity = escalation.ContinuityHandoffOnly
	w.writes = []handoffScript{write}
	return w
}

func TestChainAsksForAHandoff(t *testing.T) {
	t.Parallel()
	w := handingOff(t, writesHandoff("as it was written"))
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome)
	require.Len(t, result.Sessions, 3)
	observed, wrote, repaired := result.Sessions[0], result.Sessions[1], result.Sessions[2]
	require.Equal(t, escalation.PurposeHandoff, wrote.Purpose)
	require.Equal(t, escalation.TierObserve, wrote.Tier)
	require.Equal(t, "haiku", wrote.Model)
	require.Equal(t, escalation.ContinuityResume, wrote.Continuity)
	require.Equal(t, observed.ID, wrote.ParentID)
	require.InDelta(t, 0.55, result.CostUSD, 1e-9)
	require.InDelta(t, 0.02, w.closed[1].Report.CostUSD, 1e-9)

	require.Equal(t, observed.SessionID, w.asked[0].ParentSessionID)
	require.Equal(t, wrote.SessionID, w.asked[0].SessionID)
	require.Equal(t, escalation.TierSafeRepair, w.asked[0].Next)
	require.Equal(t, []string{"check_results"}, w.asked[0].Missing)

	require.Equal(t, escalation.TierSafeRepair, repaired.Tier)
	require.Equal(t, escalation.ReasonConfigured, repaired.ContinuityReason)
	require.Equal(t, observed.ID, repaired.ParentID)
	require.Equal(t, "as it was written", w.ran[1].Handoff.Summary)
	require.Contains(t, w.ran[1].Handoff.Cooldowns.Services, "jellyfin", "as the supervisor knows them")
	require.Empty(t, eventsOf(result.Events, escalation.EventHandoff))
	require.Len(t, eventsOf(result.Events, escalation.EventDecision), 3, "one for each session")
	require.Equal(t, result.Events, w.events)
}

func TestChainWhoseHandoffCannotBeUsed(t *testing.T) {
	t.Parallel()
	broken := func(activities.WriteHandoffInput) (activities.WriteHandoffResult, error) {
		return activities.WriteHandoffResult{}, temporal.NewNonRetryableApplicationError("the model is not reachable",
			activities.ErrorTypeAgent, nil, escalation.Report{Cost: escalation.Cost{CostUSD: 0.02}})
	}
	for name, tt := range map[string]struct {
		write   handoffScript
		problem string
	}{
		"invalid":   {leavesNoHandoff(escalation.SessionCompleted), "tier 1 left nothing"},
		"timed out": {leavesNoHandoff(escalation.SessionTimedOut), "tier 1 left nothing"},
		"broken":    {broken, "tier 1 left no handoff: the model is not reachable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := handingOff(t, tt.write)
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeNeedsHuman, result.Outcome)
			require.Equal(t, tt.problem, result.Reason)
			require.Len(t, w.ran, 1, "nothing escalates on it")
			require.InDelta(t, 0.05, result.CostUSD, 1e-9)
			events := eventsOf(result.Events, escalation.EventHandoff)
			require.Len(t, events, 1)
			require.Equal(t, escalation.SeverityCritical, events[0].Severity)
			require.Equal(t, tt.problem, events[0].Message)
			require.Equal(t, result.Sessions[1].SessionID, events[0].SessionID)
			decided := result.Events[len(result.Events)-2]
			require.Equal(t, "end (the handoff cannot be used): "+tt.problem, decided.Message)
			require.True(t, w.closed[1].Release)
			require.Equal(t, result.Events, w.events)
		})
	}
}

// TestChainWhoseConversationIsGone loses a conversation. The chain notices when it asks for the handoff.
func TestChainWhoseConversationIsGone(t *testing.T) {
	t.Parallel()
	for _, status := range []escalation.SessionStatus{escalation.SessionResumeFailed, escalation.SessionTranscriptLost} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			w := handingOff(t, leavesNoHandoff(status))
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, result.Outcome)
			require.Equal(t, "what it saw", w.ran[1].Handoff.Summary, "what the verdict has")
			events := eventsOf(result.Events, escalation.EventHandoff)
			require.Len(t, events, 1)
			require.Equal(t, escalation.SeverityWarning, events[0].Severity)
		})
	}
}

func TestChainThatDoesNotAsk(t *testing.T) {
	t.Parallel()
	const known = "4f2b7c1e-8b8e-4d53-9f0e-0d9c7e0f7a11"
	complete := func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		report, err := concludes(escalation.VerdictEscalate, 0.03)(t, input)
		report.Verdict.Checks = []escalation.CheckResult{{Service: "jellyfin", CheckType: "http", Status: escalation.CheckDown}}
		return report, err
	}
	nameless := func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		report, err := concludes(escalation.VerdictEscalate, 0.03)(t, input)
		report.ReportedSessionID = ""
		return report, err
	}
	repairs := concludes(escalation.VerdictResolved, 0.50)
	from := &workflows.ResumeFrom{SessionID: known}
	for name, tt := range map[string]struct {
		tiers []tierScript
		input workflows.ChainInput
	}{
		"the verdict is enough":          {[]tierScript{complete, repairs}, workflows.ChainInput{}},
		"the conversation is not known":  {[]tierScript{nameless, repairs}, workflows.ChainInput{}},
		"a dry run writes nothing":       {[]tierScript{repairs}, workflows.ChainInput{DryRun: true, ResumeFrom: from}},
		"it would be above what may run": {[]tierScript{repairs}, workflows.ChainInput{MaxTier: 1, ResumeFrom: from}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.tiers...)
			w.policy.Continuity = escalation.ContinuityHandoffOnly
			earlier := escalation.Session{ID: 7, SessionID: known, Tier: escalation.TierSafeRepair}
			earlier.Status, earlier.ReportedSessionID = escalation.SessionCompleted, known
			earlier.Verdict = &escalation.Verdict{Status: escalation.VerdictEscalate, Summary: "as before", Services: []string{"a"}}
			w.known = map[string]escalation.Session{known: earlier}
			result, err := w.run(t, tt.input)
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, result.Outcome)
			require.Equal(t, escalation.ContinuityHandoff, result.Last().Continuity)
			require.Len(t, result.Sessions, len(tt.tiers))
		})
	}
}

// TestChainAsksForNoHandoffInVain checks that the chain pays for a handoff only if the step would be admitted.
func TestChainAsksForNoHandoffInVain(t *testing.T) {
	t.Parallel()
	w := patient(handingOff(t, writesHandoff("after the wait")))
	w.tiers = []tierScript{w.tiers[0], concludes(escalation.VerdictEscalate, 0.01), w.tiers[1]}
	slot := w.env.Now().Add(time.Hour)
	w.facts = coolingUntil(func() time.Time { return slot })
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome)
	require.Equal(t, []escalation.Purpose{
		escalation.PurposeTier, escalation.PurposeRecheck, escalation.PurposeHandoff, escalation.PurposeTier,
	}, []escalation.Purpose{
		result.Sessions[0].Purpose, result.Sessions[1].Purpose, result.Sessions[2].Purpose, result.Sessions[3].Purpose,
	})
	require.Equal(t, result.Sessions[1].SessionID, w.asked[0].ParentSessionID, "who looked last is asked")
}

func TestChainWithoutTheMoneyForAHandoff(t *testing.T) {
	t.Parallel()
	w := handingOff(t, writesHandoff("never"))
	w.facts = func(request escalation.AdmissionRequest, _ time.Time) escalation.AdmissionFacts {
		if request.Purpose == escalation.PurposeHandoff {
			return escalation.AdmissionFacts{DaySpentUSD: 10}
		}
		return escalation.AdmissionFacts{}
	}
	w.policy.DayBudgetUSD = 10
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeNeedsHuman, result.Outcome)
	require.Len(t, result.Sessions, 1)
	require.Contains(t, result.Reason, "$10.00 is spent")
}

// TestChainOrderedWhileItHandsOff requests a tier while the handoff is being written. That tier starts from the
// handoff, or from the verdict if there is none.
func TestChainOrderedWhileItHandsOff(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		write handoffScript
		want  string
	}{
		"written": {writesHandoff("as it was written"), "as it was written"},
		"invalid": {leavesNoHandoff(escalation.SessionCompleted), "what it saw"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := handingOff(t, tt.write)
			w.tierTakes = time.Minute
			w.signalAfter(90*time.Second, `{"to_tier":3,"guidance":"be quick"}`)
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, result.Outcome)
			require.Len(t, result.Sessions, 3)
			require.Equal(t, escalation.TierFullRepair, result.Last().Tier)
			require.Equal(t, "be quick", w.ran[1].Guidance)
			require.Equal(t, tt.want, w.ran[1].Handoff.Summary)
			require.Equal(t, escalation.TierFullRepair, w.ran[1].Handoff.RecommendedTier)
		})
	}
}

func TestChainCancelledWhileItHandsOff(t *testing.T) {
	t.Parallel()
	w := handingOff(t, writesHandoff("never read"))
	w.tierTakes = time.Minute
	w.env.RegisterDelayedCallback(w.env.CancelWorkflow, 90*time.Second)
	_, err := w.run(t, workflows.ChainInput{})
	require.True(t, temporal.IsCanceledError(err), "got %v", err)
	chain := w.query(t)
	require.Equal(t, escalation.OutcomeAborted, chain.Outcome)
	require.Equal(t, escalation.SessionStopped, chain.Last().Status)
	require.Equal(t, chain.Events, w.events)
	require.Len(t, w.ran, 1)
}

// TestChainCancelledWhileItReviews cancels a chain while the database does not answer whether the step would be
// admitted.
func TestChainCancelledWhileItReviews(t *testing.T) {
	t.Parallel()
	w := handingOff(t, writesHandoff("never asked for"))
	w.failReview = true
	w.env.RegisterDelayedCallback(w.env.CancelWorkflow, time.Minute)
	_, err := w.run(t, workflows.ChainInput{})
	require.True(t, temporal.IsCanceledError(err), "got %v", err)
	chain := w.query(t)
	require.Equal(t, escalation.OutcomeAborted, chain.Outcome)
	require.Equal(t, "the chain was cancelled before the session began", chain.Reason)
	require.Equal(t, chain.Events, w.events)
	require.Equal(t, escalation.EventChainEnded, chain.Events[len(chain.Events)-1].Kind)
	require.True(t, w.recorded[len(w.recorded)-1].Release)
}

// TestHandoffThatIsTooLong checks that a handoff which is too long loses healthy checks, and that an event says so.
func TestHandoffThatIsTooLong(t *testing.T) {
	t.Parallel()
	long := func(t *testing.T, input activities.RunTierInput) (escalation.Report, error) {
		report, err := concludes(escalation.VerdictEscalate, 0.03)(t, input)
		for i := range 1_000 {
			report.Verdict.Checks = append(report.Verdict.Checks, escalation.CheckResult{
				Service: fmt.Sprint("service-", i), CheckType: strings.Repeat("http ", 10), Status: escalation.CheckHealthy,
			})
		}
		report.Verdict.Checks[7].Status = escalation.CheckDown
		return report, err
	}
	w := newWorld(t, long, concludes(escalation.VerdictResolved, 0.50))
	w.policy.Continuity = escalation.ContinuityHandoffOnly
	result, err := w.run(t, workflows.ChainInput{})
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, result.Outcome)
	require.Len(t, w.ran[1].Handoff.Checks, 1)
	require.Equal(t, "service-7", w.ran[1].Handoff.Checks[0].Service)
	require.Contains(t, w.ran[1].Handoff.Cooldowns.Services, "jellyfin")
	events := eventsOf(result.Events, escalation.EventHandoff)
	require.Len(t, events, 1)
	require.Equal(t, escalation.SeverityWarning, events[0].Severity)
	require.Contains(t, events[0].Message, "without 999 healthy checks")
	require.Equal(t, result.Events, w.events)
}

// TestGateOfAHandoffThatCannotBeUsed lets a person continue after an unusable handoff. The next tier starts from the
// verdict, and no session is asked to write the handoff again.
func TestGateOfAHandoffThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, goOn := range map[string]func(w *world){
		"fix":      func(w *world) { w.answerAfter(time.Hour, said(escalation.GateFix, "mind the proxy")) },
		"escalate": func(w *world) { w.signalAfter(time.Hour, `{"to_tier":2,"guidance":"mind the proxy"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := handingOff(t, leavesNoHandoff(escalation.SessionCompleted))
			w.policy.Gate = escalation.GatePolicy{Timeout: escalation.Duration(72 * time.Hour), OnTimeout: escalation.GateAbort}
			gate := w.gateAfter(t, time.Minute)
			goOn(w)
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.GateBlocked, gate.Source)
			require.Equal(t, escalation.TierSafeRepair, gate.Tier, "the tier that was to have it")
			require.Nil(t, gate.Continuation)
			require.NotEmpty(t, gate.NoContinuation)
			require.Equal(t, escalation.OutcomeResolved, result.Outcome)
			require.Len(t, w.asked, 1)
			require.Len(t, w.ran, 2)
			require.Equal(t, escalation.TierSafeRepair, w.ran[1].Tier)
			require.Equal(t, "mind the proxy", w.ran[1].Guidance)
			require.Equal(t, "what it saw", w.ran[1].Handoff.Summary, "from the verdict")
			require.Equal(t, result.Events, w.events)
		})
	}
}

// TestSessionThatOutgrewItsWindowIsTold lets the conversation of Tier 2 exceed the context window. Another session then
// replaces the session of Tier 2. If work had begun, the handoff must describe the interrupted work.
func TestSessionThatOutgrewItsWindowIsTold(t *testing.T) {
	t.Parallel()
	for name, contextTokens := range map[string]int{"in its work": 150_000, "at its first words": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outgrown := func(_ *testing.T, input activities.RunTierInput) (escalation.Report, error) {
				return escalation.Report{
					Status: escalation.SessionResumeFailed, Turns: 40, Attempts: 1, Cost: escalation.Cost{CostUSD: 2}, ContextTokens: contextTokens,
					Error: "the conversation no longer fits the model's window", ReportedSessionID: input.SessionID,
				}, nil
			}
			w := newWorld(t, concludes(escalation.VerdictEscalate, 0.1), outgrown, concludes(escalation.VerdictResolved, 0.1))
			w.inFlight = []activities.ToolCall{{Number: 3, Name: "Bash", Input: "docker restart\n*web*", State: activities.ToolRunning}}
			result, err := w.run(t, workflows.ChainInput{})
			require.NoError(t, err)
			require.Equal(t, escalation.ReasonResumeFailed, result.Sessions[2].ContinuityReason)
			told := w.ran[2].Handoff.Remediation
			if contextTokens == 0 {
				require.Empty(t, told)
				return
			}
			require.Contains(t, told, "An earlier session of tier 2, "+result.Sessions[1].SessionID)
			require.Contains(t, told, "- Bash: docker restart *web*")
		})
	}
}
