package operate

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/records/encryption"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// TestCodecServes runs `claudeops codec`, and decodes a payload with the token that the command has created.
func TestCodecServes(t *testing.T) {
	t.Parallel()
	setting, file := clitest.EncryptionKeys(t)
	reader, writer := io.Pipe()
	var stderr bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan program.ExitCode, 1)
	go func() {
		ended <- clitest.Of(Commands).Execute(ctx, &console.Console{Process: program.Process{
			Args:    []string{"codec", "--listen", "127.0.0.1:0", "--output", "json"},
			Environ: clitest.Environment(t, setting), Stdout: writer, Stderr: &stderr,
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
