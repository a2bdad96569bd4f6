package process_test

import (
	"bytes"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRolesStartEarly checks that an init and a launcher run before the packages are initialized that most packages
// import.
func TestRolesStartEarly(t *testing.T) {
	t.Parallel()
	for _, arguments := range [][]string{{"claudeops-init", "subreaper"}, {"claudeops-launch"}} {
		var trace bytes.Buffer
		// It has neither a control socket nor a job, so it ends at once.
		role := exec.Cmd{Path: "/proc/self/exe", Args: arguments, Env: []string{"GODEBUG=inittrace=1"}, Stderr: &trace}
		require.NoError(t, role.Run())
		require.Contains(t, trace.String(), "\ninit os @", arguments)
		for _, late := range []string{"reflect", "path/filepath", "encoding/json", "golang.org/x/sys/unix", "github.com/stretchr/"} {
			require.NotContains(t, trace.String(), "\ninit "+late, "%s: treeinit imports a package that is initialized late", arguments)
		}
	}
}
