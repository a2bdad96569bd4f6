package escalation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/claudeops/claudeops/internal/escalation"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	escalate := func(to escalation.Tier) *escalation.Verdict {
		return &escalation.Verdict{Status: escalation.VerdictEscalate, RecommendedTier: to}
	}
	verdict := func(status escalation.VerdictStatus) *escalation.Verdict {
		return &escalation.Verdict{Status: status}
	}
	tests := map[string]struct {
		maxTier escalation.Tier
		dryRun  bool
		session escalation.Session
		input   escalation.DecisionInput
		// requested is the tier that a person asks for; 0 without a request.
		requested escalation.Tier
		want      escalation.Decision
	}{
		"healthy": {
			maxTier: 3, session: concluded(1, verdict(escalation.VerdictHealthy)),
			want: ended(escalation.OutcomeHealthy, escalation.RuleVerdict),
		},
		"resolved": {
			maxTier: 3, session: concluded(2, verdict(escalation.VerdictResolved)),
			want: ended(escalation.OutcomeResolved, escalation.RuleVerdict),
		},
		"needs human": {
			maxTier: 3, session: concluded(2, verdict(escalation.VerdictNeedsHuman)),
			want: ended(escalation.OutcomeNeedsHuman, escalation.RuleVerdict),
		},
		"failed": {
			maxTier: 3, session: concluded(1, verdict(escalation.VerdictFailed)),
			want: ended(escalation.OutcomeFailed, escalation.RuleVerdict),
		},
		"escalates to the next tier": {
			maxTier: 3, session: concluded(1, escalate(0)), want: escalates(2),
		},
		"escalates to the tier asked for": {
			maxTier: 3, session: concluded(1, escalate(3)), want: escalates(3),
		},
		"never escalates down": {
			maxTier: 3, session: concluded(2, escalate(1)), want: escalates(3),
		},
		"never below the tier that was asked for before a recheck": {
			maxTier: 3, session: concluded(1, escalate(0)), input: escalation.DecisionInput{MinTier: 3}, want: escalates(3),
		},
		"splits into independent issues": {
			maxTier: 2, session: concluded(1, severalIssues(3)),
			want: escalation.Decision{Action: escalation.DecisionSplit, Rule: escalation.RuleVerdict},
		},
		"one issue is no reason to split": {
			maxTier: 3, session: concluded(1, oneIssue()), want: escalates(2),
		},
		"an issue does not split": {
			maxTier: 3, session: concluded(1, severalIssues(0)), input: escalation.DecisionInput{NoSplit: true}, want: escalates(2),
		},
		"only the observer splits": {
			maxTier: 3, session: concluded(2, severalIssues(0)), want: escalates(3),
		},
		"a dry run does not split": {
			maxTier: 3, dryRun: true, session: concluded(1, severalIssues(0)),
			want: ended(escalation.OutcomeSuppressed, escalation.RuleDryRun),
		},
		"where nothing may repair, nothing splits": {
			maxTier: 1, session: concluded(1, severalIssues(0)), want: tooHigh(2),
		},
		"a person escalates what is healthy": {
			maxTier: 3, session: concluded(1, verdict(escalation.VerdictHealthy)), requested: 2,
			want: ordered(2),
		},
		"a person escalates what failed": {
			maxTier: 3, session: unconcluded(escalation.SessionFailed), requested: 3, want: ordered(3),
		},
		"a person cannot pass the highest tier": {
			maxTier: 2, session: concluded(1, verdict(escalation.VerdictHealthy)), requested: 3,
			want: ended(escalation.OutcomeHealthy, escalation.RuleVerdict),
		},
		"a person cannot pass a dry run": {
			maxTier: 3, dryRun: true, session: concluded(1, verdict(escalation.VerdictHealthy)), requested: 2,
			want: ended(escalation.OutcomeHealthy, escalation.RuleVerdict),
		},
		"a person cannot escalate downwards": {
			maxTier: 3, session: concluded(3, verdict(escalation.VerdictResolved)), requested: 2,
			want: ended(escalation.OutcomeResolved, escalation.RuleVerdict),
		},
		"a chain that was stopped stays stopped": {
			maxTier: 3, session: unconcluded(escalation.SessionStopped), requested: 3,
			want: ended(escalation.OutcomeAborted, escalation.RuleNoVerdict),
		},
		"a dry run escalates nothing": {
			maxTier: 3, dryRun: true, session: concluded(1, escalate(2)),
			want: ended(escalation.OutcomeSuppressed, escalation.RuleDryRun),
		},
		"a dry run is asked before the highest tier": {
			maxTier: 1, dryRun: true, session: concluded(1, escalate(2)),
			want: ended(escalation.OutcomeSuppressed, escalation.RuleDryRun),
		},
		"the highest tier holds": {
			maxTier: 2, session: concluded(2, escalate(3)), want: tooHigh(3),
		},
		"a lower tier is no substitute for the one asked for, unless a person says so": {
			maxTier: 2, session: concluded(1, escalate(3)), want: tooHigh(2),
		},
		"nothing is above tier 3": {
			maxTier: 3, session: concluded(3, escalate(0)),
			want: ended(escalation.OutcomeNeedsHuman, escalation.RuleMaxTier),
		},
		"completed without a verdict": {
			maxTier: 3, session: concluded(1, nil),
			want: ended(escalation.OutcomeFailed, escalation.RuleNoVerdict),
		},
		"timed out": {
			maxTier: 3, session: unconcluded(escalation.SessionTimedOut),
			want: ended(escalation.OutcomeNeedsHuman, escalation.RuleNoVerdict),
		},
		"out of budget": {
			maxTier: 3, session: unconcluded(escalation.SessionBudgetExhausted),
			want: ended(escalation.OutcomeNeedsHuman, escalation.RuleNoVerdict),
		},
		"stopped": {
			maxTier: 3, session: unconcluded(escalation.SessionStopped),
			want: ended(escalation.OutcomeAborted, escalation.RuleNoVerdict),
		},
		"broken": {
			maxTier: 3, session: unconcluded(escalation.SessionFailed),
			want: ended(escalation.OutcomeFailed, escalation.RuleNoVerdict),
		},
		"a conversation that cannot be resumed is handed off": {
			maxTier: 3, session: unresumed(2, escalation.ContinuityResume, 7),
			want: escalation.Decision{Action: escalation.DecisionHandoff, Tier: 2, Rule: escalation.RuleResumeFailed},
		},
		"a conversation that is lost is handed off": {
			maxTier: 3, session: lost(2, escalation.ContinuityResume, 7),
			want: escalation.Decision{Action: escalation.DecisionHandoff, Tier: 2, Rule: escalation.RuleTranscriptLost},
		},
		"a handoff in place of a lost conversation is tried once": {
			maxTier: 3, session: lost(2, escalation.ContinuityHandoff, 7),
			want: ended(escalation.OutcomeFailed, escalation.RuleTranscriptLost),
		},
		"a lost conversation without a record has nothing to hand off": {
			maxTier: 3, session: lost(1, escalation.ContinuityResume, 0),
			want: ended(escalation.OutcomeFailed, escalation.RuleTranscriptLost),
		},
		"a handoff is tried once": {
			maxTier: 3, session: unresumed(2, escalation.ContinuityHandoff, 7),
			want: ended(escalation.OutcomeFailed, escalation.RuleResumeFailed),
		},
		"a conversation without a record has nothing to hand off": {
			maxTier: 3, session: unresumed(1, escalation.ContinuityResume, 0),
			want: ended(escalation.OutcomeFailed, escalation.RuleResumeFailed),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := escalation.Policy{MaxTier: tt.maxTier, DryRun: tt.dryRun}
			got := escalation.Requested(policy, tt.session, tt.requested, escalation.Decide(policy, tt.session, tt.input))
			require.NotEmpty(t, got.Reason)
			got.Reason = ""
			require.Equal(t, tt.want, got)
		})
	}
}

func TestDecideProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		policy := escalation.Policy{
			MaxTier: anyTier().Draw(t, "max tier"),
			DryRun:  rapid.Bool().Draw(t, "dry run"),
		}
		session := anySession().Draw(t, "session")
		input := escalation.DecisionInput{
			MinTier: escalation.Tier(rapid.IntRange(0, 3).Draw(t, "min tier")),
			NoSplit: rapid.Bool().Draw(t, "no split"),
		}
		requested := escalation.Tier(rapid.IntRange(-1, 5).Draw(t, "requested tier"))

		got := escalation.Requested(policy, session, requested, escalation.Decide(policy, session, input))

		require.NotEmpty(t, got.Reason)
		require.NotEmpty(t, got.Rule)
		switch got.Action {
		case escalation.DecisionEscalate:
			require.LessOrEqual(t, got.Tier, policy.MaxTier, "past the highest tier")
			require.Greater(t, got.Tier, session.Tier, "not upwards")
			require.False(t, policy.DryRun, "in a dry run")
			require.NotEqual(t, escalation.SessionStopped, session.Status, "of a chain that was cancelled")
			if got.Rule == escalation.RuleOperator {
				require.Equal(t, requested, got.Tier)
			} else {
				require.Equal(t, escalation.VerdictEscalate, session.Verdict.Status, "not asked for")
				require.GreaterOrEqual(t, got.Tier, input.MinTier, "below what was asked for")
			}
			require.Empty(t, got.Outcome)
		case escalation.DecisionSplit:
			require.False(t, policy.DryRun || input.NoSplit)
			require.Greater(t, len(session.Verdict.Issues), 1)
			require.Greater(t, policy.MaxTier, session.Tier)
		case escalation.DecisionHandoff:
			require.Equal(t, session.Tier, got.Tier)
			require.Equal(t, escalation.ContinuityResume, session.Continuity, "would never end")
			require.Contains(t, []escalation.SessionStatus{
				escalation.SessionResumeFailed, escalation.SessionTranscriptLost,
			}, session.Status, "the conversation is there")
			require.Empty(t, got.Outcome)
		case escalation.DecisionComplete:
			require.NotEmpty(t, got.Outcome)
			if got.Tier != 0 {
				require.Equal(t, escalation.RuleMaxTier, got.Rule)
				require.Greater(t, got.Tier, session.Tier, "a person would get nothing else")
			}
		case escalation.DecisionWait:
			require.Fail(t, "only a refused session waits")
		case escalation.DecisionGate:
			require.Fail(t, "only Gated opens gates")
		default:
			require.Fail(t, "unknown action", got.Action)
		}
	})
}

