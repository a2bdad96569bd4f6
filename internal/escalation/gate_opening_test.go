package escalation_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/claudeops/claudeops/internal/escalation"
)

func gatePolicy() escalation.Policy {
	return escalation.Policy{
		Tiers: make([]escalation.TierPolicy, 3), MaxTier: escalation.TierFullRepair,
		Gate: escalation.GatePolicy{Timeout: escalation.Duration(72 * time.Hour), OnTimeout: escalation.GateAbort},
	}
}

// endedSession returns an ended session of tier. Its verdict is nil if conclusion is empty.
func endedSession(tier escalation.Tier, status escalation.SessionStatus, conclusion escalation.VerdictStatus) *escalation.Session {
	session := &escalation.Session{Tier: tier, SessionID: "the-session", Report: escalation.Report{
		Status: status, ReportedSessionID: "the-session", Error: "what went wrong",
	}}
	if conclusion != "" {
		session.Verdict = &escalation.Verdict{Status: conclusion, Summary: "what it saw", Services: []string{"web"}}
	}
	return session
}

// TestGateEligibility tries every event that opens a gate, with and without a session that can be continued. The gate
// is opened by a decision of Decide or by a refused admission.
func TestGateEligibility(t *testing.T) {
	t.Parallel()
	const completed = escalation.SessionCompleted
	for name, tt := range map[string]struct {
		session *escalation.Session
		// refused is the tier that was not admitted; 0 if the last step was a session.
		refused escalation.Tier
		rule    escalation.Rule // rule of the refusal
		policy  func(*escalation.Policy)
		spent   float64
		gone    escalation.TranscriptState // transcript state if it is not reachable; "?" means unknown
		source  escalation.GateSource
		tier    escalation.Tier
		// without is the reason why no session can be continued; empty if one can.
		without string
		// budget is the expected Gate.Budget.
		budget string
	}{
		"needs human":                    {session: endedSession(2, completed, escalation.VerdictNeedsHuman), source: escalation.GateNeedsHuman, tier: 2},
		"needs human, transcript gone":   {session: endedSession(2, completed, escalation.VerdictNeedsHuman), gone: escalation.TranscriptGone, source: escalation.GateNeedsHuman, tier: 2, without: "its transcript is gone"},
		"needs human, nobody could tell": {session: endedSession(1, completed, escalation.VerdictNeedsHuman), gone: "?", source: escalation.GateNeedsHuman, tier: 1, without: "nobody could tell"},
		"needs human, nothing spendable": {
			session: endedSession(2, completed, escalation.VerdictNeedsHuman), policy: func(p *escalation.Policy) { p.ChainBudgetUSD = 1 }, spent: 1,
			source: escalation.GateNeedsHuman, tier: 2, budget: "under the CLAUDEOPS_CHAIN_BUDGET_USD that is set then",
		},
		"failed":                          {session: endedSession(2, completed, escalation.VerdictFailed), source: escalation.GateFailed, tier: 2},
		"failed without a verdict":        {session: endedSession(2, escalation.SessionFailed, ""), source: escalation.GateFailed, tier: 2},
		"failed, and has no conversation": {session: without(endedSession(2, escalation.SessionFailed, "")), source: escalation.GateFailed, tier: 2, without: "did not come to have a conversation"},
		"completed without a verdict":     {session: endedSession(2, completed, ""), source: escalation.GateFailed, tier: 2},
		"the conversation did not load":   {session: endedSession(2, escalation.SessionResumeFailed, ""), source: escalation.GateFailed, tier: 2, without: "could not load its conversation (could not be continued)"},
		"the conversation is lost":        {session: endedSession(2, escalation.SessionTranscriptLost, ""), source: escalation.GateFailed, tier: 2, without: "could not load its conversation (the conversation is lost)"},
		"timed out":                       {session: endedSession(2, escalation.SessionTimedOut, ""), source: escalation.GateTimedOut, tier: 2},
		"its budget is spent":             {session: endedSession(2, escalation.SessionBudgetExhausted, ""), source: escalation.GateBudget, tier: 2},
		"its own budget is spent": {
			session: spends(endedSession(2, escalation.SessionBudgetExhausted, "")), source: escalation.GateBudget, tier: 2,
			budget: "under the CLAUDEOPS_TIER2_BUDGET_USD that is set then",
		},
		"its budget, transcript gone":         {session: endedSession(2, escalation.SessionBudgetExhausted, ""), gone: escalation.TranscriptGone, source: escalation.GateBudget, tier: 2, without: "its transcript is gone"},
		"beyond the highest tier allowed":     {session: endedSession(2, completed, escalation.VerdictEscalate), policy: func(p *escalation.Policy) { p.MaxTier = 2 }, source: escalation.GateBlocked, tier: 2, without: "it asks for another tier"},
		"tier 3 could not resolve":            {session: endedSession(3, completed, escalation.VerdictEscalate), source: escalation.GateUnresolved, tier: 3},
		"tier 3 could not, transcript gone":   {session: endedSession(3, completed, escalation.VerdictEscalate), gone: escalation.TranscriptGone, source: escalation.GateUnresolved, tier: 3, without: "its transcript is gone"},
		"an escalation is blocked":            {session: endedSession(1, completed, escalation.VerdictEscalate), refused: 2, rule: escalation.RuleCooldown, source: escalation.GateBlocked, tier: 2, without: "the next step is for tier 2"},
		"by the day's budget":                 {session: endedSession(2, completed, escalation.VerdictEscalate), refused: 3, rule: escalation.RuleDayBudget, budget: "under the CLAUDEOPS_DAY_BUDGET_USD that is set then", source: escalation.GateBlocked, tier: 3, without: "the next step is for tier 3"},
		"a recheck is blocked":                {session: endedSession(1, completed, escalation.VerdictEscalate), refused: 1, rule: escalation.RuleDayBudget, budget: "under the CLAUDEOPS_DAY_BUDGET_USD that is set then", source: escalation.GateBlocked, tier: 1, without: "it asks for another tier"},
		"a fix is blocked":                    {session: endedSession(2, escalation.SessionTimedOut, ""), refused: 2, rule: escalation.RuleCooldown, source: escalation.GateBlocked, tier: 2},
		"the first step is blocked":           {refused: 1, rule: escalation.RuleDayBudget, budget: "under the CLAUDEOPS_DAY_BUDGET_USD that is set then", source: escalation.GateBlocked, tier: 1, without: "no session has run"},
		"a handoff cannot be used":            {session: endedSession(1, completed, escalation.VerdictEscalate), refused: 2, rule: escalation.RuleHandoffInvalid, source: escalation.GateBlocked, tier: 2, without: "the next step is for tier 2"},
		"after a session that hands off":      {session: purposeOf(endedSession(2, completed, escalation.VerdictFailed), escalation.PurposeHandoff), source: escalation.GateFailed, tier: 2, without: "the last session had other work"},
		"a continuation timed out":            {session: purposeOf(endedSession(2, escalation.SessionTimedOut, ""), escalation.PurposeContinuation), source: escalation.GateTimedOut, tier: 2, without: "was tried, and failed"},
		"a continuation ran out of budget":    {session: purposeOf(endedSession(2, escalation.SessionBudgetExhausted, ""), escalation.PurposeContinuation), source: escalation.GateBudget, tier: 2, without: "was tried, and failed"},
		"a continuation failed":               {session: purposeOf(endedSession(2, completed, escalation.VerdictFailed), escalation.PurposeContinuation), source: escalation.GateFailed, tier: 2, without: "was tried, and failed"},
		"a continuation could not be loaded":  {session: purposeOf(resumed(endedSession(2, escalation.SessionResumeFailed, "")), escalation.PurposeContinuation), source: escalation.GateFailed, tier: 2, without: "was tried, and failed"},
		"a continuation asks for a person":    {session: purposeOf(endedSession(2, completed, escalation.VerdictNeedsHuman), escalation.PurposeContinuation), source: escalation.GateNeedsHuman, tier: 2},
		"a continuation of tier 3 gives up":   {session: purposeOf(endedSession(3, completed, escalation.VerdictEscalate), escalation.PurposeContinuation), source: escalation.GateUnresolved, tier: 3},
		"a continuation failed, fix is block": {session: purposeOf(endedSession(2, escalation.SessionTimedOut, ""), escalation.PurposeContinuation), refused: 2, rule: escalation.RuleCooldown, source: escalation.GateBlocked, tier: 2, without: "was tried, and failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := gatePolicy()
			if tt.policy != nil {
				tt.policy(&policy)
			}
			opening := escalation.GateInput{Number: 1, Last: tt.session, Transcript: escalation.TranscriptReachable, SpentUSD: tt.spent, SpentAtMostUSD: tt.spent}
			if tt.gone == "?" {
				opening.Transcript = escalation.TranscriptUnknown
			} else if tt.gone != "" {
				opening.Transcript = tt.gone
			}
			if opening.Tier, opening.Refused = tt.refused, tt.refused != 0; opening.Refused {
				opening.Decision = escalation.DecideRefused(escalation.Admission{Rule: tt.rule, Reason: "not now"})
			} else {
				opening.Tier = tt.session.Tier
				opening.Decision = escalation.Decide(policy, *tt.session, escalation.DecisionInput{})
			}
			opening.Decision = escalation.Gated(policy, opening.Decision)
			require.Equal(t, escalation.DecisionGate, opening.Decision.Action)

			gate := escalation.NewGate(policy, opening)
			require.Equal(t, tt.source, gate.Source)
			require.Equal(t, tt.tier, gate.Tier)
			all := []escalation.GateAction{escalation.GateContinue, escalation.GateFix, escalation.GateRecheck, escalation.GateOverride, escalation.GateAbort}
			options := slices.Clone(all)
			if tt.session == nil {
				options = slices.Delete(options, 2, 3)
			}
			require.Equal(t, tt.budget, gate.Budget)
			if tt.without == "" {
				require.Equal(t, &escalation.Continuation{SessionID: "the-session", Tier: tt.tier, Status: tt.session.Status}, gate.Continuation)
				require.Empty(t, gate.NoContinuation)
			} else {
				require.Nil(t, gate.Continuation)
				require.Contains(t, gate.NoContinuation, tt.without)
				options = slices.Delete(options, 0, 1)
			}
			require.Equal(t, options, gate.Options)
			for _, action := range all {
				err := gate.Check(escalation.GateAnswer{GateID: "gate-1", Action: action, Actor: "anna"})
				require.Equal(t, slices.Contains(options, action), err == nil, "%s: %v", action, err)
			}
		})
	}
}

