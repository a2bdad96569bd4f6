package supervisor

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
)

func testClaims(t *testing.T) (c claims, logged *bytes.Buffer) {
	t.Helper()
	logged = &bytes.Buffer{}
	c, err := newClaims(t.TempDir(), slog.New(slog.NewTextHandler(logged, nil)))
	require.NoError(t, err)
	return c, logged
}

func TestClaimsOfTheLivingAreLeftAlone(t *testing.T) {
	t.Parallel()
	c, _ := testClaims(t)
	lives, err := c.create(claim{WorkflowID: "lives", Token: []byte{1}})
	require.NoError(t, err)
	died, err := c.create(claim{WorkflowID: "died", RunID: "run", ActivityID: "7", Token: []byte{2, 0, 255}})
	require.NoError(t, err)
	require.NoError(t, died.Close(), "as the kernel does when a process dies")

	require.Equal(t, claim{WorkflowID: "died", RunID: "run", ActivityID: "7", Token: []byte{2, 0, 255}}, takeOne(t, c))
	orphaned, err := c.takeOrphaned()
	require.NoError(t, err)
	require.Empty(t, orphaned, "each is taken once")
	require.NoError(t, lives.Close())
	require.Equal(t, "lives", takeOne(t, c).WorkflowID)
}

// takeOne takes the one claim that has lost its process. A program that another test starts at that
// moment holds a copy of the lock until it is executed.
func takeOne(t *testing.T, c claims) claim {
	t.Helper()
	var orphaned []claim
	require.Eventually(t, func() bool {
		taken, err := c.takeOrphaned()
		orphaned = append(orphaned, taken...)
		return err != nil || len(orphaned) > 0
	}, time.Minute, time.Millisecond)
	require.Len(t, orphaned, 1)
	return orphaned[0]
}

func TestClaimsThatWereCutOffAreCleanedUp(t *testing.T) {
	t.Parallel()
	c, _ := testClaims(t)
	for name, content := range map[string]string{"claim-1": "", "claim-2": `{"token":"AQ`} {
		require.NoError(t, os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o600))
	}
	orphaned, err := c.takeOrphaned()
	require.NoError(t, err)
	require.Empty(t, orphaned)
	left, err := os.ReadDir(c.dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestClaimsAreNoReasonNotToRun(t *testing.T) {
	t.Parallel()
	c, logged := testClaims(t)
	require.NoError(t, os.Remove(c.dir))
	c.hold(activity.Info{})()
	require.Contains(t, logged.String(), "an activity cannot be claimed")
}
