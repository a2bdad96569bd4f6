package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseTools(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]ToolList{
		"Read":                      {"Read"},
		"Bash ,\n\tRead\n,, Grep,":  {"Bash", "Read", "Grep"},
		"mcp__my-server__look,Read": {"mcp__my-server__look", "Read"},
	} {
		got, err := parseTools(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := parseTools(got.String())
		require.NoError(t, err, text)
		require.Equal(t, want, again, text)
	}
	for _, text := range []string{"Bash(", "Bash(docker ps:*)", "*", "Bash Read", "1Bash", "--add-dir"} {
		_, err := parseTools(text)
		require.Error(t, err, text)
	}
}
