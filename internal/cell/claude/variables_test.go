package claude

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVariables(t *testing.T) {
	t.Parallel()
	got := Variables(Options{
		Environ: []string{"PATH=/bin", "HOME=/root", "TMPDIR=/tmp", "OTHER=x", "KUBECONFIG=/k"}, PassEnv: []string{"KUBE*"}, ConfigDir: "/var/claude",
	}, map[string]string{"TMPDIR": "/own"})
	require.Equal(t, "/bin", got["PATH"])
	require.Equal(t, "/var/claude/home", got["HOME"])
	require.Equal(t, "/own", got["TMPDIR"])
	require.Equal(t, "/k", got["KUBECONFIG"])
	require.Contains(t, got, "GIT_CONFIG_COUNT")
	require.NotContains(t, got, "OTHER")
}
