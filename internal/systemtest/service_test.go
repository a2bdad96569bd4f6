package systemtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/systemtest/servicetest"
)

// restartable returns settings that let agents of Tier 2 restart the service, in addition to the permissions of the
// built-in policy.
func restartable(t *testing.T, broken servicetest.Service, cli string) []string {
	t.Helper()
	policy := string(deploy.Policy)
	for old, changed := range map[string]string{
		"directories: [":              "directories: [" + broken.Bin + ", ",
		"    write: [\".\", $TMPDIR]": "    write: [\".\", $TMPDIR]\n    signals: true # restart-service sends one",
		"\nprograms:\n": "\nprograms:\n  restart-service: {tier: 2, starts: [sleep], args: SERVICE, action: restart}\n" +
			"  claude-and-snapshot: {tier: 1, starts: [cp, " + cli + "]}\n",
	} {
		require.Equal(t, 1, strings.Count(policy, old), old)
		policy = strings.Replace(policy, old, changed, 1)
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte(policy), 0o600))
	return []string{"CLAUDEOPS_POLICY_FILE=" + file, "PATH=" + broken.Bin + string(filepath.ListSeparator) + os.Getenv("PATH")}
}
