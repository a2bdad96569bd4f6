package cell

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLevels(t *testing.T) {
	t.Parallel()
	require.Equal(t, LevelFull, levelOf(true, true))
	require.Equal(t, LevelKernel, levelOf(true, false))
	require.Equal(t, LevelUser, levelOf(false, true))
	require.Equal(t, LevelGuard, levelOf(false, false))
	for _, each := range []Level{LevelFull, LevelUser, LevelKernel, LevelGuard} {
		require.NotEmpty(t, each.open())
	}
}
