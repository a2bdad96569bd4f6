package operations

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/guard"
)

func TestPolicy(t *testing.T) {
	t.Parallel()
	policy := newStage(t, "").operations.Policy
	explained, err := policy.Explain(2)
	require.NoError(t, err)
	require.Equal(t, 2, explained.Tier)
	require.NotEmpty(t, explained.Grants)
	_, err = policy.Explain(4)
	require.EqualError(t, err, "tier must be 1, 2 or 3")
	require.Equal(t, KindInvalid, KindOf(err))

	denied, err := policy.Try(Call{Tier: 1, Command: "docker restart web"}, "")
	require.NoError(t, err)
	require.Equal(t, [2]any{false, guard.Denied}, [2]any{denied.Allowed, denied.Verdict})
	require.NotEmpty(t, denied.Reason)
	require.Equal(t, "Bash", denied.Tool)

	allowed, err := policy.Try(Call{Tier: 2, Command: "docker restart web"}, t.TempDir())
	require.NoError(t, err)
	require.True(t, allowed.Allowed)
	require.Equal(t, []guard.Action{{Kind: "restart", Service: "web"}}, allowed.Actions)

	read, err := policy.Try(Call{Tier: 1, Tool: "Read", Input: json.RawMessage(`{"file_path":"/etc/shadow"}`)}, "")
	require.NoError(t, err)
	require.False(t, read.Allowed)
	text, err := json.Marshal(read)
	require.NoError(t, err)
	require.Contains(t, string(text), `"actions":[]`)

	for problem, call := range map[string]Call{
		"tier must be 1, 2 or 3":               {Command: "ls"},
		"command and input exclude each other": {Tier: 1, Command: "ls", Input: json.RawMessage("{}")},
		"the input must be a JSON object":      {Tier: 1, Tool: "Read", Input: json.RawMessage("[]")},
		"a command is for Bash; Read takes":    {Tier: 1, Tool: "Read", Command: "ls"},
		"the input of Read is missing":         {Tier: 1, Tool: "Read"},
		"the command is missing":               {Tier: 1},
	} {
		_, err := policy.Try(call, "")
		require.ErrorContains(t, err, problem)
		require.Equal(t, KindInvalid, KindOf(err))
	}
	_, err = policy.Try(Call{Tier: 1, Command: "ls"}, "/no/such/directory")
	require.EqualError(t, err, `dir is "/no/such/directory"; it must be an existing directory`)
	require.Equal(t, KindInvalid, KindOf(err))
}
