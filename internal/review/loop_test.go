package review_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/review"
)

// scope permits small changes of ordinary files.
var scope = review.Scope{MaxFiles: 5, MaxLines: 100}

// limits permits two corrections and one repair of the checks.
var limits = review.Limits{Fixes: 2, Retries: 1}

// committed is an author's turn that leaves a commit.
func committed(commit string, paths ...string) review.Authored {
	files := []review.File{{Path: "compose.yaml", Added: 1}}
	for _, path := range paths {
		files = append(files, review.File{Path: path, Added: 1})
	}
	return review.Authored{Commit: commit, Files: files, Scope: scope}
}

func finding(fingerprint string, priority review.Priority) review.Finding {
	return review.Finding{
		Fingerprint: fingerprint, Priority: priority, Action: review.AutoFix, File: "compose.yaml", Line: 3, Text: "wrong",
	}
}

func verdict(status review.Status, findings ...review.Finding) *review.Verdict {
	return &review.Verdict{Status: status, Summary: "said", Findings: append([]review.Finding{}, findings...)}
}

// reviewing returns a loop in which the author has left a commit that the checks let pass.
func reviewing(t *testing.T, from review.Loop, commit string, paths ...string) review.Loop {
	t.Helper()
	loop, decision := from.AfterAuthor(committed(commit, paths...))
	require.Equal(t, review.StateQuality, loop.State, "%s", decision.Reason)
	loop, _ = loop.AfterQuality(review.QualityPassed, "")
	require.Equal(t, review.StateReview, loop.State)
	return loop
}

// everywhere counts every line of the file of a finding as changed.
func everywhere() map[string][]review.Span {
	return map[string][]review.Span{"compose.yaml": {{From: 1, To: 1000}}}
}

func TestAfterAuthor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		turn  review.Authored
		state review.State
		rule  review.Rule
	}{
		"a commit":        {committed("c1"), review.StateQuality, review.RuleCommitted},
		"nothing":         {review.Authored{Scope: scope}, review.StateGate, review.RuleNoCommit},
		"the same commit": {committed("c0"), review.StateGate, review.RuleNoCommit},
		"an empty commit": {review.Authored{Commit: "c1", Scope: scope}, review.StateGate, review.RuleNoCommit},
		"a commit with the same files": {
			review.Authored{Commit: "c1", Tree: "t0", Files: []review.File{{Path: "a", Added: 1}}, Scope: scope},
			review.StateGate, review.RuleNoCommit,
		},
		"a failed session": {
			review.Authored{Commit: "c1", Problem: "it ran out of time"}, review.StateGate, review.RuleAuthor,
		},
		"too many files": {committed("c1", "a", "b", "c", "d", "e"), review.StateGate, review.RuleTooLarge},
		"too many lines": {
			review.Authored{Commit: "c1", Scope: scope, Files: []review.File{{Path: "a", Removed: 101}}}, review.StateGate, review.RuleTooLarge,
		},
		"a phase less": {
			review.Authored{Commit: "c1", Scope: scope, Files: []review.File{{Path: "plan.md"}}, Lost: []string{"phase 2 was removed"}},
			review.StateGate, review.RulePlan,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := review.NewLoop(limits)
			before.Commit, before.Tree, before.State = "c0", "t0", review.StateAutoFix
			loop, decision := before.AfterAuthor(c.turn)
			require.Equal(t, []any{c.state, c.rule}, []any{loop.State, decision.Rule}, decision.Reason)
			require.Equal(t, loop.State, decision.State)
			if loop.State == review.StateGate {
				require.Equal(t, review.StateAutoFix, loop.Resume)
				want := "c0" // a person can accept the new commit only where one was made
				if c.rule == review.RuleTooLarge || c.rule == review.RulePlan {
					want = "c1"
				}
				require.Equal(t, want, loop.Commit)
			}
		})
	}
}

