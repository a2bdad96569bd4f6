package cell_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/claudesim"
)

// printer is a Supervisor that prints the decisions on an agent's calls, and permits no restarts.
type printer struct{}

func (printer) Progress(claude.Progress) {}

func (printer) Decided(_ context.Context, decisions []cell.Entry) error {
	for _, one := range decisions {
		fmt.Printf("%s allowed=%t\n", one.Input, one.Decision.Allowed)
	}
	return nil
}

func (printer) Charge(context.Context, string, []guard.Action) (refusal string, err error) {
	return "nothing is restarted at night", nil
}

func (printer) Return(context.Context, string) error { return nil }

// open returns a Host in dir, where a stand-in plays a scenario instead of the claude CLI.
func open(ctx context.Context, dir string, scenario claudesim.Scenario) (*cell.Host, error) {
	program, err := claudesim.Install(filepath.Join(dir, "bin"), scenario)
	if err != nil {
		return nil, err
	}
	driver := claude.Options{Path: program, Environ: []string{"PATH=" + os.Getenv("PATH")}, ConfigDir: filepath.Join(dir, "claude")}
	cli, err := claude.Locate(ctx, driver)
	if err != nil {
		return nil, err
	}
	policy, err := guard.ParsePolicy(deploy.Policy)
	if err != nil {
		return nil, err
	}
	return cell.Open(ctx, cell.Options{
		CLI: cli, Driver: driver, Policy: policy,
		Place: func(work string, variables map[string]string, asked []string) (guard.Place, error) {
			return guard.Place{
				Work: []string{work}, Home: variables["HOME"], Temp: variables["TMPDIR"], Path: policy.Directories, Asked: asked,
			}, nil
		},
		Sessions: filepath.Join(dir, "sessions"), Conversations: filepath.Join(dir, "conversations"), ConfigDir: driver.ConfigDir,
		SessionBytes: 1 << 20, Limits: claude.Limits{FirstByte: time.Minute, Idle: 10 * time.Minute, Grace: time.Second},
		Logger: slog.New(slog.DiscardHandler),
	})
}