// spends returns a session that has spent its budget.
func spends(session *escalation.Session) *escalation.Session {
	session.BudgetUSD, session.CostUSD = 1, 1
	return session
}

func without(session *escalation.Session) *escalation.Session {
	session.ReportedSessionID = ""
	return session
}

func resumed(session *escalation.Session) *escalation.Session {
	session.Continuity, session.ParentID = escalation.ContinuityResume, 7
	return session
}

func purposeOf(session *escalation.Session, purpose escalation.Purpose) *escalation.Session {
	session.Purpose = purpose
	if purpose == escalation.PurposeContinuation {
		session.ContinuityReason = escalation.ReasonContinued
	}
	return session
}

func TestWhatOpensNoGate(t *testing.T) {
	t.Parallel()
	failed := escalation.Decision{Action: escalation.DecisionComplete, Outcome: escalation.OutcomeFailed, Rule: escalation.RuleNoVerdict, Reason: "it broke"}
	require.Equal(t, escalation.Decision{Action: escalation.DecisionGate, Rule: escalation.RuleNoVerdict, Reason: "it broke"},
		escalation.Gated(gatePolicy(), failed))
	for name, change := range map[string]func(*escalation.Policy, *escalation.Decision){
		"no gates":   func(p *escalation.Policy, _ *escalation.Decision) { p.Gate.Timeout = 0 },
		"a dry run":  func(p *escalation.Policy, _ *escalation.Decision) { p.DryRun = true },
		"healthy":    func(_ *escalation.Policy, d *escalation.Decision) { d.Outcome = escalation.OutcomeHealthy },
		"suppressed": func(_ *escalation.Policy, d *escalation.Decision) { d.Outcome = escalation.OutcomeSuppressed },
		"cancelled":  func(_ *escalation.Policy, d *escalation.Decision) { *d = escalation.Cancelled() },
		"it goes on": func(_ *escalation.Policy, d *escalation.Decision) {
			*d = escalation.Decision{Action: escalation.DecisionEscalate, Tier: 2}
		},
	} {
		policy, decision := gatePolicy(), failed
		change(&policy, &decision)
		require.Equal(t, decision, escalation.Gated(policy, decision), name)
	}
}

