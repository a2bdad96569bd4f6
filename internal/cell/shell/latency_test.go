//go:build linux

package shell_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/cell/hook"
)

// BenchmarkShell measures a call of one program through the agents' shell as a whole process: start, ticket, door,
// program, end. It runs the same command in bash, in turn.
func BenchmarkShell(b *testing.B) {
	const script = "cat go.mod"
	work := b.TempDir()
	require.NoError(b, os.WriteFile(filepath.Join(work, "go.mod"), []byte("module x\n"), 0o600))
	policy, err := guard.ParsePolicy(deploy.Policy)
	require.NoError(b, err)
	place := guard.Place{Work: []string{work}, Home: work, Temp: work, Path: []string{"/usr/bin", "/bin"}}
	post, err := hook.Open(b.TempDir(), guard.New(policy, guard.Host{}), hook.Session{Tier: 1, Place: place}, unlimited{}, func(hook.Entry) {})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, post.Close()) })
	worker := filepath.Join(b.TempDir(), "worker")
	output, err := exec.CommandContext(b.Context(), "go", "build", "-o", worker, "../../../worker").CombinedOutput()
	require.NoError(b, err, string(output))
	environ := []string{"PATH=/usr/bin:/bin", "HOME=" + work, "TMPDIR=" + work}
	for name, value := range post.Environment(worker, worker) {
		environ = append(environ, name+"="+value)
	}
	measure := func(words ...string) time.Duration {
		command := exec.CommandContext(b.Context(), words[0], words[1:]...)
		command.Env, command.Dir = environ, work
		began := time.Now()
		output, err := command.CombinedOutput()
		took := time.Since(began)
		require.NoError(b, err, string(output))
		require.Equal(b, "module x\n", string(output))
		return took
	}
	var ours, bash []time.Duration
	for b.Loop() {
		require.Empty(b, post.Try(script))
		ours = append(ours, measure(worker, "eval "+quote(script)))
		bash = append(bash, measure("bash", "-c", script))
	}
	b.ReportMetric(milliseconds(ours), "shell-median-ms")
	b.ReportMetric(milliseconds(bash), "bash-median-ms")
	b.ReportMetric(milliseconds(ours)-milliseconds(bash), "more-ms")
}

// milliseconds returns the median.
func milliseconds(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(took[len(took)/2].Microseconds()) / 1000
}
