package claude_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestContractSandboxOfALogin runs the real CLI with an existing login, in a sandbox that hides all other files in
// HOME.
func TestContractSandboxOfALogin(t *testing.T) {
	t.Parallel()
	for _, version := range simtest.Versions(t) {
		t.Run(simtest.Number(t, version), func(t *testing.T) {
			t.Parallel()
			home, work, temporary := t.TempDir(), t.TempDir(), t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(home, ".claude"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(home, ".claude.json"), []byte("{}"), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(home, "key"), []byte("PRIVATE"), 0o600))
			api := simtest.StartAPI(t, claudesim.Play(claudesim.Always(
				claudesim.Bash("cat ~/key; touch ~/new; echo looked"), claudesim.Say("done"))))
			cli, err := claude.Locate(t.Context(), claude.Options{Path: simtest.RealCLI(t, version), Environ: []string{
				"PATH=" + os.Getenv("PATH"), "HOME=" + home, "ANTHROPIC_API_KEY=" + apiKey, "ANTHROPIC_BASE_URL=" + api.URL(),
			}})
			require.NoError(t, err)
			run := claude.Invocation{
				SessionID: uuid.NewString(), Prompt: "look", Model: "haiku", Dir: work, Tools: []string{"Bash"}, AllowedTools: []string{"Bash"},
				Env:     map[string]string{"TMPDIR": temporary, "CLAUDE_CODE_TMPDIR": temporary},
				Limits:  claude.Limits{Wall: 5 * time.Minute},
				Sandbox: &claude.Sandbox{Hidden: []string{home}, Writable: []string{temporary}},
			}
			for range 2 {
				result, err := cli.Run(t.Context(), run, nil)
				require.NoError(t, err)
				require.Equal(t, "done", result.Text)
				if len(result.Sandbox) > 4 && result.Sandbox[:4] == "none" {
					t.Skip(result.Sandbox)
				}
				run.Resume, run.SessionID = run.SessionID, uuid.NewString() // resuming proves that the CLI could write the conversation
			}
			for _, request := range api.Requests()[1:2] {
				require.Contains(t, request.ToolResults()[0], "looked")
				require.NotContains(t, request.ToolResults()[0], "PRIVATE")
			}
			require.NoFileExists(t, filepath.Join(home, "new"))
		})
	}
}
