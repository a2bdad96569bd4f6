package agent

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/records/transcripts"
	"github.com/claudeops/claudeops/internal/redact"
)

// TestConcludedIsArchived lets a worker find the answer of a session whose worker died before the conversation was
// archived. The answer is not told before the archive has it: another host can continue the conversation. If the
// archive cannot be reached, the report says so.
func TestConcludedIsArchived(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]bool{"archived": false, "archive away": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, bucket := t.TempDir(), filepath.Join(t.TempDir(), "archive")
			archive, err := transcripts.Open(t.Context(), "file://"+bucket)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, archive.Close()) })
			runner, err := New(t.Context(), Options{
				Archive: archive, Locks: filepath.Join(state, "locks"),
				Cell: cell.Options{
					Sessions: filepath.Join(state, "sessions"), Conversations: filepath.Join(state, "conversations"),
					ConfigDir: filepath.Join(state, "claude"), Driver: claude.Options{ConfigDir: filepath.Join(state, "claude")},
					Mask: redact.New(nil), Logger: slog.New(slog.DiscardHandler),
				},
			})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, runner.Close()) })
			id := uuid.NewString()
			said := `{"type":"user","uuid":"m1","sessionId":"` + id + `","message":{"role":"user","content":"how is nas?"}}` + "\n" +
				`{"type":"assistant","uuid":"m2","parentUuid":"m1","sessionId":"` + id + `","message":{"role":"assistant","id":"msg-1",` +
				`"model":"claude-haiku-4","content":[{"type":"tool_use","id":"call-1","name":"StructuredOutput","input":{"reply":"it sleeps"}}],` +
				`"usage":{"input_tokens":10,"output_tokens":10}}}` + "\n"
			require.NoError(t, os.WriteFile(runner.host.Conversation(id), []byte(said), 0o600))
			if away {
				require.NoError(t, os.RemoveAll(bucket))
				require.NoError(t, os.WriteFile(bucket, nil, 0o600))
			}

			report, err := runner.Concluded(t.Context(), id, "")
			require.NoError(t, err)
			require.JSONEq(t, `{"reply":"it sleeps"}`, string(report.Output))
			require.Equal(t, away, report.Unarchived)
			if away {
				return
			}
			elsewhere := filepath.Join(t.TempDir(), id+".jsonl") // on another host
			other, err := archive.Copy(id, elsewhere)
			require.NoError(t, err)
			_, err = other.Restore(t.Context())
			require.NoError(t, err)
			require.FileExists(t, elsewhere)
		})
	}
}
