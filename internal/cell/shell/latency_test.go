//go:build linux

package shell_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/cell/process"
)

// BenchmarkShell measures a call of one program through the agents' shell as a whole process: start, ticket, door,
// program, end, in a tree whose files are judged and in one whose files are not. It runs the same command in bash, in
// turn.
func BenchmarkShell(b *testing.B) {
	const script = "cat go.mod"
	work := b.TempDir()
	require.NoError(b, os.WriteFile(filepath.Join(work, "go.mod"), []byte("module x\n"), 0o600))
	policy, err := guard.ParsePolicy(deploy.Policy)
	require.NoError(b, err)
	place := guard.Place{Work: []string{work}, Home: work, Temp: work, Path: []string{"/usr/bin", "/bin"}}
	post, err := cell.OpenPost(b.TempDir(), guard.New(policy, guard.Host{}), cell.PostSession{Tier: 1, Place: place}, unlimited{}, func(cell.Entry) {})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, post.Close()) })
	worker := filepath.Join(b.TempDir(), "worker")
	output, err := exec.CommandContext(b.Context(), "go", "build", "-o", worker, "../../../worker").CombinedOutput()
	require.NoError(b, err, string(output))
	environ := []string{"PATH=/usr/bin:/bin", "HOME=" + work, "TMPDIR=" + work}
	for name, value := range post.Environment(worker, worker) {
		environ = append(environ, name+"="+value)
	}
	ours := map[bool][]time.Duration{}
	bash := map[bool][]time.Duration{}
	trees := map[bool]*timedTree{false: newTimedTree(b, work, environ, false), true: newTimedTree(b, work, environ, true)}
	for b.Loop() {
		for judge, tree := range trees {
			require.Empty(b, post.Try(script))
			ours[judge] = append(ours[judge], tree.measure(b, worker, "eval "+quote(script)))
			bash[judge] = append(bash[judge], tree.measure(b, "/bin/bash", "-c", script))
		}
	}
	b.ReportMetric(milliseconds(ours[true]), "shell-ms")
	b.ReportMetric(milliseconds(bash[true]), "bash-ms")
	b.ReportMetric(milliseconds(ours[true])-milliseconds(ours[false]), "shell-more-by-judging-ms")
	b.ReportMetric(milliseconds(bash[true])-milliseconds(bash[false]), "bash-more-by-judging-ms")
	b.ReportMetric(milliseconds(ours[true])-milliseconds(bash[false]), "shell-judged-more-than-bash-ms")
}

// timedTree is a process tree that starts programs and tells how long each has run.
type timedTree struct {
	words   *io.PipeWriter
	answers *bufio.Scanner
}

// newTimedTree starts a tree in a sandbox, in which files are judged or not.
func newTimedTree(b *testing.B, work string, environ []string, judge bool) *timedTree {
	b.Helper()
	const driver = `$| = 1; while (<STDIN>) { chomp; my @words = split /\x01/; my $t = time; my $out = "";
		open(my $p, "-|", @words) or die; while (<$p>) { $out .= $_ } close $p; printf "%.6f %s", time - $t, $out }`
	policy, err := guard.ParsePolicy(deploy.Policy)
	require.NoError(b, err)
	rules := policy.FileRules(1)
	sandbox := &process.Sandbox{Writable: []string{work}}
	if judge {
		sandbox.Opens = &process.Opens{Secret: rules.Secret, Kept: rules.Kept, Clear: rules.Clear}
	}
	input, words := io.Pipe()
	answers, output := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := process.Run(b.Context(), process.Spec{
			Path: "/usr/bin/perl", Args: []string{"-MTime::HiRes=time", "-e", driver}, Dir: work, Env: environ, Sandbox: sandbox,
			Stdin: input, Stdout: output, Containment: process.ModeSubreaper,
		})
		_ = output.Close()
		ended <- err
	}()
	b.Cleanup(func() {
		require.NoError(b, words.Close())
		require.NoError(b, <-ended)
	})
	return &timedTree{words: words, answers: bufio.NewScanner(answers)}
}

// measure runs a program that prints the module's line.
func (t *timedTree) measure(b *testing.B, words ...string) time.Duration {
	b.Helper()
	_, err := io.WriteString(t.words, strings.Join(words, "\x01")+"\n")
	require.NoError(b, err)
	require.True(b, t.answers.Scan())
	seconds, printed, _ := strings.Cut(t.answers.Text(), " ")
	require.Equal(b, "module x", printed)
	took, err := time.ParseDuration(seconds + "s")
	require.NoError(b, err)
	return took
}

// milliseconds returns the median.
func milliseconds(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(took[len(took)/2].Microseconds()) / 1000
}
