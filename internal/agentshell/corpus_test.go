//go:build linux

package agentshell_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCorpus makes the calls of the guard's corpus. Each call that must be allowed runs without a refusal. Each call that
// must be denied is denied before it runs, or an act of it is refused, or it is listed as harmless. No call changes a file
// that its tier must not change, or shows the key.
func TestCorpus(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var denied, refused, harmless, wanted int
	listed := corpus(t, "harmless")
	for _, r := range corpus(t, "attacks", "attacks-found") {
		is := slices.ContainsFunc(listed, func(h row) bool { return h.Tier == r.Tier && h.Command == r.Command })
		switch got := s.call(t, r.Tier, s.here.Replace(r.Command)); {
		case got.denied:
			denied++
		case got.refused:
			refused++
			s.requireUnharmed(t, r, got)
		case is:
			harmless++
			s.requireUnharmed(t, r, got)
		default:
			t.Errorf("tier %d: %q (%s) ran %q, changed %q, code %d, output %q", r.Tier, r.Command, r.Note, got.ran, got.changed, got.code, got.output)
		}
	}
	for _, r := range corpus(t, "wanted") {
		wanted++
		got := s.call(t, r.Tier, s.here.Replace(r.Command))
		if got.denied || got.refused || lacks.MatchString(got.output) {
			t.Errorf("tier %d: %q (%s) is refused: %q %s", r.Tier, r.Command, r.Note, got.reasons, got.output)
		}
		s.requireUnharmed(t, r, got)
	}
	t.Logf("%d denied before they ran, %d refused at the door, %d harmless, %d wanted", denied, refused, harmless, wanted)
	require.NotZero(t, wanted)
}

// lacks matches what the interpreter prints about a part of a script that it lacks.
var lacks = regexp.MustCompile(`unsupported|unhandled|NOT IMPLEMENTED|invalid option`)

// kept matches the files of the working directory that Tier 2 must not change.
var kept = regexp.MustCompile(`/\.git|compose|\.env|vms|ie\.yaml|/\.claude|CLAUDE|mcp`)

// requireUnharmed checks the files and the output of a call.
func (s *stage) requireUnharmed(t *testing.T, r row, got outcome) {
	t.Helper()
	require.NotContains(t, got.output, key, r.Command)
	for _, path := range got.changed {
		mine := r.Tier > 1 && isBelow(path, s.place.Work[0]) && !kept.MatchString(path[len(s.root):])
		require.True(t, mine || r.Tier == 3, "tier %d: %q changes %s", r.Tier, r.Command, path)
	}
}
