package cell

import (
	"os"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// TestLineagesAreOfTheFile checks that what a copy says is remembered for as long as nothing else is in its place.
func TestLineagesAreOfTheFile(t *testing.T) {
	t.Parallel()
	c := newConversationTest(t)
	id := uuid.NewString()
	s := c.begin(t, id, "")
	require.NoError(t, os.WriteFile(s.path, []byte(said(id, "m-1", "", "user", "look")), 0o600))
	require.NoError(t, s.take(t.Context()))
	taken, err := c.lineage(id)
	require.NoError(t, err)
	require.Same(t, s.last, taken, "nothing is read again")

	require.NoError(t, os.WriteFile(s.path, []byte(said(id, "m-2", "", "user", "look")), 0o600))
	info, err := os.Stat(c.path(id))
	require.NoError(t, err)
	require.NoError(t, os.Rename(s.path, c.path(id))) // the archive had another one, of the same size and time
	require.NoError(t, os.Chtimes(c.path(id), info.ModTime(), info.ModTime()))
	read, err := c.lineage(id)
	require.NoError(t, err)
	require.NotSame(t, taken, read)
	again, err := c.lineage(id)
	require.NoError(t, err)
	require.Same(t, read, again)

	for range maxLineages {
		c.lineages.keep(uuid.NewString(), info, taken)
	}
	require.Len(t, c.lineages.latest, maxLineages)
	forgotten, err := c.lineage(id)
	require.NoError(t, err)
	require.NotSame(t, read, forgotten)
}
