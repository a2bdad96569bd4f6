package review_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/review"
)

const plan = `# Ports

- [ ] belongs to no phase

## Phase 1: The port

Some text.

- [x] find it
- [ ] change it

### Details

* [ ] and document it

` + "```" + `
## Phase 9: in a code block
- [ ] not an item
` + "```" + `

## Phase 2 — Follow up
1. no item
- [ ] tell people

## Notes

- [ ] belongs to no phase
`

func parsed(t *testing.T, text string) review.Plan {
	t.Helper()
	got, err := review.ParsePlan(text)
	require.NoError(t, err)
	return got
}

func TestParsePlan(t *testing.T) {
	t.Parallel()
	got := parsed(t, plan)
	require.Len(t, got.Digest, 64)
	require.Equal(t, review.Plan{Title: "Ports", Digest: got.Digest, Phases: []review.Phase{
		{Number: "1", Title: "The port", Items: []review.Item{{Text: "find it", Done: true}, {Text: "change it"}, {Text: "and document it"}}},
		{Number: "2", Title: "Follow up", Items: []review.Item{{Text: "tell people"}}},
	}}, got)
	require.False(t, got.Phases[0].Done())
	require.True(t, review.Phase{Items: []review.Item{{Text: "a", Done: true}}}.Done())
	require.False(t, review.Phase{}.Done(), "without a checklist nothing says that it is done")
	require.Equal(t, "Follow up", got.Phase("2").Title)
	require.Nil(t, got.Phase("3"))
	for text, problem := range map[string]string{
		"# Ports\n":                      "no phases",
		"## Phase 1\n## phase 1: again":  "phase 1 twice",
		"## Phased out\n# 1 Phase\n":     "no phases",
		"```\n## Phase 1: never closed":  "no phases",
		"    ## Phase 1: a code block\n": "no phases",
	} {
		_, err := review.ParsePlan(text)
		require.ErrorContains(t, err, problem, text)
	}
}

func TestLost(t *testing.T) {
	t.Parallel()
	before := parsed(t, "## Phase 1: a\n- [x] one\n- [ ] two\n## Phase 2: b\n## Phase 3: c\n")
	for after, want := range map[string][]string{
		"## Phase 1: a\n- [x] one\n- [x] two\n- [ ] more\n## Phase 2: b\n## Phase 3: c\n## Phase 4: d\n": nil,
		"## Phase 1: a\n- [x] one\n- [ ] two\n## Phase 3: c\n":                                           {"phase 2 (b) was removed"},
		"## Phase 1: a\n- [x] one\n- [ ] two\n## Phase 3: c\n## Phase 2: b\n":                            {"phase 3 was moved"},
		"## Phase 1: a\n- [ ] one\n## Phase 2: other\n## Phase 3: c\n": {
			`"one" of phase 1 was done, and is open again`, `"two" of phase 1 was removed`, `phase 2 is now called "other"`,
		},
	} {
		require.Equal(t, want, before.Lost(parsed(t, after)), after)
	}
	twice := parsed(t, "## Phase 1: a\n- [x] run the tests\n- [x] run the tests\n")
	require.Equal(t, []string{`"run the tests" of phase 1 was removed`}, twice.Lost(parsed(t, "## Phase 1: a\n- [x] run the tests\n")))
	require.Equal(t, []string{`"run the tests" of phase 1 was done, and is open again`},
		twice.Lost(parsed(t, "## Phase 1: a\n- [x] run the tests\n- [ ] run the tests\n")))
}

// TestDigestOfAPlan checks that ticking off an entry does not count as a change of the text, and that everything else does.
func TestDigestOfAPlan(t *testing.T) {
	t.Parallel()
	before := parsed(t, "## Phase 1: a\nCarefully.\n- [ ] one\n").Digest
	for text, same := range map[string]bool{
		"## Phase 1: a\r\nCarefully.\r\n- [x] one\r\n": true, "## Phase 1: a\nQuickly.\n- [x] one\n": false,
		"## Phase 1: a\nCarefully.\n- [ ] one\n- [ ] two\n": false, "## Phase 1: a\nCarefully.\n- [x] one \n": false,
	} {
		require.Equal(t, same, parsed(t, text).Digest == before, text)
	}
}

func TestAhead(t *testing.T) {
	t.Parallel()
	before := parsed(t, "## Phase 1: a\n- [ ] one\n## Phase 2: b\n- [x] old\n- [ ] two\n")
	require.Empty(t, before.Ahead(parsed(t, "## Phase 1: a\n- [x] one\n## Phase 2: b\n- [x] old\n- [ ] two\n"), "1"))
	require.Equal(t, []string{`"two" of phase 2 was ticked off in phase 1`},
		before.Ahead(parsed(t, "## Phase 1: a\n- [x] one\n## Phase 2: b\n- [x] old\n- [x] two\n"), "1"))
	require.Empty(t, before.Ahead(parsed(t, "## Phase 1: a\n- [ ] one\n"), "1"), "Lost says that")
}
