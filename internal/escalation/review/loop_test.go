package review_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
)

// scope permits small changes of ordinary files.
var scope = review.Scope{Listed: true, MaxFiles: 5, MaxLines: 100}

// limits permits two corrections and one repair of the checks.
var limits = review.Limits{Fixes: 2, Retries: 1}

// committed is an author's turn that leaves a commit.
func committed(commit string, paths ...string) review.Authored {
	files := []review.File{{Path: "compose.yaml", Added: 1, Listed: true}}
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

// about returns a verdict that says of the findings 1, 2, ... what became of them, with new findings.
func about(status review.Status, answers []review.Answer, findings ...review.Finding) *review.Verdict {
	said := verdict(status, findings...)
	for i, answer := range answers {
		answer.Number = i + 1
		said.Answers = append(said.Answers, answer)
	}
	return said
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
	small := finding("small", review.P2)
	small.Action = review.HumanRequired
	for name, c := range map[string]struct {
		turn  review.Reviewed
		state review.State
		rule  review.Rule
	}{
		"ready":            {review.Reviewed{Verdict: verdict("ready")}, review.StateApproved, review.RuleReviewed},
		"ready with P2":    {review.Reviewed{Verdict: verdict("ready", finding("a", review.P2))}, review.StateApproved, review.RuleReviewed},
		"ready with P0":    {review.Reviewed{Verdict: verdict("ready", finding("a", review.P0))}, review.StateAutoFix, review.RuleCorrections},
		"P2 never blocks":  {review.Reviewed{Verdict: verdict("ready_with_corrections", finding("a", review.P2))}, review.StateApproved, review.RuleReviewed},
		"not ready":        {review.Reviewed{Verdict: verdict("not_ready", finding("a", review.P2))}, review.StateGate, review.RuleNoFindings},
		"P2 for a person":  {review.Reviewed{Verdict: verdict("ready", small)}, review.StateGate, review.RuleHumanRequired},
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
	require.Contains(t, decision.Reason, `it changes files that the policy's review.paths do not name: tests/port.bats`)
	require.False(t, loop.Approves("c1"))
	approved, _ := loop.AfterGate(escalation.GateOverride)
	require.True(t, approved.Approves("c1"))
	require.True(t, review.Hidden("+image: nginx\u202e"))
	require.False(t, review.Hidden("+\timage: nginx\r\n"))
	for _, action := range []escalation.GateAction{escalation.GateAbort, escalation.GateRecheck} {
		ended, _ := loop.AfterGate(action)
		require.Equal(t, review.StateAborted, ended.State)
		require.False(t, ended.Approves("c1"))
	}
}

// TestSecondReview checks that a second review must answer for each open finding, and that every finding of it is a new
// one.
func TestSecondReview(t *testing.T) {
	t.Parallel()
	fixed := []review.Answer{{Now: review.Fixed}}
	still := []review.Answer{{Now: review.StillThere, Note: "line 9 now"}}
	wrong := []review.Answer{{Now: review.Wrong, Note: "the port is right"}}
	lower := func(to review.Priority) []review.Answer {
		return []review.Answer{{Now: review.StillThere, Priority: to, Note: "it is small"}}
	}
	elsewhere := finding("new", review.P1)
	elsewhere.File, elsewhere.Line = "other.yaml", 90
	for name, c := range map[string]struct {
		open     review.Priority
		said     *review.Verdict
		state    review.State
		rule     review.Rule
		left     []int
		priority review.Priority
		notes    string
	}{
		"fixed":                  {review.P1, about("ready", fixed), review.StateApproved, review.RuleReviewed, nil, "", "finding 1 is fixed"},
		"a fixed P0":             {review.P0, about("ready", fixed), review.StateApproved, review.RuleReviewed, nil, "", "finding 1 is fixed"},
		"still there":            {review.P1, about("not_ready", still), review.StateAutoFix, review.RuleCorrections, []int{1}, "P1", ""},
		"still there, yet ready": {review.P1, about("ready", still), review.StateAutoFix, review.RuleCorrections, []int{1}, "P1", ""},
		"silence":                {review.P1, verdict("ready"), review.StateAutoFix, review.RuleCorrections, []int{1}, "P1", "finding 1 stays open"},
		"silence about a P0":     {review.P0, verdict("ready"), review.StateAutoFix, review.RuleCorrections, []int{1}, "P0", "finding 1 stays open"},
		"wrong":                  {review.P1, about("ready", wrong), review.StateApproved, review.RuleReviewed, nil, "", "finding 1 is wrong for the reviewer now: the port is right"},
		"a wrong P0":             {review.P0, about("ready", wrong), review.StateGate, review.RuleDropped, []int{1}, "P0", "the port is right"},
		"lowered to P1":          {review.P0, about("not_ready", lower("P1")), review.StateAutoFix, review.RuleCorrections, []int{1}, "P0", "rated P1 in place of P0"},
		"lowered to P2":          {review.P1, about("ready", lower("P2")), review.StateApproved, review.RuleReviewed, nil, "", "rated P2"},
		"a P0 lowered to P2":     {review.P0, about("ready", lower("P2")), review.StateGate, review.RuleDropped, []int{1}, "P0", "rated P2"},
		"raised":                 {review.P1, about("not_ready", lower("P0")), review.StateAutoFix, review.RuleCorrections, []int{1}, "P0", "rated P0 in place of P1"},
		"under the old name":     {review.P1, verdict("not_ready", finding("old", review.P1)), review.StateAutoFix, review.RuleCorrections, []int{1, 2}, "P1", "stays open"},
		"a new one elsewhere":    {review.P1, about("not_ready", fixed, elsewhere), review.StateAutoFix, review.RuleCorrections, []int{2}, "P1", "finding 1 is fixed"},
		"P2":                     {review.P1, about("ready", fixed, finding("small", review.P2)), review.StateApproved, review.RuleReviewed, nil, "", "P2 small"},
		"another number":         {review.P1, &review.Verdict{Status: "ready", Summary: "s", Findings: []review.Finding{}, Answers: []review.Answer{{Number: 7, Now: review.Fixed}}}, review.StateAutoFix, review.RuleCorrections, []int{1}, "P1", "stays open"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loop, _ := reviewing(t, review.NewLoop(limits), "c1").AfterReview(
				review.Reviewed{Commit: "c1", Verdict: verdict("not_ready", finding("old", c.open))})
			loop, decision := reviewing(t, loop, "c2").AfterReview(review.Reviewed{Commit: "c2", Verdict: c.said})
			require.Equal(t, []any{c.state, c.rule}, []any{loop.State, decision.Rule}, decision.Reason)
			var left []int
			for _, open := range loop.Open {
				left = append(left, open.Number)
			}
			require.Equal(t, c.left, left)
			if len(left) > 0 {
				require.Equal(t, c.priority, loop.Open[0].Priority)
			}
			require.Contains(t, strings.Join(decision.Notes, "\n"), c.notes)
		})
	}
}

// TestAcceptedRisk checks that a person who has accepted a finding has accepted this text at this place, and nothing
// more severe.
func TestAcceptedRisk(t *testing.T) {
	t.Parallel()
	old := finding("risk", review.P1)
	old.Output = "port 80 is open"
	loop, _ := reviewing(t, review.NewLoop(review.Limits{}), "c1").AfterReview(review.Reviewed{Commit: "c1", Verdict: verdict("not_ready", old)})
	require.Equal(t, review.StateGate, loop.State, "no corrections are allowed")
	loop, _ = loop.AfterGate(escalation.GateOverride)
	require.True(t, loop.Approves("c1"))
	for name, change := range map[string]func(*review.Finding){
		"the same":          func(*review.Finding) {},
		"other output":      func(f *review.Finding) { f.Output = "it was attacked" },
		"other text":        func(f *review.Finding) { f.Text = "the mount is missing" },
		"another line":      func(f *review.Finding) { f.Line = 90 },
		"another file":      func(f *review.Finding) { f.File = "other.yaml" },
		"more severe":       func(f *review.Finding) { f.Priority = review.P0 },
		"under a new name ": func(f *review.Finding) { f.Fingerprint = "open-port" },
	} {
		again := old
		change(&again)
		next, decision := reviewing(t, review.NewLoop(review.Limits{}).Accepting(loop), "c2").AfterReview(
			review.Reviewed{Commit: "c2", Verdict: verdict("not_ready", again)})
		want := review.StateGate
		if name == "the same" || name == "under a new name " {
			want = review.StateApproved
		}
		require.Equal(t, want, next.State, "%s: %s", name, decision.Reason)
		if want == review.StateGate {
			require.Equal(t, 2, next.Open[0].Number, "numbers go on")
		}
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
				said := verdict("not_ready")
				names := c.names(round)
				for _, open := range loop.Open {
					now := review.Answer{Number: open.Number, Now: review.Fixed}
					if slices.Contains(names, open.Fingerprint) {
						now.Now, now.Note = review.StillThere, "there"
						names = slices.DeleteFunc(names, func(name string) bool { return name == open.Fingerprint })
					}
					said.Answers = append(said.Answers, now)
				}
				for _, name := range names {
					said.Findings = append(said.Findings, finding(name, review.P1))
				}
				loop, decision = reviewing(t, loop, commit).AfterReview(review.Reviewed{Commit: commit, Verdict: said})
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
		Named: 4, ForPerson: []string{"tests"},
	}
	want := review.NewLoop(limits)
	want.Accepted, want.Named = []review.Finding{risk}, 4
	require.Equal(t, want, review.NewLoop(limits).Accepting(ended))
}
