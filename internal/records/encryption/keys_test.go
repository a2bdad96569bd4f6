package encryption_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/records/encryption"
)

// keyOf returns the line of a key. Its 32 bytes are all letter.
func keyOf(id string, letter byte) string {
	return id + " " + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(letter), 32)))
}

// writeKeys writes a file of keys that only its owner can read.
func writeKeys(t *testing.T, lines ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return name
}

// readKeys returns the keys of a file with these lines.
func readKeys(t *testing.T, lines ...string) *encryption.Keys {
	t.Helper()
	keys, err := encryption.ReadKeys(writeKeys(t, lines...))
	require.NoError(t, err)
	return keys
}

func TestReadKeys(t *testing.T) {
	t.Parallel()
	keys := readKeys(t, "# the first encrypts", "", keyOf("2026-11", 'a'), "  "+keyOf("old.1", 'b')+"  ")
	require.Equal(t, "2026-11", keys.Current())
	require.Equal(t, []string{"2026-11", "old.1"}, keys.IDs())

	var none *encryption.Keys
	require.Empty(t, none.Current())
	require.Empty(t, none.IDs())
}

// TestNoFormatShowsAKey formats keys in all ways that a log or an error could use.
func TestNoFormatShowsAKey(t *testing.T) {
	t.Parallel()
	keys := readKeys(t, keyOf("2026-11", 'a'))
	encoded, err := json.Marshal(map[string]any{"keys": keys})
	require.NoError(t, err)
	shown := fmt.Sprintf("%v %+v %#v %s %x %d %s", keys, keys, keys, keys, keys, struct{ K *encryption.Keys }{keys}, encoded)
	require.NotContains(t, shown, keys.Secrets()[0])
	require.NotContains(t, shown, strings.Repeat("97 ", 16))
	require.NotContains(t, shown, strings.Repeat("61", 16))
	require.Contains(t, shown, "2026-11")
}

func TestUnusableKeys(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("s", 31)
	for name, tt := range map[string]struct {
		lines []string
		want  string
	}{
		"empty":        {[]string{"# nothing"}, "has no key: write a line with an ID, a blank and 32 random bytes as base64"},
		"no ID":        {[]string{base64.StdEncoding.EncodeToString([]byte(secret))}, "has a mistake in line 1: write an ID, a blank and the key"},
		"a bad ID":     {[]string{keyOf("a/b", 'a')}, "has a mistake in line 1: an ID has up to 64 letters"},
		"a short key":  {[]string{"new " + base64.StdEncoding.EncodeToString([]byte(secret))}, "has a mistake in line 1: the key new is not the base64 of 32 bytes"},
		"no base64":    {[]string{"new " + secret}, "has a mistake in line 1: the key new is not the base64 of 32 bytes"},
		"an ID twice":  {[]string{keyOf("new", 'a'), keyOf("new", 'b')}, "has a mistake in line 2: the ID new comes twice"},
		"a key twice":  {[]string{keyOf("new", 'a'), keyOf("old", 'a')}, "has a mistake in line 2: the keys new and old are the same"},
		"three fields": {[]string{keyOf("new", 'a') + " more"}, "has a mistake in line 1: write an ID, a blank and the key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := encryption.ReadKeys(writeKeys(t, tt.lines...))
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), secret)
			require.NotContains(t, err.Error(), base64.StdEncoding.EncodeToString([]byte(secret))[:16])
		})
	}
	_, err := encryption.ReadKeys(filepath.Join(t.TempDir(), "none"))
	require.EqualError(t, err, "cannot be read: no such file or directory")
	_, err = encryption.ReadKeys(t.TempDir())
	require.EqualError(t, err, "is no file")
}

// TestKeysOfOthers refuses files that all users can read, or that the group can change. The group may read a file,
// because Kubernetes mounts secrets in this way.
func TestKeysOfOthers(t *testing.T) {
	t.Parallel()
	name := writeKeys(t, keyOf("new", 'a'))
	for mode, allowed := range map[os.FileMode]bool{0o400: true, 0o600: true, 0o440: true, 0o644: false, 0o604: false, 0o660: false, 0o602: false} {
		require.NoError(t, os.Chmod(name, mode))
		_, err := encryption.ReadKeys(name)
		if allowed {
			require.NoError(t, err, "%o", mode)
			continue
		}
		require.ErrorContains(t, err, fmt.Sprintf("has the mode %04o, with which others can read or change it; do: chmod 0600", mode))
	}
}
