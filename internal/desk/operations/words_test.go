package operations

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

func TestSessionCost(t *testing.T) {
	t.Parallel()
	estimated := escalation.Report{Cost: escalation.Cost{CostUSD: 0.25, CostEstimated: true}, Attempts: 1}
	for want, session := range map[string]escalation.Session{
		"$0.25":         {BudgetUSD: 2, Report: escalation.Report{Cost: escalation.Cost{CostUSD: 0.25}}},
		"about $0.25":   {BudgetUSD: 2, Report: estimated},
		"at most $2.00": {BudgetUSD: 2, Report: escalation.Report{Cost: escalation.Cost{CostEstimated: true}}},
		"unknown":       {Report: escalation.Report{Cost: escalation.Cost{CostEstimated: true}}},
	} {
		require.Equal(t, want, SessionCost(&session))
	}
}

// TestContextNamesAMissingSandbox checks that the context shows a missing sandbox, but only if the session should have
// had one.
func TestContextNamesAMissingSandbox(t *testing.T) {
	t.Parallel()
	for sandbox, named := range map[string]bool{
		"guard only: none: this kernel has no Landlock, which came with Linux 5.13": true, "kernel only: landlock (ABI 7)": false,
		"guard only: off": false, "user only: none at tier 3, as user agent": false, "": false,
	} {
		session := escalation.Session{Report: escalation.Report{Sandbox: sandbox}}
		require.Equal(t, named, strings.Contains(SessionContext(&session), ", no sandbox"), sandbox)
	}
}

// TestContextNamesTheBranchOfAWorktree checks that the context shows where a session has left its work.
func TestContextNamesTheBranchOfAWorktree(t *testing.T) {
	t.Parallel()
	tree := &escalation.Worktree{Branch: "claudeops/chain-1"}
	session := escalation.Session{Report: escalation.Report{Worktree: tree}}
	require.NotContains(t, SessionContext(&session), "claudeops/")
	tree.Kept = true
	require.Contains(t, SessionContext(&session), ", work left on claudeops/chain-1")
}

// TestCallSubject checks which field of a call's input says what the call is about.
func TestCallSubject(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"command":"df -h","description":"disk"}`: "df -h", `{"file_path":"/etc/hosts"}`: "/etc/hosts",
		`{"status":"resolved","summary":"it answers"}`: "it answers", `{"other":1}`: `{"other":1}`, "cut {": "cut {",
	} {
		require.Equal(t, want, CallSubject(input))
	}
}

// TestAnswersAtThePhaseOfAPlan checks that no answer at the gate of a plan speaks of tiers and incidents.
func TestAnswersAtThePhaseOfAPlan(t *testing.T) {
	t.Parallel()
	gate := escalation.Gate{Tier: escalation.TierSafeRepair, Phase: "2", Role: "author", Resume: "auto_fix"}
	var answers []string
	for _, action := range []escalation.GateAction{escalation.GateContinue, escalation.GateFix, escalation.GateOverride, escalation.GateAbort} {
		answers = append(answers, AnswerMeaning(action, gate))
	}
	require.Equal(t, []string{
		"continue session: the author goes on in its conversation", "fix: the author works on phase 2 in a new session",
		"override: phase 2 is passed over without a commit, and the work on the plan goes on", "abort: the chain ends as aborted",
	}, answers)
	for resume, want := range map[string]string{"quality": "fix: the checks run again", "approved": "fix: what is approved is pushed again"} {
		require.Equal(t, want, AnswerMeaning(escalation.GateFix, escalation.Gate{Phase: "2", Resume: resume}))
	}
	reviewed := escalation.Gate{Phase: "2", Role: "reviewer", Resume: "review"}
	require.Equal(t, "fix: the reviewer works on phase 2 in a new session", AnswerMeaning(escalation.GateFix, reviewed))
	require.Equal(t, "the plan", GatePlace(escalation.Gate{Phase: escalation.PlanItself}))
	require.Equal(t, "tier 2", GatePlace(escalation.Gate{Tier: escalation.TierSafeRepair}))
}