func anyTier() *rapid.Generator[escalation.Tier] {
	return rapid.SampledFrom(escalation.Tiers())
}

func anySession() *rapid.Generator[escalation.Session] {
	return rapid.Custom(func(t *rapid.T) escalation.Session {
		session := escalation.Session{
			Tier:     anyTier().Draw(t, "tier"),
			ParentID: rapid.Int64Range(0, 2).Draw(t, "parent"),
			Continuity: rapid.SampledFrom([]escalation.Continuity{
				escalation.ContinuityFresh, escalation.ContinuityResume, escalation.ContinuityHandoff,
			}).Draw(t, "continuity"),
		}
		session.Status = rapid.SampledFrom([]escalation.SessionStatus{
			escalation.SessionCompleted, escalation.SessionCompleted, escalation.SessionCompleted,
			escalation.SessionFailed, escalation.SessionTimedOut, escalation.SessionBudgetExhausted,
			escalation.SessionResumeFailed, escalation.SessionTranscriptLost, escalation.SessionStopped, escalation.SessionRunning, "unheard of",
		}).Draw(t, "status")
		session.ReportedSessionID = rapid.SampledFrom([]string{"", "reported"}).Draw(t, "reported id")
		session.ContextTokens = rapid.IntRange(0, 300_000).Draw(t, "context tokens")
		if rapid.IntRange(0, 9).Draw(t, "no verdict") > 0 {
			session.Verdict = &escalation.Verdict{
				Status: rapid.SampledFrom([]escalation.VerdictStatus{
					escalation.VerdictHealthy, escalation.VerdictResolved, escalation.VerdictEscalate,
					escalation.VerdictEscalate, escalation.VerdictNeedsHuman, escalation.VerdictFailed, "unheard of",
				}).Draw(t, "verdict"),
				RecommendedTier: escalation.Tier(rapid.IntRange(-1, 5).Draw(t, "recommended")),
				Issues:          make([]escalation.Issue, rapid.IntRange(0, 3).Draw(t, "issues")),
			}
		}
		return session
	})
}

func concluded(tier escalation.Tier, verdict *escalation.Verdict) escalation.Session {
	session := escalation.Session{Tier: tier}
	session.Status, session.Verdict = escalation.SessionCompleted, verdict
	return session
}

func unconcluded(status escalation.SessionStatus) escalation.Session {
	session := escalation.Session{Tier: escalation.TierSafeRepair, ParentID: 7, Continuity: escalation.ContinuityResume}
	session.Status, session.Error = status, "the reason"
	return session
}

func unresumed(tier escalation.Tier, continuity escalation.Continuity, parent int64) escalation.Session {
	session := escalation.Session{Tier: tier, Continuity: continuity, ParentID: parent}
	session.Status = escalation.SessionResumeFailed
	return session
}

func lost(tier escalation.Tier, continuity escalation.Continuity, parent int64) escalation.Session {
	session := unresumed(tier, continuity, parent)
	session.Status = escalation.SessionTranscriptLost
	return session
}

func ended(outcome escalation.Outcome, rule escalation.Rule) escalation.Decision {
	return escalation.Decision{Action: escalation.DecisionComplete, Outcome: outcome, Rule: rule}
}

// tooHigh returns the decision on a session that asks for more than is allowed. A person can start next.
func tooHigh(next escalation.Tier) escalation.Decision {
	decision := ended(escalation.OutcomeNeedsHuman, escalation.RuleMaxTier)
	decision.Tier = next
	return decision
}

func escalates(to escalation.Tier) escalation.Decision {
	return escalation.Decision{Action: escalation.DecisionEscalate, Tier: to, Rule: escalation.RuleVerdict}
}

