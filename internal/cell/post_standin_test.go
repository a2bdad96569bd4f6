package cell_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestStandIn checks that the stand-in for the CLI behaves with a guard as the real CLIs do. The tests of other
// packages rely on this behaviour.
func TestStandIn(t *testing.T) {
	t.Parallel()
	for _, version := range simtest.Versions(t) {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "docker")
			s.standIn = true
			post := s.open(2)
			results := s.run(version, s.environment(post),
				claudesim.Bash("docker ps --format '{{.Names}}' | grep -v \"it's\"\ndocker logs --tail 5 web"), claudesim.Bash("ls"),
				claudesim.Bash("docker restart web"), claudesim.Bash("reboot"),
				claudesim.Call("Write", map[string]string{"file_path": "../outside", "content": "x"}),
				claudesim.BashInBackground("docker ps -a"),
			)
			require.NoError(t, post.Close())
			require.Equal(t, "docker ps --format {{.Names}}\ndocker logs --tail 5 web\ndocker restart web\ndocker ps -a\n", s.called())
			require.Len(t, s.ledger.charged, 1)
			for i, denied := range []bool{false, false, false, true, true, false} {
				require.Equal(t, denied, results[i].IsError, "%d: %v", i, results[i].Content)
				require.Equal(t, !denied, s.calls()[i].Decision.Allowed)
			}
			require.Contains(t, fmt.Sprint(results[3].Content), s.calls()[3].Decision.Reason)
		})
	}
}

// TestStandInFailsClosed checks that no call runs if the post is closed.
func TestStandInFailsClosed(t *testing.T) {
	t.Parallel()
	s := newSite(t, "docker")
	s.standIn = true
	post := s.open(2)
	require.NoError(t, post.Close())
	for i, one := range s.run(claudesim.VersionNew, s.environment(post), claudesim.Bash("ls"), claudesim.Bash("docker ps")) {
		require.True(t, one.IsError, "%d: %v", i, one.Content)
	}
	require.Empty(t, s.called())
}
