package clitest

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// EncryptionKeys writes a file with one key. It returns the setting for the file, and the path of the file.
func EncryptionKeys(t *testing.T) (setting, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "keys")
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	require.NoError(t, os.WriteFile(file, []byte("2026-11 "+key+"\n"), 0o600))
	return "CLAUDEOPS_ENCRYPTION_KEYS_FILE=" + file, file
}
