package claude

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkLineage compares a fork with its parent, as at the end of the 500th turn of a conversation.
func BenchmarkLineage(b *testing.B) {
	const user = `{"type":"user","uuid":%q,"parentUuid":%q,"sessionId":%q,"message":{"role":"user","content":"how is jellyfin?"}}`
	const assistant = `{"type":"assistant","uuid":%q,"parentUuid":%q,"sessionId":%q,"message":{"role":"assistant","content":"It answers."}}`
	uuid := func(number int) string { return fmt.Sprintf("%036d", number) }
	lines := func(sessionID string) (all [][]byte) {
		for at := 1; at < 1000; at += 2 {
			all = append(all,
				fmt.Appendf(nil, user, uuid(at), uuid(at-1), sessionID), fmt.Appendf(nil, assistant, uuid(at+1), uuid(at), sessionID))
		}
		return all
	}
	parent := NewLineage(nil)
	for _, line := range lines(lineParentID) {
		require.True(b, parent.Add(line, lineParentID))
	}
	fork := lines(lineForkID)
	b.ReportAllocs()
	for b.Loop() {
		own := NewLineage(parent)
		for _, line := range fork {
			own.Add(line, lineForkID)
		}
		require.Empty(b, own.Departure(parent))
	}
}
