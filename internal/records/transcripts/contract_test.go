package transcripts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// realHost simulates a host with the real CLI: a home and a working directory of its own.
type realHost struct {
	cli  *claude.CLI
	home string
	dir  string
}

func newRealHost(t *testing.T, version claudesim.Version, api *claudesim.API) realHost {
	t.Helper()
	host := realHost{home: t.TempDir(), dir: t.TempDir()}
	options := claude.Options{Path: simtest.RealCLI(t, version), ConfigDir: filepath.Join(host.home, "claude"), MaxRetries: 1}
	for name, value := range simtest.RealEnv(host.home, api.URL()) {
		options.Environ = append(options.Environ, name+"="+value)
	}
	var err error
	host.cli, err = claude.Locate(t.Context(), options)
	require.NoError(t, err)
	return host
}

func (h realHost) copyOf(t *testing.T, archive *Archive, sessionID string) *Copy {
	t.Helper()
	path, err := h.cli.TranscriptPath(h.dir, sessionID)
	require.NoError(t, err)
	local, err := archive.Copy(sessionID, path)
	require.NoError(t, err)
	return local
}

func (h realHost) run(t *testing.T, sessionID, resume, prompt string) {
	t.Helper()
	_, err := h.cli.Run(t.Context(), claude.Invocation{
		SessionID: sessionID, Resume: resume, Prompt: prompt, Model: "haiku", Dir: h.dir,
		Tools: []string{"Bash"}, AllowedTools: []string{"Bash(echo:*)"},
		Limits: claude.Limits{Wall: time.Minute, FirstByte: 30 * time.Second, Idle: 30 * time.Second, Grace: 5 * time.Second},
	}, func(claude.Progress) {})
	require.NoError(t, err)
}

// TestContractConversationOutlivesItsHost archives a conversation of the real CLI, removes its host, and
// continues the conversation on another one: in the same session and in a fork.
func TestContractConversationOutlivesItsHost(t *testing.T) {
	t.Parallel()
	for _, version := range simtest.Versions(t) {
		t.Run(simtest.Number(t, version), func(t *testing.T) {
			t.Parallel()
			api := simtest.StartAPI(t, claudesim.Play(
				claudesim.On(claudesim.Match{Prompt: "look around"},
					claudesim.Bash("echo seen at the first host").Saying("Looking."), claudesim.Say("It is the proxy.")),
				claudesim.Always(claudesim.Say("Done."))))
			archive := inDirectory(t, t.TempDir())
			first, fork := uuid.NewString(), uuid.NewString()

			lost := newRealHost(t, version, api)
			lost.run(t, first, "", "look around")
			written := lost.copyOf(t, archive, first)
			content := text(t, written.path)
			require.True(t, strings.HasSuffix(content, "\n"), "the CLI ends each line that it writes")
			save(t, written)
			require.NoError(t, os.RemoveAll(lost.home))
			require.NoError(t, os.RemoveAll(lost.dir))

			there := newRealHost(t, version, api)
			resumed := there.copyOf(t, archive, first)
			restored, err := resumed.Restore(t.Context())
			require.NoError(t, err)
			require.Equal(t, FromArchive, restored.Outcome)
			require.Equal(t, content, text(t, resumed.path))

			there.run(t, fork, first, "repair it")
			requireGoesOn(t, api, "look around", "repair it")
			require.Equal(t, content, text(t, resumed.path), "a fork leaves its parent alone")
			there.run(t, first, first, "what did you see?")
			requireGoesOn(t, api, "look around", "what did you see?")
			require.True(t, strings.HasPrefix(text(t, resumed.path), content), "a transcript is only appended to")
			save(t, resumed)
			save(t, there.copyOf(t, archive, fork))
		})
	}
}

// requireGoesOn checks that the latest request to the API contained the whole conversation.
func requireGoesOn(t *testing.T, api *claudesim.API, prompts ...string) {
	t.Helper()
	requests := api.Requests()
	last := requests[len(requests)-1]
	require.Equal(t, prompts, last.Prompts())
	require.Contains(t, strings.Join(last.ToolResults(), "\n"), "seen at the first host")
}

// TestContractHalfALine lets the real CLI continue a transcript whose last line is incomplete, as after a kill. Some
// versions append to the incomplete line, so that the appended data is unreadable. Those are only the CLI's
// housekeeping data, and the conversation loses nothing.
func TestContractHalfALine(t *testing.T) {
	t.Parallel()
	for _, version := range simtest.Versions(t) {
		t.Run(simtest.Number(t, version), func(t *testing.T) {
			t.Parallel()
			api := simtest.StartAPI(t, claudesim.Play(
				claudesim.On(claudesim.Match{Prompt: "look around"},
					claudesim.Bash("echo seen at the first host"), claudesim.Say("It is the proxy.")),
				claudesim.Always(claudesim.Say("Done."))))
			archive, first := inMemory(t), uuid.NewString()
			host := newRealHost(t, version, api)
			host.run(t, first, "", "look around")
			local := host.copyOf(t, archive, first)
			whole := text(t, local.path)
			add(t, local.path, `{"type":"user","mess`)
			save(t, local)
			host.run(t, first, first, "and then?")
			requireGoesOn(t, api, "look around", "and then?")
			save(t, local)
			require.True(t, strings.HasPrefix(text(t, local.path), whole))

			there := newRealHost(t, version, api)
			restored := there.copyOf(t, archive, first)
			_, err := restored.Restore(t.Context())
			require.NoError(t, err)
			require.Equal(t, text(t, local.path), text(t, restored.path))
			there.run(t, first, first, "what now?")
			requireGoesOn(t, api, "look around", "and then?", "what now?")
		})
	}
}
