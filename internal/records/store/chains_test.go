package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/claudeops/claudeops/internal/escalation"
)

func testChain(t *testing.T, database backend) {
	s := database(t)()
	one := mustOpen(t, s, opening("chain", "one", 0))
	mustOpen(t, s, opening("another", "elsewhere", one.ID))
	two := mustOpen(t, s, opening("chain", "two", one.ID))
	three := mustOpen(t, s, opening("chain", "three", two.ID))

	chain, err := s.Chain(bounded(t), "chain")
	require.NoError(t, err)
	require.Equal(t, []escalation.Session{one, two, three}, chain)

	none, err := s.Chain(bounded(t), "unknown")
	require.NoError(t, err)
	require.Empty(t, none)
}

// testLines records random trees of sessions in one database. Some trees have several roots or span several chains. It
// compares Forward and Backward with a walk over the records that OpenSession returned.
func testLines(t *testing.T, database backend) {
	s := database(t)()
	ctx := bounded(t)
	var trees int
	rapid.Check(t, func(t *rapid.T) {
		trees++
		records := map[int64]escalation.Session{}
		var ids []int64
		for i := range rapid.IntRange(1, 12).Draw(t, "sessions") {
			parent := rapid.SampledFrom(append([]int64{0}, ids...)).Draw(t, "parent")
			chain := fmt.Sprintf("tree %d chain %d", trees, rapid.IntRange(0, 1).Draw(t, "chain"))
			record, err := openSession(ctx, s, opening(chain, fmt.Sprintf("tree %d session %d", trees, i), parent))
			require.NoError(t, err)
			records[record.ID], ids = record, append(ids, record.ID)
		}
		for _, id := range ids {
			forward, err := s.Forward(ctx, id)
			require.NoError(t, err)
			require.Equal(t, descend(records, ids, id), forward)
			backward, err := s.Backward(ctx, id)
			require.NoError(t, err)
			require.Equal(t, ascend(records, id), backward)
		}
	})
}

// descend returns from and its descendants in the order of ids.
func descend(records map[int64]escalation.Session, ids []int64, from int64) (line []escalation.Session) {
	within := map[int64]bool{from: true}
	for _, id := range ids {
		if within[id] || within[records[id].ParentID] {
			within[id] = true
			line = append(line, records[id])
		}
	}
	return line
}

// ascend returns from and its ancestors, the root last.
func ascend(records map[int64]escalation.Session, from int64) (line []escalation.Session) {
	for id := from; id != 0; id = records[id].ParentID {
		line = append(line, records[id])
	}
	return line
}
