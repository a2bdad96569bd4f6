package activities

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDirectoryOfAnyChain checks that any chain ID gives a plain file name of its own.
func TestDirectoryOfAnyChain(t *testing.T) {
	t.Parallel()
	names := map[string]string{}
	for _, chainID := range []string{
		"", ".", "..", "../..", "/", "/etc/passwd", "a/b", "a-b", "a\\b", "a:b", "A-b", "ä", "ö", "*", "(x)", "a b", "a\nb", "a\x00b", "-rf", "~",
		strings.Repeat("x", 1000), strings.Repeat("x", 1001), "claudeops-2026-03-01T12:00:00Z", "claudeops-2026-03-01T12:00:01Z",
	} {
		name := ChainDirName(chainID)
		require.Regexp(t, `^[A-Za-z0-9_][A-Za-z0-9_-]{0,50}$`, name, "%q", chainID)
		require.Empty(t, names[strings.ToLower(name)], "%q shares its directory with %q", chainID, names[strings.ToLower(name)])
		names[strings.ToLower(name)] = "it: " + chainID
	}
}