// TestAutomaticFixesEnd checks that at most two expired gates in a row run their tier again. An operator's answer
// restarts the count.
func TestAutomaticFixesEnd(t *testing.T) {
	t.Parallel()
	policy := gatePolicy()
	policy.Gate.OnTimeout = escalation.GateFix
	opening := escalation.GateInput{Tier: 2, Last: endedSession(2, escalation.SessionTimedOut, "")}
	var onTimeout []escalation.GateAction
	expire := func(closing escalation.GateClosing) {
		opening.Number++
		gate := escalation.NewGate(policy, opening)
		onTimeout = append(onTimeout, gate.OnTimeout)
		gate.Answer = &closing
		opening.Before = append(opening.Before, gate)
	}
	nobody := escalation.GateClosing{Action: escalation.GateFix}
	expire(nobody)
	expire(nobody)
	expire(escalation.GateClosing{Action: escalation.GateFix, Actor: "anna"})
	expire(nobody)
	expire(nobody)
	expire(nobody)
	const fix, abort = escalation.GateFix, escalation.GateAbort
	require.Equal(t, []escalation.GateAction{fix, fix, abort, fix, fix, abort}, onTimeout)
}

// TestGateProperties checks the properties of gates on which callers rely, over random policies and sessions.
func TestGateProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		policy := gatePolicy()
		policy.Gate.OnTimeout = rapid.SampledFrom([]escalation.GateAction{escalation.GateAbort, escalation.GateFix}).Draw(t, "on timeout")
		policy.ChainBudgetUSD = rapid.SampledFrom([]float64{0, 1}).Draw(t, "budget")
		opening := escalation.GateInput{
			Number: rapid.IntRange(1, 9).Draw(t, "number"), Tier: rapid.SampledFrom(escalation.Tiers()).Draw(t, "tier"),
			Refused: rapid.Bool().Draw(t, "refused"), SpentAtMostUSD: rapid.Float64Range(0, 2).Draw(t, "spent"),
			Transcript: rapid.SampledFrom([]escalation.TranscriptState{"", escalation.TranscriptReachable, escalation.TranscriptGone}).Draw(t, "transcript"),
		}
		if rapid.Bool().Draw(t, "ran") {
			opening.Last = drawSession(t)
		}
		gate := escalation.NewGate(policy, opening)
		require.Equal(t, fmt.Sprintf("gate-%d", opening.Number), gate.ID)
		require.Equal(t, gate.Continuation != nil, slices.Contains(gate.Options, escalation.GateContinue), "the option and the session go together")
		require.Equal(t, gate.Continuation == nil, gate.NoContinuation != "", "there is a session, or a reason")
		require.Subset(t, gate.Options, []escalation.GateAction{escalation.GateOverride, escalation.GateAbort})
		require.Contains(t, gate.Options, gate.OnTimeout, "what an expired gate does is possible")
		if continuation := gate.Continuation; continuation != nil {
			require.Equal(t, gate.Tier, continuation.Tier, "nobody goes on in another tier")
			require.Equal(t, escalation.TranscriptReachable, opening.Transcript)
			require.Equal(t, opening.Last.SessionID, continuation.SessionID)
		}
		for _, option := range gate.Options {
			closing := escalation.GateClosing{Action: option, Actor: "anna"}
			_, ends := gate.Ending(closing)
			require.Equal(t, option == escalation.GateOverride || option == escalation.GateAbort, ends)
			require.NotEmpty(t, gate.Next(closing))
			reply, err := escalation.ParseGateReply(gate, option.Letter()+": because")
			require.NoError(t, err)
			require.Equal(t, option, reply.Action)
		}
	})
}

