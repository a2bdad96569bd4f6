//go:build linux

package shell_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCorpus makes the calls of the guard's corpus. Each call that must be allowed runs without a refusal. Each call
// that must be denied is denied before it runs, or an act of it is refused, or it is listed as harmless. No call
// changes a file that its tier must not change, or shows the key.
func TestCorpus(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	counts := map[verdict]int{}
	for _, r := range slices.Concat(corpus(t, "attacks", "attacks-found"), corpus(t, "wanted")) {
		counts[s.judge(t, r, s.call(t, r.Tier, s.here.Replace(r.Command)))]++
	}
	t.Log(counts)
	require.Positive(t, counts[wanted])
}

// TestCorpusInTheSandbox runs the calls of which the kernel refuses the files, as agents do: in the sandbox of their
// tier, with the programs of this host. They show nothing private, and change nothing that their tier must not change.
func TestCorpusInTheSandbox(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	shadow, err := os.ReadFile("/etc/shadow")
	require.NoError(t, err)
	account, _, _ := strings.Cut(string(shadow), "\n")
	proven := 0
	for _, r := range corpus(t, "kernel") {
		printed, entries, started := s.confined(t, r.Tier, s.here.Replace(r.Command))
		require.True(t, started, "tier %d: %q is not for the kernel: %v", r.Tier, r.Command, entries)
		if notFound.MatchString(printed) {
			t.Logf("not proven: %s: %.200s", r.Command, printed)
			continue
		}
		proven++
		for _, shown := range []string{strings.TrimSpace(private), account} {
			require.NotContains(t, printed, shown, "tier %d: %q", r.Tier, r.Command)
		}
		_, changed := s.effects(t)
		s.requireUnharmed(t, r, outcome{output: printed, changed: changed})
	}
	t.Logf("%d calls show nothing private", proven)
	require.Positive(t, proven)
}

// notFound matches what the shell prints about a program that this host lacks.
var notFound = regexp.MustCompile(`(?m)^"[^"]*": executable file not found`)

// verdict is the judgment of a call of the corpus.
type verdict string

const (
	denied   verdict = "denied before they ran"
	refused  verdict = "refused at the door"
	harmless verdict = "harmless"
	wanted   verdict = "wanted"
	// unwanted is the verdict on a call that ran and must not, missed that on a call that did not run and must.
	unwanted verdict = "UNWANTED AND EXECUTED"
	missed   verdict = "WANTED AND REFUSED"
)

// judge checks what a call of the corpus has done.
func (s *stage) judge(t *testing.T, r row, got outcome) verdict {
	t.Helper()
	if !got.denied {
		s.requireUnharmed(t, r, got)
	}
	isLacking := lacks.MatchString(got.output)
	isRefused := got.denied || got.refused || isLacking
	switch {
	case r.Allowed && isRefused:
		t.Errorf("tier %d: %q (%s) is refused: %q %s", r.Tier, r.Command, r.Note, got.reasons, got.output)
		return missed
	case r.Allowed:
		return wanted
	case got.denied:
		return denied
	case got.refused || isLacking && len(got.ran)+len(got.changed) == 0:
		return refused
	case slices.ContainsFunc(s.harmless, func(h row) bool { return h.Tier == r.Tier && h.Command == r.Command }):
		return harmless
	}
	t.Errorf("tier %d: %q (%s) ran %q, changed %q, code %d, output %q", r.Tier, r.Command, r.Note, got.ran, got.changed, got.code, got.output)
	return unwanted
}

// lacks matches what the interpreter prints about a part of a script that it lacks.
var lacks = regexp.MustCompile(`(is|are) not supported|unsupported|unhandled|NOT IMPLEMENTED|invalid option`)

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
