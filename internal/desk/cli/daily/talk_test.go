package daily

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

func TestTalkMisuse(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"there is no terminal for a screen":           {"talk"},
		"is no name of a conversation":                {"talk", "a b", "-m", "x"},
		"text has 16001 characters":                   {"talk", "-m", strings.Repeat("x", escalation.MaxTalkText+1)},
		"--show-context exclude each other":           {"talk", "-m", "x", "--show-context"},
		"conversation-bob is a conversation, not a":   {"talk", "--chain", "conversation-bob", "-m", "x"},
		"--confirm needs --turn":                      {"talk", "--confirm", "1"},
		"message_id must be at most 100 printable by": {"talk", "-m", "x", "--message-id", "a\nb"},
	} {
		got := starter(t, clitest.Environment(t, "USER=ada"), args...)
		require.Equal(t, program.ExitUsage, got.Code, "%s: %s", want, got.Stderr)
		require.Contains(t, got.Stderr, want)
	}
}