// TestRefusedIsMasked checks that Result.Refused shows no secret, in the input of a call or in the reason.
func TestRefusedIsMasked(t *testing.T) {
	t.Parallel()
	token := "ghp_" + strings.Repeat("aB3dE5fG7h", 4)[:36]
	host, err := open(t.Context(), t.TempDir(), claudesim.Play(claudesim.Always(
		claudesim.Bash("touch "+token), claudesim.Bash("./"+token), claudesim.Conclude(map[string]any{"healthy": true}),
	)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	result, err := host.Run(t.Context(), cell.Spec{
		SessionID: uuid.NewString(), Prompt: "look", Model: "haiku", Tier: 1, Tools: []string{"Bash"}, Dir: t.TempDir(),
		Schema: `{"type":"object","properties":{"healthy":{"type":"boolean"}}}`,
	})
	require.NoError(t, err)
	written, err := json.Marshal(result.Refused)
	require.NoError(t, err)
	require.NotContains(t, string(written), token)
	// Under the race detector, the shell itself opens a file that is refused.
	calls := slices.DeleteFunc(result.Refused, func(e cell.Entry) bool { return e.Decision.Rule == "files" })
	require.Len(t, calls, 2)
	require.Contains(t, string(calls[0].Input), "[masked: ")
	require.Contains(t, calls[1].Decision.Reason, "[masked: ")
}

// TestGitDoesNotSeeTheGuardsSockets checks that the supervisor's git reads neither the sockets of its own guard nor
// what is hidden from agents.
func TestGitDoesNotSeeTheGuardsSockets(t *testing.T) {
	t.Parallel()
	host, err := open(t.Context(), t.TempDir(), claudesim.Play(claudesim.Always(claudesim.Say("well"))))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	sandbox := host.GitSandbox()
	require.Contains(t, sandbox.Hidden, "/home")
	require.True(t, slices.ContainsFunc(sandbox.Hidden, func(path string) bool {
		return strings.HasPrefix(filepath.Base(path), "claudeops-guard-")
	}), sandbox.Hidden)
}

// TestRunLeavesNothing runs sessions that end in different ways, and checks that nothing of them is left but their
// conversation.
func TestRunLeavesNothing(t *testing.T) {
	t.Parallel()
	verdict := claudesim.Conclude(map[string]any{"healthy": true})
	for name, c := range map[string]struct {
		reply  claudesim.Reply
		change func(spec *cell.Spec)
		check  func(t *testing.T, result cell.Result, err error)
		// silent sessions have no conversation.
		silent bool
	}{
		"with a verdict": {
			reply: verdict,
			check: func(t *testing.T, result cell.Result, err error) {
				t.Helper()
				require.NoError(t, err)
				require.JSONEq(t, `{"healthy":true}`, string(result.Structured))
				require.False(t, result.Unarchived)
				require.Contains(t, result.Sandbox, string(result.Level)+": ")
				require.Nil(t, result.Left, "it was asked for nothing")
			},
		},
		"in a workspace": {
			reply: claudesim.Bash(`cat "$EXCHANGE/given" > "$EXCHANGE/asked"`),
			change: func(spec *cell.Spec) {
				spec.Tier = 3
				spec.Workspace = &cell.Workspace{
					Parent: ".exchange", Name: "one", Variable: "EXCHANGE", Files: map[string][]byte{"given": []byte(`{"n":1}`)},
					Asked: "asked", MaxBytes: 100,
				}
			},
			check: func(t *testing.T, result cell.Result, err error) {
				t.Helper()
				require.NoError(t, err)
				require.Equal(t, `{"n":1}`, string(result.Left))
				require.Empty(t, result.LeftProblem)
			},
		},
		"out of time": {
			reply:  claudesim.Bash("sleep 60"),
			change: func(spec *cell.Spec) { spec.Tier, spec.Timeout = 3, time.Second },
			check: func(t *testing.T, _ cell.Result, err error) {
				t.Helper()
				var failure *claude.Error
				require.ErrorAs(t, err, &failure)
				require.Equal(t, claude.KindTimedOut, failure.Kind)
			},
		},
		"with too many files": {
			reply:  claudesim.Bash(`head -c 2000000 /dev/zero > "$TMPDIR/big"; sleep 60`),
			change: func(spec *cell.Spec) { spec.Tier = 3 },
			check: func(t *testing.T, _ cell.Result, err error) {
				t.Helper()
				var stored *cell.StorageError
				require.ErrorAs(t, err, &stored)
			},
		},
		"without a prompt": {
			reply: verdict,
			change: func(spec *cell.Spec) {
				spec.LatePrompt = func(context.Context, string) (string, error) { return "", os.ErrDeadlineExceeded }
			},
			check: func(t *testing.T, result cell.Result, err error) {
				t.Helper()
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
				require.Empty(t, result.Sandbox, "no agent was started")
			},
			silent: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			host, err := open(t.Context(), dir, claudesim.Play(claudesim.Always(c.reply, verdict)))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, host.Close()) })
			spec := cell.Spec{
				SessionID: uuid.NewString(), Prompt: "look", Model: "haiku", Tier: 1, Tools: []string{"Bash"}, Dir: t.TempDir(),
				Schema: `{"type":"object","properties":{"healthy":{"type":"boolean"}}}`,
			}
			if c.change != nil {
				c.change(&spec)
			}
			result, err := host.Run(t.Context(), spec)
			c.check(t, result, err)

			sessions, err := os.ReadDir(filepath.Join(dir, "sessions"))
			require.NoError(t, err)
			require.Empty(t, sessions)
			require.NoFileExists(t, filepath.Join(spec.Dir, ".exchange", "one"))
			_, err = os.Stat(host.Conversation(spec.SessionID))
			require.Equal(t, c.silent, err != nil)
		})
	}
}
