package guard_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell/guard"
)

func TestVariablesOf(t *testing.T) {
	t.Parallel()
	policy, err := guard.ParsePolicyOver(deploy.Policy, []byte("version: 1\nextends: default\nvariables: {mytool: [MY_*], gh: [FOO]}\n"))
	require.NoError(t, err)
	with := policy.WithPassed([]guard.Passed{{Variable: "BAR_*", Program: "mytool"}, {Variable: "NOBODYS"}})
	require.Equal(t, []string{"MY_*", "BAR_*"}, with.VariablesOf("mytool"))
	require.Equal(t, []string{"MY_*"}, policy.VariablesOf("mytool"), "the other policy is as it was")
	require.Contains(t, with.VariablesOf("gh"), "FOO")
	require.Contains(t, with.VariablesOf("kubectl"), "AWS_*", "it starts aws")
	for _, program := range []string{"jq", "env", "bash", "xargs", "timeout", "cat", "grep", "find", "claude", "nobody"} {
		require.Empty(t, with.VariablesOf(program), program)
	}
	for variable, want := range map[string]bool{"GH_TOKEN": true, "MY_KEY": true, "BAR_X": true, "BAR": false, "NOBODYS": false} {
		require.Equal(t, want, with.Reaches(variable), variable)
	}
	require.Contains(t, policy.Own(), "variables: {mytool: [MY_*], gh: [FOO]}")
}

func TestSecretVariables(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"GH_TOKEN": true, "GIT_CONFIG_KEY_0": false, "GIT_CONFIG_KEY_X": true, "PATH": false} {
		require.Equal(t, want, guard.IsSecret(name), name)
	}
}
