package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// settingsFile writes a file of settings and returns its path.
func settingsFile(t *testing.T, mode os.FileMode, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claudeops.env")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	require.NoError(t, os.Chmod(path, mode))
	return path
}

func TestSettingsFromTheFile(t *testing.T) {
	t.Parallel()
	path := settingsFile(t, 0o600, "CLAUDEOPS_MAX_TIER=2\nCLAUDEOPS_DRY_RUN=true\nANTHROPIC_API_KEY=sk\n")
	cfg := load(t, "CLAUDEOPS_ENV_FILE="+path, "CLAUDEOPS_DRY_RUN=false")
	require.Equal(t, path, cfg.State.EnvFile)
	require.EqualValues(t, 2, cfg.Chain.MaxTier)
	require.False(t, cfg.Chain.DryRun)
	sources := map[string]string{}
	for _, setting := range cfg.Settings() {
		sources[setting.Name] = setting.Source
	}
	require.Equal(t, path+":1", sources["CLAUDEOPS_MAX_TIER"])
	require.Equal(t, SourceEnvironment, sources["CLAUDEOPS_DRY_RUN"])
	require.Equal(t, SourceDefault, sources["CLAUDEOPS_CONTINUITY"])
	require.Equal(t, []string{"CLAUDEOPS_ENV_FILE=" + path, "CLAUDEOPS_MAX_TIER=2", "CLAUDEOPS_DRY_RUN=true", "ANTHROPIC_API_KEY=sk"},
		Environ([]string{"CLAUDEOPS_ENV_FILE=" + path}))
}

// TestEmptyIsUnset sets variables to nothing over a file of settings, as Compose does with ${NAME:-}. The file's values
// hold: a variable without a value loosens no limit.
func TestEmptyIsUnset(t *testing.T) {
	t.Parallel()
	path := settingsFile(t, 0o600, "CLAUDEOPS_MAX_TIER=1\nANTHROPIC_API_KEY=sk\n")
	for _, empty := range [][]string{
		{"CLAUDEOPS_MAX_TIER="}, {"CLAUDEOPS_MAX_TIER= "}, {"CLAUDEOPS_MAX_TIER=3", "CLAUDEOPS_MAX_TIER="}, {"ANTHROPIC_API_KEY="},
	} {
		environ := append([]string{"CLAUDEOPS_ENV_FILE=" + path, "CLAUDEOPS_DAY_BUDGET_USD="}, empty...)
		cfg := load(t, environ...)
		require.EqualValues(t, 1, cfg.Chain.MaxTier, "%q", empty)
		require.InDelta(t, 25, cfg.Limits.DayBudgetUSD, 0, "the default")
		require.ElementsMatch(t, []string{
			"CLAUDEOPS_ENV_FILE=" + path, "CLAUDEOPS_DAY_BUDGET_USD=", "CLAUDEOPS_MAX_TIER=1", "ANTHROPIC_API_KEY=sk",
		}, Environ(environ))
	}
}

func TestMistakesInTheFile(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"\nCLAUDEOPS_MAX_TIER=9\n": `PATH:2: CLAUDEOPS_MAX_TIER is "9"; it must be 1, 2 or 3.`,
		"CLAUDEOPS_MAX_TEER=2\n":   "PATH:1: CLAUDEOPS_MAX_TEER is not a setting of Claude Ops; did you mean CLAUDEOPS_MAX_TIER?",
		"nonsense\n":               "PATH:1: not a line such as NAME=value: missing =",
	} {
		path := settingsFile(t, 0o600, content)
		problems := problemsOf(t, "CLAUDEOPS_ENV_FILE="+path)
		require.Len(t, problems, 1)
		require.Equal(t, path+want[len("PATH"):], problems[0].Sentence)
	}
}

// TestSettingsOutOfReach checks that agents do not work in the directory of the file.
func TestSettingsOutOfReach(t *testing.T) {
	t.Parallel()
	path := settingsFile(t, 0o600, "")
	near := problemsOf(t, "CLAUDEOPS_WORK_DIR="+filepath.Dir(path), "CLAUDEOPS_ENV_FILE="+path)
	require.Len(t, near, 1)
	require.Contains(t, near[0].Sentence, "it must not contain the settings "+path+", which agents must not touch")
}

// TestSecretsInTheFile checks which variables close the file for others.
func TestSecretsInTheFile(t *testing.T) {
	t.Parallel()
	for content, refused := range map[string]bool{
		"ANTHROPIC_API_KEY=x\n": true, "TEMPORAL_API_KEY=x\n": true, "AWS_SECRET_ACCESS_KEY=x\n": true,
		"CLAUDEOPS_NOTIFY_URLS=ntfy://ntfy.sh/x\n": true, "CLAUDEOPS_RESUME_MAX_TOKENS=5\n": false, "TEMPORAL_TLS_CLIENT_KEY_PATH=/x\n": false,
		"ANTHROPIC_API_KEY=\n": false,
	} {
		_, err := Load([]string{home, workersUser, "CLAUDEOPS_ENV_FILE=" + settingsFile(t, 0o644, content)})
		if refused {
			require.ErrorContains(t, err, "others can read the file; do: chmod 0600", content)
		} else {
			require.NoError(t, err, content)
		}
	}
}
