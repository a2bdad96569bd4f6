package reconcile

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
)

// testLeases returns leases in a temporary directory, and the buffer of their log.
func testLeases(t *testing.T) (l *Leases, logged *bytes.Buffer) {
	t.Helper()
	logged = &bytes.Buffer{}
	l, err := OpenLeases(t.TempDir(), "own", slog.New(slog.NewTextHandler(logged, nil)))
	require.NoError(t, err)
	return l, logged
}

func TestLeasesOfTheLivingAreLeftAlone(t *testing.T) {
	t.Parallel()
	l, _ := testLeases(t)
	lives, err := l.create(lease{WorkflowID: "lives", Token: []byte{1}})
	require.NoError(t, err)
	died, err := l.create(lease{WorkflowID: "died", RunID: "run", ActivityID: "7", Token: []byte{2, 0, 255}})
	require.NoError(t, err)
	require.NoError(t, died.lock.Close(), "as the kernel does when a process dies")

	require.Equal(t, lease{WorkflowID: "died", RunID: "run", ActivityID: "7", Token: []byte{2, 0, 255}}, takeOne(t, l))
	orphaned, err := l.takeOrphaned()
	require.NoError(t, err)
	require.Empty(t, orphaned, "each is taken once")
	require.NoError(t, lives.lock.Close())
	require.Equal(t, "lives", takeOne(t, l).WorkflowID)
}

// takeOne takes the leases of ended processes, checks that there is exactly one, and returns it.
func takeOne(t *testing.T, l *Leases) lease {
	t.Helper()
	orphaned, err := l.takeOrphaned()
	require.NoError(t, err)
	require.Len(t, orphaned, 1)
	return orphaned[0]
}

// TestLeasesOfOtherNamespaces leaves a lease behind in a namespace. A worker of another namespace must not take the
// lease, because only workers of the first one can fail its activity.
func TestLeasesOfOtherNamespaces(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	own, err := OpenLeases(state, "own", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	other, err := OpenLeases(state, "other", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	died, err := own.create(lease{WorkflowID: "died", Token: []byte{1}})
	require.NoError(t, err)
	require.NoError(t, died.lock.Close(), "as the kernel does when a process dies")

	orphaned, err := other.takeOrphaned()
	require.NoError(t, err)
	require.Empty(t, orphaned)
	require.Equal(t, "died", takeOne(t, own).WorkflowID)
	for _, id := range []string{"", "..", "/abs"} {
		_, err := OpenLeases(state, id, slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, "is no file name")
	}
}

func TestLeasesThatWereCutOffAreCleanedUp(t *testing.T) {
	t.Parallel()
	l, _ := testLeases(t)
	for name, content := range map[string]string{"lease-1": "", "lease-2": `{"token":"AQ`} {
		require.NoError(t, os.WriteFile(filepath.Join(l.dir, name), []byte(content), 0o600))
	}
	orphaned, err := l.takeOrphaned()
	require.NoError(t, err)
	require.Empty(t, orphaned)
	left, err := os.ReadDir(l.dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestActivitiesRunWithoutALease(t *testing.T) {
	t.Parallel()
	l, logged := testLeases(t)
	require.NoError(t, os.Remove(l.dir))
	l.hold(activity.Info{})()
	require.Contains(t, logged.String(), "an activity runs without a lease")
}