// TestAFixThatNeedsNoSession checks that a gate which expires after the budget is spent still does what starts no
// session.
func TestAFixThatNeedsNoSession(t *testing.T) {
	t.Parallel()
	policy := gatePolicy()
	policy.ChainBudgetUSD, policy.Gate.OnTimeout = 1, escalation.GateFix
	for name, c := range map[string]struct {
		phase string
		loop  escalation.LoopGate
		fix   bool
	}{
		"a push":               {"", escalation.LoopGate{Resume: "approved"}, true},
		"a push of a plan":     {escalation.PlanItself, escalation.LoopGate{Resume: "approved"}, true},
		"checks of a phase":    {"2", escalation.LoopGate{Resume: "quality"}, true},
		"checks of a chain":    {"", escalation.LoopGate{Resume: "quality"}, false}, // its author repairs what keeps them from running
		"an author":            {"2", escalation.LoopGate{Role: "author", Resume: "auto_fix"}, false},
		"a reviewer":           {"2", escalation.LoopGate{Role: "reviewer", Resume: "review"}, false},
		"a tier without loops": {"", escalation.LoopGate{}, false},
	} {
		opening := escalation.GateInput{Number: 1, Tier: 2, Last: endedSession(2, escalation.SessionCompleted, ""), SpentAtMostUSD: 1, Phase: c.phase}
		if c.loop.Resume != "" {
			opening.Loop = &c.loop
		}
		gate := escalation.NewGate(policy, opening)
		require.Contains(t, gate.Options, escalation.GateFix, name)
		require.Equal(t, c.fix, gate.OnTimeout == escalation.GateFix, name)
		require.Nil(t, gate.Continuation, name)
	}
}

