package local

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// TestEnvWithoutUp checks that the error of `env` names the state directory if no `claudeops up` serves on it.
func TestEnvWithoutUp(t *testing.T) {
	t.Parallel()
	got := starter(t, clitest.Environment(t), "env")
	require.Equal(t, program.ExitFailure, got.Code)
	require.Regexp(t, "^claudeops: no `claudeops up` serves on this state directory: .*/state; start it, or set CLAUDEOPS_STATE_DIR", got.Stderr)
}