func TestAfterQuality(t *testing.T) {
	t.Parallel()
	begun, _ := review.NewLoop(limits).AfterAuthor(committed("c1"))
	for result, want := range map[review.QualityResult]review.State{
		review.QualityPassed: review.StateReview, review.QualityNone: review.StateReview,
		review.QualityFailed: review.StateQualityRetry, review.QualityUnknown: review.StateGate, "": review.StateGate,
	} {
		loop, decision := begun.AfterQuality(result, "said")
		require.Equal(t, want, loop.State, "%s: %s", result, decision.Reason)
	}
	again, _ := begun.AfterQuality(review.QualityFailed, "said")
	again, _ = again.AfterAuthor(committed("c2"))
	require.Equal(t, review.StateQuality, again.State, "the checks run after every turn of the author")
	again, decision := again.AfterQuality(review.QualityFailed, "still")
	require.Equal(t, []any{review.StateGate, review.StateQualityRetry}, []any{again.State, again.Resume}, "one repair is allowed")
	require.Contains(t, decision.Reason, "still")
}

func TestAfterReview(t *testing.T) {
	t.Parallel()
	human := finding("choice", review.P1)
	human.Action = review.HumanRequired
	blind := finding("blind", review.P1)
	blind.Line = 0
	for name, c := range map[string]struct {
		turn  review.Reviewed
		state review.State
		rule  review.Rule
	}{
		"ready":            {review.Reviewed{Verdict: verdict("ready")}, review.StateApproved, review.RuleReviewed},
		"ready with P2":    {review.Reviewed{Verdict: verdict("ready", finding("a", review.P2))}, review.StateApproved, review.RuleReviewed},
		"ready with P0":    {review.Reviewed{Verdict: verdict("ready", finding("a", review.P0))}, review.StateAutoFix, review.RuleCorrections},
		"P2 never blocks":  {review.Reviewed{Verdict: verdict("not_ready", finding("a", review.P2))}, review.StateApproved, review.RuleReviewed},
		"corrections":      {review.Reviewed{Verdict: verdict("ready_with_corrections", finding("a", review.P1))}, review.StateAutoFix, review.RuleCorrections},
		"no findings":      {review.Reviewed{Verdict: verdict("not_ready")}, review.StateGate, review.RuleNoFindings},
		"no corrections":   {review.Reviewed{Verdict: verdict("ready_with_corrections")}, review.StateGate, review.RuleNoFindings},
		"a person decides": {review.Reviewed{Verdict: verdict("not_ready", human)}, review.StateGate, review.RuleHumanRequired},
		"no verdict":       {review.Reviewed{Problem: "it ran out of time"}, review.StateGate, review.RuleNotReviewed},
		"without evidence": {review.Reviewed{Verdict: verdict("not_ready", blind)}, review.StateGate, review.RuleNotReviewed},
		"a tier's verdict": {review.Reviewed{Verdict: verdict("healthy")}, review.StateGate, review.RuleNotReviewed},
		"another commit":   {review.Reviewed{Commit: "c0", Verdict: verdict("ready")}, review.StateGate, review.RuleNotReviewed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.turn.Commit == "" {
				c.turn.Commit = "c1"
			}
			loop, decision := reviewing(t, review.NewLoop(limits), "c1").AfterReview(c.turn)
			require.Equal(t, []any{c.state, c.rule}, []any{loop.State, decision.Rule}, decision.Reason)
			require.Equal(t, loop.State == review.StateApproved, loop.Approves("c1"))
			require.False(t, loop.Approves("c2"), "an approval is of one commit")
		})
	}
}

func TestApprovalOfWhatAPersonMustSee(t *testing.T) {
	t.Parallel()
	loop := reviewing(t, review.NewLoop(limits), "c1", "tests/port.bats")
	loop, decision := loop.AfterReview(review.Reviewed{Commit: "c1", Verdict: verdict("ready")})
	require.Equal(t, []any{review.StateGate, review.RuleForPerson}, []any{loop.State, decision.Rule})
	require.Contains(t, decision.Reason, "it changes tests: tests/port.bats")
	require.False(t, loop.Approves("c1"))
	approved, _ := loop.AfterGate(escalation.GateOverride)
	require.True(t, approved.Approves("c1"))
	hidden := committed("c1")
	hidden.Hidden = review.Hidden("+image: nginx\u202e")
	unseen, _ := review.NewLoop(limits).AfterAuthor(hidden)
	require.Equal(t, []string{"it contains characters that cannot be seen"}, unseen.ForPerson)
	require.False(t, review.Hidden("+\timage: nginx\r\n"))
	for _, action := range []escalation.GateAction{escalation.GateAbort, escalation.GateRecheck} {
		ended, _ := loop.AfterGate(action)
		require.Equal(t, review.StateAborted, ended.State)
		require.False(t, ended.Approves("c1"))
	}
}

