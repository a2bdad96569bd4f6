package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEncryptionKeysFile(t *testing.T) {
	t.Parallel()
	require.Nil(t, load(t).Encryption.Keys)
	require.False(t, load(t).Policy().Encrypted)

	dir := t.TempDir()
	file, key := filepath.Join(dir, "keys"), strings.Repeat("A", 43)+"="
	require.NoError(t, os.WriteFile(file, []byte("new "+key+"\n"), 0o600))
	cfg := load(t, "CLAUDEOPS_ENCRYPTION_KEYS_FILE="+file)
	require.Equal(t, "new", cfg.Encryption.Keys.Current())
	require.True(t, cfg.Policy().Encrypted)
	for _, setting := range cfg.Settings() {
		require.NotContains(t, setting.Value, key)
	}

	near := problemsOf(t, "CLAUDEOPS_WORK_DIR="+dir, "CLAUDEOPS_ENCRYPTION_KEYS_FILE="+file)
	require.Len(t, near, 1)
	require.Contains(t, near[0].Sentence, "it must not contain the file of keys "+file+", which agents must not touch")
	require.NoError(t, os.Chmod(file, 0o644)) //nolint:gosec // it is wrong
	open := problemsOf(t, "CLAUDEOPS_ENCRYPTION_KEYS_FILE="+file)
	require.Len(t, open, 1)
	require.Equal(t, `CLAUDEOPS_ENCRYPTION_KEYS_FILE is "`+file+`"; it must name a file of keys that can be used, and it has the mode 0644, `+
		`with which others can read or change it; do: chmod 0600.`, open[0].Sentence)
}
