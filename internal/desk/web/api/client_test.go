package api

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/internal/systemtest/webtest"
)

// TestGeneratedClient makes a client from the OpenAPI document with openapi-typescript, and lets it start a chain and
// answer its gate. `make openapi` installs the generator.
func TestGeneratedClient(t *testing.T) {
	t.Parallel()
	tool := filepath.Join(simtest.ModuleRoot(t), "tools", "openapi")
	modules := filepath.Join(tool, "node_modules")
	if _, err := os.Stat(filepath.Join(modules, ".bin", "openapi-typescript")); err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "the generator is not installed: run make openapi")
		t.Skip("the generator is not installed: run make openapi")
	}
	s := serve(t, webtest.Install(t, asking(), "CLAUDEOPS_GATE_TIMEOUT=1h"))
	dir := t.TempDir()
	for _, name := range []string{"client.ts", "tsconfig.json"} {
		content, err := os.ReadFile(filepath.Join(tool, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	require.NoError(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o600))
	document := s.ask(t, "GET", "/api/v1/openapi.json", nil)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "openapi.json"), document.body, 0o600))

	run := func(words ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), words[0], words[1:]...)
		command.Dir = dir
		said, err := command.CombinedOutput()
		require.NoError(t, err, "%v: %s", words, said)
		return string(said)
	}
	bin := filepath.Join(dir, "node_modules", ".bin")
	run(filepath.Join(bin, "openapi-typescript"), "openapi.json", "--output", "api.ts")
	run(filepath.Join(bin, "tsc"), "--project", ".")
	require.Regexp(t, `^chain-key-\w+ ended resolved\n$`, run("node", "client.js", s.URL, ownersToken))
}
