package files

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// filtered tells the test binary to do its test under a filter of system calls like that of the worker's unit.
const filtered = "AGENTFILES_FILTERED"

// TestWithoutFchmodat2 removes what an agent has left under a filter that does not know the system call fchmodat2, as
// systemd 252 makes it for the worker's unit. The filter stays with a process, so another one has it.
func TestWithoutFchmodat2(t *testing.T) {
	t.Parallel()
	if os.Getenv(filtered) == "" {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWithoutFchmodat2$", "-test.v")
		command.Env = append(os.Environ(), filtered+"=1")
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", output)
		require.Contains(t, string(output), "--- PASS")
		return
	}
	root, dir := openRoot(t)
	require.NoError(t, seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionAllow,
		Syscalls:      []seccomp.SyscallGroup{{Action: seccomp.ActionErrno | seccomp.Action(unix.EPERM), Names: []string{"fchmodat2"}}},
	}}))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "tree/closed/inner"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tree/closed/file"), nil, 0o600))
	require.NoError(t, os.Chmod(filepath.Join(dir, "tree/closed"), 0))
	require.ErrorIs(t, root.Chmod("tree", dirMode), unix.EPERM, "the filter is there")
	require.NoError(t, RemoveAll(root, "tree"))
	require.NoDirExists(t, filepath.Join(dir, "tree"))
}

// TestChmodFollowsNoLink checks that a link keeps its target as it is.
func TestChmodFollowsNoLink(t *testing.T) {
	t.Parallel()
	root, dir := openRoot(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
	require.NoError(t, os.Symlink("file", filepath.Join(dir, "link")))
	require.Error(t, Chmod(root, "link", 0o600))
	require.NoError(t, Chmod(root, "file", 0o640))
	require.NoError(t, Chmod(root, ".", 0o750))
	require.Error(t, Chmod(root, "missing", 0o600))
	for name, want := range map[string]os.FileMode{"file": 0o640, ".": 0o750} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), name)
	}
}
