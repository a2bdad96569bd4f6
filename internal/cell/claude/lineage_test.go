package claude

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The sessions of a fork and of its parent, and the IDs of two prompts.
const (
	lineParentID, lineForkID = "11111111-2222-4333-8444-555555555555", "66666666-7777-4888-9999-aaaaaaaaaaaa"
	promptID, nextPrompt     = "bbbbbbbb-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
)

// lineParts are the parts of a line of a transcript, and the choices for each. OWN is the line's session.
var lineParts = [][]string{
	{`"type":"user"`, `"type":"assistant"`, `"type":"system"`},
	{`"uuid":"1"`, `"uuid":"2"`, `"uuid":"3"`, `"uuid":"OWN"`, `"uuid":"1","x\"promptId":"` + promptID + `"`},
	{`"parentUuid":""`, `"parentUuid":"1"`, `"parentUuid":"2"`, `"parentUuid":"OWN"`},
	{`"subtype":""`, `"subtype":"compact_boundary"`},
	{`"isSidechain":false`, `"isSidechain":true`},
	{
		`"sessionId":"OWN"`, `"sessionId":"` + lineParentID + `"`, `"sessionId":null`, `"sessionId":5`,
		`"forkedFrom":{"sessionId":"OWN"}`,
		`"sessionId":"\u0031` + lineParentID[1:] + `","b":{"sessionId":"OWN"}`, `"sessionid":"OWN"`, `"sessionId":"x","sessionId":"OWN"`,
	},
	{
		`"cwd":"/"`, `"cwd":"/OWN"`, `"requestSessionId":"` + lineParentID + `"`, `"a":{"promptId":"` + promptID + `"}`,
		`"a":"\u0000"`, "\"a\":\"\x00\"",
	},
	{
		`"message":{"content":"a"}`, `"message":{"content":"b"}`, `"message":{"content":[{"type":"text","text":"a"}]}`,
		`"message":{"content": [{"type":"text","text":"a"}]}`, `"message":{"content":[{"type":"tool_use","id":"c-1"}]}`,
		`"message":{"content":[{"type":"tool_result","tool_use_id":"c-1"}]}`,
		`"message":{"content":[{"type":"tool_result","tool_use_id":"c-2"}]}`,
		`"message":{"content":"OWN"}`, `"message":{"sessionId":"OWN"}`, `"message":{"content":"` + lineParentID + `"}`,
		`"message":{"promptId":"` + promptID + `"}`, `"message":{"promptId":"` + nextPrompt + `"}`, `"message":{"content":"` + lineForkID + `"}`,
	},
	{
		`"promptId":"` + promptID + `"`, `"promptId":"` + nextPrompt + `"`, `"promptId":"OWN"`,
		`"promptId":"` + lineParentID + `"`, `"promptId":""`,
		`"promptId":"` + promptID[1:] + `\""`, `"promptId":"` + promptID[1:] + `\"`,
		`"promptId":` + promptID, `"promptId":"` + promptID + ` "`, `"promptId":"` + promptID,
	},
	{
		`"attachment":"a"`, `"attachment":"b"`, `"rendered":"a"`, `"rendered":"b"`,
		`"rendered":{"promptId":"` + promptID + `"}`, `"attachment":"OWN"`,
	},
}

// drawnLine is a line, as the choice for each part.
type drawnLine []string

func (l drawnLine) of(sessionID string) []byte {
	return []byte(strings.ReplaceAll("{"+strings.Join(l, ",")+"}", "OWN", sessionID))
}

func drawLine(t *rapid.T) drawnLine {
	var line drawnLine
	for i, choices := range lineParts {
		line = append(line, rapid.SampledFrom(choices).Draw(t, fmt.Sprint("part ", i)))
	}
	return rapid.Permutation(line).Draw(t, "order")
}

