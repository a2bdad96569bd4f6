package gates

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestListSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	for want, counts := range map[string][2]int{
		"":                                {0, maxAsked},
		"3 more; see them with --limit\n": {3, maxAsked},
		"2001 chains wait, and only 2000 of them were asked: there may be older gates\n":                                   {0, maxAsked + 1},
		"1900 more; see them with --limit\n2500 chains wait, and only 2000 of them were asked: there may be older gates\n": {1900, 2500},
	} {
		var b strings.Builder
		writeLeftOut(&b, counts[0], counts[1])
		require.Equal(t, want, b.String())
	}
}
