package setup

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

func TestConfigReportsEveryProblem(t *testing.T) {
	t.Parallel()
	got := starter(t, clitest.Environment(t, "CLAUDEOPS_MAX_TIER=9", "CLAUDEOPS_CONTINUITY=maybe"), "config")
	require.Contains(t, got.Stderr, "CLAUDEOPS_MAX_TIER")
	require.Contains(t, got.Stderr, "CLAUDEOPS_CONTINUITY")
}

func TestConfigAsJSON(t *testing.T) {
	t.Parallel()
	got := starter(t, clitest.Environment(t, "CLAUDEOPS_TIER1_MODEL=sonnet"), "config", "--output", "json")
	require.Equal(t, program.ExitOK, got.Code, got.Stderr)
	var settings []config.Setting
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), &settings))
	for _, setting := range settings {
		require.NotEmpty(t, setting.Meaning, setting.Name)
		if setting.Name == "CLAUDEOPS_TIER1_MODEL" {
			require.Equal(t, "sonnet", setting.Value)
			require.Equal(t, config.SourceEnvironment, setting.Source)
			return
		}
	}
	require.Fail(t, "the setting is not listed")
}