func severalIssues(recommended escalation.Tier) *escalation.Verdict {
	return &escalation.Verdict{
		Status: escalation.VerdictEscalate, RecommendedTier: recommended,
		Issues: []escalation.Issue{{Summary: "one", Services: []string{"a"}}, {Summary: "two", Services: []string{"b"}}},
	}
}

func oneIssue() *escalation.Verdict {
	verdict := severalIssues(0)
	verdict.Issues = verdict.Issues[:1]
	return verdict
}

func ordered(to escalation.Tier) escalation.Decision {
	return escalation.Decision{Action: escalation.DecisionEscalate, Tier: to, Rule: escalation.RuleOperator}
}

func TestDecideRefused(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	waits := escalation.DecideRefused(escalation.Admission{Rule: escalation.RuleCooldown, Reason: "too often", WaitUntil: until})
	require.Equal(t, escalation.Decision{
		Action: escalation.DecisionWait, Until: until, Rule: escalation.RuleCooldown, Reason: "too often",
	}, waits)
	ends := escalation.DecideRefused(escalation.Admission{Rule: escalation.RuleDayBudget, Reason: "all spent"})
	require.Equal(t, escalation.OutcomeNeedsHuman, ends.Outcome)
	require.Equal(t, escalation.RuleDayBudget, ends.Rule)
}

func TestDecideIssues(t *testing.T) {
	t.Parallel()
	issue := func(outcome escalation.Outcome) escalation.IssueChain { return escalation.IssueChain{Outcome: outcome} }
	for want, issues := range map[escalation.Outcome][]escalation.IssueChain{
		escalation.OutcomeResolved:   {issue(escalation.OutcomeHealthy), issue(escalation.OutcomeResolved)},
		escalation.OutcomeNeedsHuman: {issue(escalation.OutcomeNeedsHuman), issue(escalation.OutcomeResolved)},
		escalation.OutcomeFailed:     {issue(escalation.OutcomeNeedsHuman), issue(escalation.OutcomeFailed)},
	} {
		decision := escalation.DecideIssues(issues)
		require.Equal(t, want, decision.Outcome)
		require.Equal(t, "1 of 2 issues ended "+string(want), decision.Reason)
	}
}

func TestDecideHandoff(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status    escalation.SessionStatus
		problem   string
		requested escalation.Tier
		want      escalation.Decision
	}{
		"written": {
			status: escalation.SessionCompleted,
			want:   escalation.Decision{Action: escalation.DecisionEscalate, Tier: 2, Rule: escalation.RuleVerdict},
		},
		"written before a limit ended it": {
			status: escalation.SessionBudgetExhausted,
			want:   escalation.Decision{Action: escalation.DecisionEscalate, Tier: 2, Rule: escalation.RuleVerdict},
		},
		"written, and a person asks for more": {
			status: escalation.SessionCompleted, requested: 3,
			want: escalation.Decision{Action: escalation.DecisionEscalate, Tier: 3, Rule: escalation.RuleOperator},
		},
		"invalid": {
			status: escalation.SessionCompleted, problem: "schema_version is 2",
			want: ended(escalation.OutcomeNeedsHuman, escalation.RuleHandoffInvalid),
		},
		"invalid, and a person asks": {
			status: escalation.SessionCompleted, problem: "schema_version is 2", requested: 2,
			want: escalation.Decision{Action: escalation.DecisionEscalate, Tier: 2, Rule: escalation.RuleOperator},
		},
		"not written": {
			status: escalation.SessionFailed, problem: "the model is away",
			want: ended(escalation.OutcomeNeedsHuman, escalation.RuleHandoffInvalid),
		},
		"nobody to ask any more": {
			status: escalation.SessionTranscriptLost, problem: "it is gone",
			want: escalation.Decision{Action: escalation.DecisionEscalate, Tier: 2, Rule: escalation.RuleTranscriptLost},
		},
		"not to be asked any more": {
			status: escalation.SessionResumeFailed, problem: "it cannot be loaded",
			want: escalation.Decision{Action: escalation.DecisionEscalate, Tier: 2, Rule: escalation.RuleResumeFailed},
		},
		"cancelled, whoever asks": {
			status: escalation.SessionStopped, problem: "the chain was cancelled", requested: 3,
			want: ended(escalation.OutcomeAborted, escalation.RuleCancelled),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			session := escalation.Session{
				Tier: 1, Purpose: escalation.PurposeHandoff, Continuity: escalation.ContinuityResume,
				Report: escalation.Report{Status: tt.status, Error: "so it was"},
			}
			policy := escalation.Policy{MaxTier: 3}
			got := escalation.Requested(policy, session, tt.requested, escalation.DecideHandoff(policy, session, escalation.HandoffInput{
				Next: 2, Problem: tt.problem,
			}))
			require.NotEmpty(t, got.Reason)
			got.Reason = ""
			require.Equal(t, tt.want, got)
		})
	}
}