// TestSecondReview checks that the second review is about the open findings and the changed lines.
func TestSecondReview(t *testing.T) {
	t.Parallel()
	changed := map[string][]review.Span{"compose.yaml": {{From: 3, To: 4}}, "web/gone": {{From: 0, To: math.MaxInt32}}}
	in := func(file string, line int) review.Finding {
		f := finding("new", review.P1)
		f.File, f.Line = file, line
		return f
	}
	shown := in("", 0)
	shown.Output = "port 80 is open"
	elsewhere := func(name string, priority review.Priority) review.Finding {
		f := finding(name, priority)
		f.Line = 90
		return f
	}
	for name, c := range map[string]struct {
		findings []review.Finding
		state    review.State
		rule     review.Rule
		notes    int
	}{
		"corrected":                     {nil, review.StateApproved, review.RuleReviewed, 0},
		"still open":                    {[]review.Finding{elsewhere("old", review.P1)}, review.StateAutoFix, review.RuleCorrections, 0},
		"new in changed lines":          {[]review.Finding{finding("new", review.P1)}, review.StateAutoFix, review.RuleCorrections, 0},
		"new P1 in other lines":         {[]review.Finding{elsewhere("new", review.P1)}, review.StateApproved, review.RuleReviewed, 1},
		"new P0 in other lines":         {[]review.Finding{elsewhere("new", review.P0)}, review.StateGate, review.RuleLate, 0},
		"new P1 shown by output":        {[]review.Finding{shown}, review.StateAutoFix, review.RuleCorrections, 0},
		"new P1 in a file that is gone": {[]review.Finding{in("web/gone", 7)}, review.StateAutoFix, review.RuleCorrections, 0},
		"another spelling of the path":  {[]review.Finding{in("./compose.yaml", 3)}, review.StateAutoFix, review.RuleCorrections, 0},
		"from the chain's directory":    {[]review.Finding{in("gone", 7)}, review.StateAutoFix, review.RuleCorrections, 0},
		"P2":                            {[]review.Finding{finding("small", review.P2)}, review.StateApproved, review.RuleReviewed, 1},
		"new P1 in other lines and old": {[]review.Finding{elsewhere("new", review.P1), finding("old", review.P1)}, review.StateAutoFix, review.RuleCorrections, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loop, _ := reviewing(t, review.NewLoop(limits), "c1").AfterReview(
				review.Reviewed{Commit: "c1", Verdict: verdict("not_ready", finding("old", review.P1))})
			status := review.NotReady
			if c.findings == nil {
				status = review.Ready
			}
			loop, decision := reviewing(t, loop, "c2").AfterReview(
				review.Reviewed{Commit: "c2", Verdict: verdict(status, c.findings...), Changed: changed})
			require.Equal(t, []any{c.state, c.rule}, []any{loop.State, decision.Rule}, decision.Reason)
			require.Len(t, decision.Notes, c.notes)
		})
	}
}

// TestDroppedP0 checks that a P0 does not vanish because the second review does not name it: something must have changed in its file.
func TestDroppedP0(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]review.Rule{"compose.yaml": review.RuleReviewed, "other.yaml": review.RuleDropped} {
		loop, _ := reviewing(t, review.NewLoop(limits), "c1").AfterReview(
			review.Reviewed{Commit: "c1", Verdict: verdict("not_ready", finding("old", review.P0))})
		loop, decision := reviewing(t, loop, "c2").AfterReview(review.Reviewed{
			Commit: "c2", Verdict: verdict("ready"), Changed: map[string][]review.Span{file: {{From: 3, To: 4}}},
		})
		require.Equal(t, want, decision.Rule, decision.Reason)
		require.Equal(t, want == review.RuleReviewed, len(loop.Open) == 0)
	}
}

