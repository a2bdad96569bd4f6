package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLogFileBeginsANewFile checks that a log does not grow without limit, and that each line is kept once.
func TestLogFileBeginsANewFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "up.log")
	first, err := openLog(path)
	require.NoError(t, err)
	line := []byte(strings.Repeat("x", maxLog/2) + "\n")
	_, err = first.Write(line)
	require.NoError(t, err)
	require.NoError(t, first.Close())
	log, err := openLog(path)
	require.NoError(t, err)
	for range 2 {
		n, err := log.Write(line)
		require.NoError(t, err)
		require.Len(t, line, n)
	}
	require.NoError(t, log.Close())
	for _, file := range []string{path + ".old", path} {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.LessOrEqual(t, info.Size(), int64(maxLog))
		require.Positive(t, info.Size())
	}
}
