package claude

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// lineParts are the parts of a line of a transcript, and the choices for each.
var lineParts = [][]string{
	{`"type":"user"`, `"type":"assistant"`, `"type":"system"`},
	{`"uuid":"1"`, `"uuid":"2"`, `"uuid":"3"`},
	{`"parentUuid":""`, `"parentUuid":"1"`, `"parentUuid":"2"`},
	{`"subtype":""`, `"subtype":"compact_boundary"`},
	{`"isSidechain":false`, `"isSidechain":true`},
	{`"sessionId":"s"`, `"sessionId":"t"`},
	{
		`"message":{"content":"a"}`, `"message":{"content":"b"}`, `"message":{"content":[{"type":"text","text":"a"}]}`,
		`"message":{"content": [{"type":"text","text":"a"}]}`, `"message":{"content":[{"type":"tool_use","id":"c-1"}]}`,
		`"message":{"content":[{"type":"tool_result","tool_use_id":"c-1"}]}`, `"message":{"content":[{"type":"tool_result","tool_use_id":"c-2"}]}`,
	},
	{`"attachment":"a"`, `"attachment":"b"`, `"rendered":"a"`, `"rendered":"b"`},
}

// drawnLine is a line, as the choice for each part.
type drawnLine []string

func (l drawnLine) bytes() []byte {
	text := "{"
	for i, part := range l {
		if i > 0 {
			text += ","
		}
		text += part
	}
	return []byte(text + "}")
}

func drawLine(t *rapid.T) drawnLine {
	var line drawnLine
	for i, choices := range lineParts {
		line = append(line, rapid.SampledFrom(choices).Draw(t, fmt.Sprint("part ", i)))
	}
	return line
}

// TestLineageWithKnownLines checks that a lineage is the same whether its lines are decoded or taken from another lineage. The fork has
// lines of its parent, each with at most one other part.
func TestLineageWithKnownLines(t *testing.T) {
	t.Parallel()
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		parent, lines := NewLineage(nil), rapid.SliceOfN(rapid.Custom(drawLine), 1, 6).Draw(t, "parent")
		for _, line := range lines {
			parent.Add(line.bytes(), "s")
		}
		plain, quick := NewLineage(nil), NewLineage(parent)
		for _, line := range rapid.SliceOfN(rapid.SampledFrom(lines), 0, 30).Draw(t, "fork") {
			changed := append(drawnLine(nil), line...)
			part := rapid.IntRange(0, len(lineParts)-1).Draw(t, "changed")
			changed[part] = rapid.SampledFrom(lineParts[part]).Draw(t, "to")
			require.Equal(t, plain.Add(changed.bytes(), "s"), quick.Add(changed.bytes(), "s"))
		}
		quick.Forget()
		require.Equal(t, plain, quick)
		require.Equal(t, plain.Departure(parent), quick.Departure(parent))
		for id, line := range quick.lines {
			if line.spelling == parent.lines[id].spelling {
				taken++
			}
		}
	})
	require.Positive(t, taken)
}
