package claude_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/claude"
)

// TestLimitedModel checks which models a limit of an account concerns. The kinds are those of both CLIs, and some that
// they do not know.
func TestLimitedModel(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"", "five_hour", "seven_day", "overage"} {
		require.Empty(t, claude.LimitedModel(kind, "opus"), kind)
	}
	for _, tt := range [][3]string{
		{"seven_day_opus", "opus", "opus"},
		{"seven_day_opus", "claude-Opus-5-5[1m]", "opus"},
		{"seven_day_opus", "opusplan", "opus"},
		{"seven_day_sonnet", "us.anthropic.claude-sonnet-5", "sonnet"},
		{"seven_day_opus", "best", "best"},                         // an alias for several families
		{"seven_day_overage_included", "fable", "fable"},           // the CLI calls it the limit of Fable
		{"thirty_day_new", "claude-haiku-5-5", "claude-haiku-5-5"}, // unknown
		{"odd_", "haiku", "haiku"},
	} {
		require.Equal(t, tt[2], claude.LimitedModel(tt[0], tt[1]), tt)
	}
}