// TestAcceptedRisk checks that a finding that a person has accepted returns only with new evidence.
func TestAcceptedRisk(t *testing.T) {
	t.Parallel()
	old := finding("risk", review.P0)
	old.Output = "port 80 is open"
	loop, _ := reviewing(t, review.NewLoop(review.Limits{}), "c1").AfterReview(review.Reviewed{Commit: "c1", Verdict: verdict("not_ready", old)})
	require.Equal(t, review.StateGate, loop.State, "no corrections are allowed")
	loop, _ = loop.AfterGate(escalation.GateOverride)
	require.True(t, loop.Approves("c1"))
	for output, want := range map[string]review.State{"port 80 is open": review.StateApproved, "it was attacked": review.StateGate} {
		again := old
		again.Output = output
		next, decision := reviewing(t, loop, "c2").AfterReview(
			review.Reviewed{Commit: "c2", Verdict: verdict("not_ready", again), Changed: everywhere()})
		require.Equal(t, want, next.State, decision.Reason)
	}
}

// TestAcceptedRiskThatGrows checks that a person who has accepted a finding has not accepted a more severe one.
func TestAcceptedRiskThatGrows(t *testing.T) {
	t.Parallel()
	for before, want := range map[review.Priority]review.State{review.P0: review.StateApproved, review.P1: review.StateGate} {
		loop, _ := reviewing(t, review.NewLoop(review.Limits{}), "c1").AfterReview(
			review.Reviewed{Commit: "c1", Verdict: verdict("not_ready", finding("risk", before))})
		loop, _ = loop.AfterGate(escalation.GateOverride)
		loop, _ = reviewing(t, review.NewLoop(review.Limits{}).Accepting(loop), "c2").AfterReview(
			review.Reviewed{Commit: "c2", Verdict: verdict("not_ready", finding("risk", review.P0))})
		require.Equal(t, want, loop.State, before)
	}
}

// TestNoProgress lets a reviewer name findings in each review.
func TestNoProgress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fixes int
		names func(round int) []string
		rule  review.Rule
		turns int
	}{
		"the same again":     {9, func(int) []string { return []string{"same"} }, review.RuleRepeated, 3},
		"the same with less": {9, func(round int) []string { return []string{"same", "b", "c", "d"}[:4-round] }, review.RuleRepeated, 3},
		"always another one": {9, func(round int) []string { return []string{fmt.Sprint("n", round)} }, review.RuleNoProgress, 3},
		"the limit":          {1, func(round int) []string { return []string{"a", "b", "c"}[round:] }, review.RuleLimit, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loop := review.NewLoop(review.Limits{Fixes: c.fixes})
			var decision review.Decision
			round := 0
			for ; loop.State != review.StateGate && round < 20; round++ {
				commit := fmt.Sprint("c", round)
				var findings []review.Finding
				for _, name := range c.names(round) {
					findings = append(findings, finding(name, review.P1))
				}
				loop, decision = reviewing(t, loop, commit).AfterReview(
					review.Reviewed{Commit: commit, Verdict: verdict("not_ready", findings...), Changed: everywhere()})
			}
			require.Equal(t, c.rule, decision.Rule, decision.Reason)
			require.Equal(t, c.turns, round)
			require.Equal(t, review.StateAutoFix, loop.Resume)
			again, _ := loop.AfterGate(escalation.GateFix)
			require.Equal(t, review.StateAutoFix, again.State, "after a person's decision the limits apply anew")
			require.Zero(t, again.Fixes)
		})
	}
}

// TestAcceptedFindingsStayAccepted checks the loop of the change that follows an overridden one.
func TestAcceptedFindingsStayAccepted(t *testing.T) {
	t.Parallel()
	risk := review.Finding{Fingerprint: "a", Priority: review.P0, Action: review.AutoFix, File: "f", Line: 3, Text: "t"}
	limits := review.Limits{Fixes: 2, Retries: 1}
	ended := review.Loop{
		Limits: limits, State: review.StateApproved, Commit: "c", Reviewed: "c", Fixes: 2, Accepted: []review.Finding{risk},
		Seen: []review.Seen{{Fingerprint: "a", Times: 2}}, ForPerson: []string{"tests"},
	}
	want := review.NewLoop(limits)
	want.Accepted = []review.Finding{risk}
	require.Equal(t, want, review.NewLoop(limits).Accepting(ended))
}
