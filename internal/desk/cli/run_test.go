package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/plant/program"
)

// TestRunWhatRunsAlready starts a chain with the ID of a running chain.
func TestRunWhatRunsAlready(t *testing.T) {
	t.Parallel()
	s := startStage(t)
	began := starter(t, s.environ, "run", "--id", "dup")
	require.Equal(t, program.ExitOK, began.Code, began.Stderr)
	again := starter(t, s.environ, "run", "--id", "dup")
	require.Equal(t, program.ExitFailure, again.Code)
	require.Equal(t, "claudeops: chain dup runs already: choose another ID, or see it with: claudeops chain dup\n", again.Stderr)
}
