package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/config/envfile"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/workflows"
)

// inputOf returns the input of a chain.
func (s *stage) inputOf(t *testing.T, id string) workflows.ChainInput {
	t.Helper()
	events := s.client.GetWorkflowHistory(t.Context(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	first, err := events.Next()
	require.NoError(t, err)
	var input workflows.ChainInput
	require.NoError(t, json.Unmarshal(first.GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads()[0].GetData(), &input))
	return input
}

// TestFirstChainAsks starts chains on a terminal while nobody has said how far agents may go.
func TestFirstChainAsks(t *testing.T) {
	t.Parallel()
	s := startStage(t)
	home := t.TempDir()
	path := filepath.Join(home, ".config", envfile.Name)
	const other = "CLAUDEOPS_LOG_LEVEL=warn"
	environ := slices.Concat(s.environ, []string{"HOME=" + home})
	const question = "How far may agents go on this machine?"

	left := onScreen(t, environ, 100, 20, "run", "--id", "left")
	left.Sees(question)
	left.Types("\x03")
	require.Equal(t, program.ExitFailure, left.Ends())
	left.Sees("nothing was chosen, and no chain has started")
	require.NoFileExists(t, path)

	for id, args := range map[string][]string{"said": {"--max-tier", "2"}, "dry": {"--dry-run"}, "yes": {"--yes"}} {
		unasked := onScreen(t, environ, 100, 20, append([]string{"run", "--id", id}, args...)...)
		require.Equal(t, program.ExitOK, unasked.Ends(), unasked.Text())
	}
	require.Zero(t, s.inputOf(t, "yes").MaxTier)
	require.NoFileExists(t, path)

	require.NoError(t, envfile.Append(path, []string{other})) // says nothing of tiers
	asked := onScreen(t, environ, 100, 20, "run", "--id", "asked")
	asked.Sees(question)
	asked.Is("permit")
	asked.Types("\x1b[B\r") // the second answer
	require.Equal(t, program.ExitOK, asked.Ends(), asked.Text())
	require.Equal(t, escalation.TierSafeRepair, s.inputOf(t, "asked").MaxTier)
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	require.Equal(t, escalation.TierSafeRepair, cfg.Chain.MaxTier)
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Regexp(t, "^"+other+"\n# .*\nCLAUDEOPS_MAX_TIER=2\n$", string(kept))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())

	once := onScreen(t, environ, 100, 20, "run", "--id", "once")
	require.Equal(t, program.ExitOK, once.Ends(), once.Text())
	require.Zero(t, s.inputOf(t, "once").MaxTier, "the workers' setting holds")
}