// TestGateSaysWhatBecomesOfCommits checks that each answer which ends or skips work names the commits that it concerns.
func TestGateSaysWhatBecomesOfCommits(t *testing.T) {
	t.Parallel()
	const override, abort = escalation.GateOverride, escalation.GateAbort
	const aborted = "the chain ends"
	for _, c := range []struct {
		gate   escalation.Gate
		action escalation.GateAction
		want   string
	}{
		{escalation.Gate{Commit: "c2"}, override, "commit c2 is pushed as it is, and the chain ends"},
		{escalation.Gate{Commit: "c2"}, abort, aborted + ", and commit c2 stays on its branch without a push"},
		{escalation.Gate{Commit: "c2", NoRemote: true}, override, "commit c2 stays on its branch (the repository has no remote) as it is, and the chain ends"},
		{escalation.Gate{Phase: "2", Approved: "c1"}, abort, aborted + ", and what was approved, up to commit c1, stays on its branch without a push"},
		{escalation.Gate{Phase: "2", Approved: "c1", Commit: "c2"}, abort, aborted + ", and what was approved, up to commit c1, and commit c2 stay on their branch without a push"},
		{escalation.Gate{Phase: escalation.PlanItself, Approved: "c2", Commit: "c2", Resume: "approved"}, abort, aborted + ", and what was approved, up to commit c2, stays on its branch without a push"},
		{escalation.Gate{Phase: escalation.PlanItself}, override, "the plan is accepted as it is"},
		{escalation.Gate{Phase: escalation.PlanItself, Open: "P1 a"}, override, "the plan is accepted as it is with what is open (P1 a)"},
		{escalation.Gate{Phase: escalation.PlanItself, Commit: "c1", Open: "P1 a"}, override, "the plan is accepted as commit c1 has it with what is open (P1 a), which is pushed"},
		{escalation.Gate{Phase: escalation.PlanItself, Commit: "c1"}, override, "the plan is accepted as commit c1 has it, which is pushed"},
		{escalation.Gate{Phase: escalation.PlanItself, Commit: "c1", NoRemote: true}, override, "the plan is accepted as commit c1 has it, which stays on its branch (the repository has no remote)"},
	} {
		require.Equal(t, c.want, c.gate.Next(escalation.GateClosing{Action: c.action}))
	}
}

func drawSession(t *rapid.T) *escalation.Session {
	session := endedSession(rapid.SampledFrom(escalation.Tiers()).Draw(t, "session's tier"),
		rapid.SampledFrom([]escalation.SessionStatus{
			escalation.SessionCompleted, escalation.SessionFailed, escalation.SessionTimedOut, escalation.SessionBudgetExhausted,
			escalation.SessionResumeFailed, escalation.SessionTranscriptLost, escalation.SessionStopped, escalation.SessionRunning,
		}).Draw(t, "status"),
		rapid.SampledFrom([]escalation.VerdictStatus{
			"", escalation.VerdictNeedsHuman, escalation.VerdictFailed, escalation.VerdictEscalate,
		}).Draw(t, "verdict"))
	session.Purpose = rapid.SampledFrom([]escalation.Purpose{
		escalation.PurposeTier, escalation.PurposeContinuation, escalation.PurposeRecheck, escalation.PurposeHandoff,
	}).Draw(t, "purpose")
	session.ContinuityReason = rapid.SampledFrom([]escalation.ContinuityReason{"", escalation.ReasonContinued}).Draw(t, "reason")
	return session
}

func TestGateSaysWhatIsNext(t *testing.T) {
	t.Parallel()
	gate := openGate(everyAction...)
	gate.Tier, gate.Reason = 2, "tier 2 asks for a person"
	for want, closing := range map[string]escalation.GateClosing{
		"tier 2 goes on and keeps what it knows, with the guidance": {Action: escalation.GateContinue, Guidance: "x"},
		"tier 2 starts fresh":                       {Action: escalation.GateFix},
		"the state is accepted, and the chain ends": {Action: escalation.GateOverride},
		"the chain ends":                            {Action: escalation.GateAbort},
		"tier 3 runs":                               {ToTier: 3},
	} {
		require.Equal(t, want, gate.Next(closing))
	}
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for want, closing := range map[string]escalation.GateClosing{
		"anna answered override at Mar 4, 05:06 UTC at gate-1 (tier 2 asks for a person)":              {Action: escalation.GateOverride, Actor: "anna", At: at},
		"nobody answered until Mar 4, 05:06 UTC, so it was abort at gate-1 (tier 2 asks for a person)": {Action: escalation.GateAbort, At: at},
		"the chain was cancelled": {Action: escalation.GateAbort, At: at, Cancelled: true},
	} {
		decision, ends := gate.Ending(closing)
		require.True(t, ends)
		require.Equal(t, want, decision.Reason)
	}
}
