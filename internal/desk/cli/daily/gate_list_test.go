package daily

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/operations"
)

func TestListSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	for want, counts := range map[string][2]int{
		"":                                {0, 2_000},
		"3 more; see them with --limit\n": {3, 2_000},
		"2001 chains wait, and only 2000 of them were asked: there may be older gates\n":                                   {0, 2_001},
		"1900 more; see them with --limit\n2500 chains wait, and only 2000 of them were asked: there may be older gates\n": {1900, 2500},
	} {
		var b strings.Builder
		writeLeftOut(&b, counts[0], operations.GateList{Waiting: counts[1], Asked: min(counts[1], 2_000)})
		require.Equal(t, want, b.String())
	}
}
