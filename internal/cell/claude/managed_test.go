package claude

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHooksOff(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		`{"disableAllHooks":true}`: "disableAllHooks", `{"allowManagedHooksOnly":true,"model":"opus"}`: "allowManagedHooksOnly",
		`{"disableAllHooks":false}`: "", `{"hooks":{}}`: "", `nonsense`: "", "": "",
	} {
		for _, name := range []string{"managed-settings.json", "managed-settings.d/10-hooks.json"} {
			dir := t.TempDir()
			file := filepath.Join(dir, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
			require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
			found, key := HooksOff(dir)
			require.Equal(t, want, key, content)
			require.Equal(t, want != "", found == file, content)
		}
	}
	found, _ := HooksOff(filepath.Join(t.TempDir(), "missing"))
	require.Empty(t, found)
}

// TestListed checks which models have a known price.
func TestListed(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]bool{
		"haiku": true, "sonnet": true, "opus": true, "claude-opus-5-5": true, "us.anthropic.claude-sonnet-5-20260101-v1:0": true,
		"gpt-9": false, "claude-mystery-1": false, "": false,
	} {
		require.Equal(t, want, Listed(model), model)
	}
}
