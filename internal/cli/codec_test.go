package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/encryption"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/program"
)

// encryptionKeys writes a file with one key. It returns the setting for the file, and the path of the file.
func encryptionKeys(t *testing.T) (setting, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "keys")
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	require.NoError(t, os.WriteFile(file, []byte("2026-11 "+key+"\n"), 0o600))
	return "CLAUDEOPS_ENCRYPTION_KEYS_FILE=" + file, file
}

// TestCodecServes runs `starter codec`, and decodes a payload with the token that the command has created.
func TestCodecServes(t *testing.T) {
	t.Parallel()
	setting, file := encryptionKeys(t)
	reader, writer := io.Pipe()
	var stderr bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan program.ExitCode, 1)
	go func() {
		ended <- execute(ctx, &console.Console{Process: program.Process{
			Args:    []string{"codec", "--listen", "127.0.0.1:0", "--output", "json"},
			Environ: bareEnvironment(t, setting), Stdout: writer, Stderr: &stderr,
		}, Clock: time.Now})
	}()
	var serving struct {
		Endpoint  string   `json:"endpoint"`
		TokenFile string   `json:"token_file"`
		Keys      []string `json:"keys"`
	}
	require.NoError(t, json.NewDecoder(reader).Decode(&serving))
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	require.Equal(t, []string{"2026-11"}, serving.Keys)
	info, err := os.Stat(serving.TokenFile)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	token, err := os.ReadFile(serving.TokenFile)
	require.NoError(t, err)

	keys, err := encryption.ReadKeys(file)
	require.NoError(t, err)
	payload, err := encryption.NewConverter(keys).ToPayload("all is well")
	require.NoError(t, err)
	body, err := protojson.Marshal(&commonpb.Payloads{Payloads: []*commonpb.Payload{payload}})
	require.NoError(t, err)
	for bearer, want := range map[string]int{"": http.StatusUnauthorized, strings.TrimSpace(string(token)): http.StatusOK} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, serving.Endpoint+"/decode", bytes.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+bearer)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		answer, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.StatusCode)
		require.Equal(t, bearer != "", strings.Contains(string(answer), base64.StdEncoding.EncodeToString([]byte(`"all is well"`))))
	}
	stop()
	require.Equal(t, program.ExitOK, <-ended, stderr.String())
	require.NotContains(t, stderr.String(), strings.TrimSpace(string(token)))
}

// TestEncryptedInstallation uses starter on a server with encrypted chains, with the key and without it.
func TestEncryptedInstallation(t *testing.T) {
	t.Parallel()
	setting, _ := encryptionKeys(t)
	environ := startInstallation(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "take your time"},
			claudesim.Bash("true").Using(claudesim.Usage{Input: 1_000_000}), claudesim.Bash("sleep 600")),
		claudesim.Always(claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "the tide is low"}))),
		setting, "CLAUDEOPS_TIER1_TOOLS=Bash")
	ran := starter(t, environ, "run", "--id", "one", "--service", "harbour", "--wait")
	require.Equal(t, program.ExitOK, ran.code, ran.stderr)
	require.Contains(t, ran.stdout, "tier 1 found everything healthy")
	require.Contains(t, starter(t, environ, "chain", "one", "-o", "json").stdout, "the tide is low")

	created := starter(t, environ, "schedule", "create", "tides", "--every", "24h", "--prompt", "look at the tide", "--actor", "ada")
	require.Equal(t, program.ExitOK, created.code, created.stderr)
	shown := starter(t, environ, "schedule", "describe", "tides", "-o", "json")
	require.Contains(t, shown.stdout, "look at the tide")
	require.Contains(t, shown.stdout, "ada")

	require.Equal(t, program.ExitOK, starter(t, environ, "run", "--id", "slow", "--prompt", "take your time").code)
	require.Eventually(t, func() bool { // a heartbeat tells the cost
		got := starter(t, environ, "chain", "slow")
		return got.code == program.ExitOK && strings.Contains(got.stdout, "running") && regexp.MustCompile(`\$0\.[1-9]|\$[1-9]`).MatchString(got.stdout)
	}, screenTimeout, screenLook)
	replayed := starter(t, environ, "replay")
	require.Equal(t, program.ExitOK, replayed.code, replayed.stdout+replayed.stderr)
	without := slices.DeleteFunc(slices.Clone(environ), func(variable string) bool { return variable == setting })
	require.Equal(t, program.ExitFailure, starter(t, without, "replay").code, "it cannot be decoded")
	require.Equal(t, program.ExitOK, starter(t, environ, "cancel", "slow").code)

	listed := starter(t, environ, "chains", "--service", "harbour")
	require.Equal(t, program.ExitUsage, listed.code)
	require.Contains(t, listed.stderr, "--service finds nothing while CLAUDEOPS_ENCRYPTION_KEYS_FILE is set")
	all := starter(t, environ, "chains", "-o", "json")
	require.Contains(t, all.stdout, `"one"`)
	require.NotContains(t, all.stdout, "harbour")

	refused := starter(t, without, "chain", "one")
	require.Equal(t, program.ExitFailure, refused.code)
	require.Contains(t, refused.stderr, `it is encrypted with key "2026-11"; set CLAUDEOPS_ENCRYPTION_KEYS_FILE to a file with that key`)
}