// TestLineageWithAnotherPart takes a line from a parent that differs in one part. It tries all pairs of choices for
// each part.
func TestLineageWithAnotherPart(t *testing.T) {
	t.Parallel()
	var usual drawnLine
	for _, choices := range lineParts {
		usual = append(usual, choices[0])
	}
	taken := 0
	for part, choices := range lineParts {
		for _, had := range choices {
			for _, has := range choices {
				for _, own := range []string{lineForkID, lineParentID} {
					inherited, changed := slices.Clone(usual), slices.Clone(usual)
					inherited[part], changed[part] = had, has
					parent := NewLineage(nil)
					parent.Add(inherited.of(lineParentID), lineParentID)
					taken += requireSameLineage(t, parent, changed.of(own))
				}
			}
		}
	}
	require.Positive(t, taken)
}

// requireSameLineage checks that the lineage of a fork is the same whether its lines are decoded or taken from the
// parent. It returns the number of those that were taken.
func requireSameLineage(t require.TestingT, parent *Lineage, lines ...[]byte) (taken int) {
	plain, quick := NewLineage(nil), NewLineage(parent)
	for _, line := range lines {
		require.Equal(t, plain.Add(line, lineForkID), quick.Add(line, lineForkID), "%s", line)
	}
	for key, line := range quick.outlines {
		if parent.outlines[key] == line {
			taken++
		}
	}
	plain.Forget()
	quick.Forget()
	plain.outlines, quick.outlines = nil, nil
	require.Equal(t, plain, quick)
	require.Equal(t, plain.Departure(parent), quick.Departure(parent))
	return taken
}

// TestLineageWithKnownLines checks that a lineage is the same whether its lines are decoded or taken from another
// lineage. The fork has lines of its parent, each with at most one other part.
func TestLineageWithKnownLines(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parent, lines := NewLineage(nil), rapid.SliceOfN(rapid.Custom(drawLine), 1, 6).Draw(t, "parent")
		for _, line := range lines {
			parent.Add(line.of(lineParentID), lineParentID)
		}
		var fork [][]byte
		for _, line := range rapid.SliceOfN(rapid.SampledFrom(lines), 0, 30).Draw(t, "fork") {
			changed := slices.Clone(line)
			choices := rapid.SampledFrom(lineParts).Draw(t, "changed")
			if part := slices.IndexFunc(changed, func(part string) bool { return slices.Contains(choices, part) }); part >= 0 {
				changed[part] = rapid.SampledFrom(choices).Draw(t, "to")
			}
			fork = append(fork, changed.of(rapid.SampledFrom([]string{lineForkID, lineParentID}).Draw(t, "OWN")))
		}
		requireSameLineage(t, parent, fork...)
	})
}

// TestForksAreNotDecoded checks with recorded conversations that a fork of a fork keeps the outlines of the first one's
// lines, so that none is decoded again.
func TestForksAreNotDecoded(t *testing.T) {
	t.Parallel()
	for _, version := range measured() {
		text, err := os.ReadFile(filepath.Join("testdata", "transcripts", version+"-fork.jsonl"))
		require.NoError(t, err)
		own := regexp.MustCompile(`"sessionId":"([^"]+)"`).FindSubmatch(text)[1]
		fork, next := NewLineage(nil), NewLineage(nil)
		for line := range bytes.Lines(text) {
			require.True(t, fork.Add(line, string(own)))
			line = bytes.ReplaceAll(line, slices.Concat([]byte(`"sessionId":"`), own), []byte(`"sessionId":"`+lineForkID))
			line = regexp.MustCompile(`"promptId":"[^"]+"`).ReplaceAll(line, []byte(`"promptId":"`+nextPrompt+`"`))
			require.True(t, next.Add(line, lineForkID))
		}
		fork.Forget()
		next.Forget()
		require.NotEmpty(t, fork.places)
		require.Len(t, fork.outlines, len(fork.places))
		require.Equal(t, fork, next)
	}
}
