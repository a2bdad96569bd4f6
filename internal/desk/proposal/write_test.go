package proposal_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/proposal"
)

// TestWriteFails writes where the second file cannot be written. The first has its new content, and the second its old
// one.
func TestWriteFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	files := proposal.Files{
		Env: filepath.Join(dir, "claudeops.env"), Services: filepath.Join(dir, "services.yaml"), Policy: filepath.Join(dir, "file", "policy.yaml"),
	}
	changes, err := proposal.Plan(files, answers(proposal.Grants{}))
	require.ErrorContains(t, err, "read what is there")
	require.Empty(t, changes)

	files.Policy = filepath.Join(dir, "policies", "policy.yaml")
	changes = plan(t, files, answers(proposal.Grants{Sudo: true}))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "policies"), nil, 0o600)) // in the way since
	err = proposal.Write(changes)
	var failed *proposal.WriteError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, files.Policy, failed.Path)
	require.Equal(t, []string{files.Services}, failed.Written)
	require.ErrorContains(t, err, "policy.yaml is as it was, because it cannot be written: ")
	require.ErrorContains(t, err, "; written before that: "+files.Services)
	require.NoFileExists(t, files.Env)
}

// TestWriteAfterAnotherHand writes a file that somebody has changed meanwhile.
func TestWriteAfterAnotherHand(t *testing.T) {
	t.Parallel()
	files := filesIn(t.TempDir())
	changes := plan(t, files, answers(proposal.Grants{}))
	require.NoError(t, os.WriteFile(files.Env, []byte("MINE=1\n"), 0o600))
	require.ErrorContains(t, proposal.Write(changes), "claudeops.env is as it was, because it cannot be written: it has changed since it was shown")
	require.Equal(t, "MINE=1\n", contentOf(t, files.Env))

	require.NoError(t, os.Chmod(files.Env, 0o604)) //nolint:gosec // others can read it
	require.NoError(t, proposal.Write(plan(t, files, answers(proposal.Grants{}))))
	info, err := os.Stat(files.Env)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm(), "it has a secret now")
}

// helper is the variable that makes the test binary a process of its own, which the tests limit and kill.
const helper = "PROPOSAL_TEST_HELPER"

// TestMain runs the tests or, in a process of the helper, writes files.
func TestMain(m *testing.M) {
	if dir := os.Getenv(helper); dir != "" {
		fmt.Println(writeForEver(dir))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// writeForEver writes files in turn until it fails. In a directory called full, only 200 bytes of a file can be
// written.
func writeForEver(dir string) error {
	files := filesIn(filepath.Join(dir, "settings"))
	if filepath.Base(dir) == "full" {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 200, Max: 200}); err != nil {
			return err
		}
	}
	for i := 0; ; i++ {
		a := answers(proposal.Grants{Sudo: i%2 == 0})
		a.Environment, a.Services = strings.Repeat([]string{"a", "b"}[i%2], 50_000), nil
		changes, err := proposal.Plan(files, a)
		if err == nil {
			err = proposal.Write(changes)
		}
		if err != nil {
			return err
		}
	}
}

func startHelper(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), helper+"="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

// TestWriteOnAFullDisk writes where only the beginning of a file fits. Nothing of it is left.
func TestWriteOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "full")
	printed, err := startHelper(t, dir).Output()
	require.NoError(t, err)
	require.Contains(t, string(printed), "file too large; no file was changed")
	entries, err := os.ReadDir(filepath.Join(dir, "settings"))
	require.NoError(t, err)
	require.Empty(t, entries)
}

// TestWriteKilled kills the process while it writes. Each file is whole.
func TestWriteKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := filesIn(filepath.Join(dir, "settings"))
	for range 10 {
		cmd := startHelper(t, dir)
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool {
			_, err := os.Stat(files.Env)
			return err == nil
		}, time.Minute, time.Millisecond)
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())
		env := contentOf(t, files.Env)
		require.NotEqual(t, strings.Count(env, "a") > 50_000, strings.Count(env, "b") > 50_000, "a mixture")
		require.True(t, strings.HasSuffix(env, "\n"))
		require.True(t, strings.HasSuffix(contentOf(t, files.Policy), "\n"))
	}
}
