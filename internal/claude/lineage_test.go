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
	{`"uuid":"1"`, `"uuid":"2"`, `"uuid":"3"`, `"uuid":"OWN"`, `"uuid":"\"promptId":"` + promptID + `"`},
	{`"parentUuid":""`, `"parentUuid":"1"`, `"parentUuid":"2"`, `"parentUuid":"OWN"`},
	{`"subtype":""`, `"subtype":"compact_boundary"`},
	{`"isSidechain":false`, `"isSidechain":true`},
	{
		`"sessionId":"OWN"`, `"sessionId":"` + lineParentID + `"`, `"sessionId":null`, `"sessionId":5`, `"forkedFrom":{"sessionId":"OWN"}`,
		`"sessionId":"\u0031` + lineParentID[1:] + `","b":{"sessionId":"OWN"}`, `"sessionid":"OWN"`, `"sessionId":"x","sessionId":"OWN"`,
	},
	{`"cwd":"/"`, `"cwd":"/OWN"`, `"requestSessionId":"` + lineParentID + `"`, `"a":{"promptId":"` + promptID + `"}`, `"a":"\u0000"`, "\"a\":\"\x00\""},
	{
		`"promptId":"` + promptID + `"`, `"promptId":"` + nextPrompt + `"`, `"promptId":"OWN"`, `"promptId":"` + lineParentID + `"`, `"promptId":""`,
		`"promptId":"` + promptID[1:] + `\""`, `"promptId":` + promptID, `"promptId":"` + promptID + ` "`, `"promptId":"` + promptID,
	},
	{
		`"message":{"content":"a"}`, `"message":{"content":"b"}`, `"message":{"content":[{"type":"text","text":"a"}]}`,
		`"message":{"content": [{"type":"text","text":"a"}]}`, `"message":{"content":[{"type":"tool_use","id":"c-1"}]}`,
		`"message":{"content":[{"type":"tool_result","tool_use_id":"c-1"}]}`, `"message":{"content":[{"type":"tool_result","tool_use_id":"c-2"}]}`,
		`"message":{"content":"OWN"}`, `"message":{"sessionId":"OWN"}`, `"message":{"content":"` + lineParentID + `"}`,
		`"message":{"promptId":"` + promptID + `"}`, `"message":{"promptId":"` + nextPrompt + `"}`, `"message":{"content":"` + lineForkID + `"}`,
	},
	{`"attachment":"a"`, `"attachment":"b"`, `"rendered":"a"`, `"rendered":"b"`, `"rendered":{"promptId":"` + promptID + `"}`, `"attachment":"OWN"`},
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

// usualLine returns a line with the first choice for each part, except for one part.
func usualLine(t *rapid.T) drawnLine {
	var line drawnLine
	for _, choices := range lineParts {
		line = append(line, choices[0])
	}
	part := rapid.IntRange(0, len(lineParts)-1).Draw(t, "unusual")
	line[part] = rapid.SampledFrom(lineParts[part]).Draw(t, "choice")
	return line
}

// TestLineageWithKnownLines checks that a lineage is the same whether its lines are decoded or taken from another lineage. The fork has
// lines of its parent, each with at most one other part.
func TestLineageWithKnownLines(t *testing.T) {
	t.Parallel()
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.OneOf(rapid.Custom(drawLine), rapid.Custom(usualLine))
		parent, lines := NewLineage(nil), rapid.SliceOfN(line, 1, 6).Draw(t, "parent")
		for _, line := range lines {
			parent.Add(line.of(lineParentID), lineParentID)
		}
		plain, quick := NewLineage(nil), NewLineage(parent)
		for _, line := range rapid.SliceOfN(rapid.SampledFrom(lines), 0, 30).Draw(t, "fork") {
			changed := slices.Clone(line)
			choices := lineParts[rapid.IntRange(0, len(lineParts)-1).Draw(t, "changed")]
			if part := slices.IndexFunc(changed, func(part string) bool { return slices.Contains(choices, part) }); part >= 0 {
				changed[part] = rapid.SampledFrom(choices).Draw(t, "to")
			}
			text := changed.of(rapid.SampledFrom([]string{lineForkID, lineForkID, lineParentID}).Draw(t, "OWN"))
			require.Equal(t, plain.Add(text, lineForkID), quick.Add(text, lineForkID), "%s", text)
		}
		for key, line := range quick.outlines {
			if parent.outlines[key] == line {
				taken++
			}
		}
		quick.Forget()
		plain.outlines, quick.outlines = nil, nil
		require.Equal(t, plain, quick)
		require.Equal(t, plain.Departure(parent), quick.Departure(parent))
	})
	require.Positive(t, taken)
	t.Logf("%d lines were taken from the parent", taken)
}

// TestForksAreNotDecoded checks with recorded conversations that a fork of a fork keeps the outlines of the first one's lines, so that
// none is decoded again.
func TestForksAreNotDecoded(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2.1.197", "2.1.330"} {
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
		require.NotEmpty(t, fork.lines)
		require.Len(t, fork.outlines, len(fork.lines))
		require.Equal(t, fork, next)
	}
}
