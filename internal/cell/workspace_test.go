package cell

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/files"
)

// The names in the workspaces of these tests.
const (
	parent    = ".workspaces"
	givenFile = "given.json"
	askedFile = "asked.json"
)

func exchange(name, content string) Workspace {
	return Workspace{Parent: parent, Name: name, Files: map[string][]byte{givenFile: []byte(content)}}
}

func mustOpenWorkspace(t *testing.T, workDir, name string) *workspace {
	t.Helper()
	w, err := openWorkspace(workDir, exchange(name, name))
	require.NoError(t, err)
	return w
}

// outside creates a directory that no workspace may reach, with a file in it.
func outside(t *testing.T) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, "precious")
	require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	return dir, file
}

func requirePrecious(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "precious", string(content))
	entries, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestWorkspaceGivesFilesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	w := mustOpenWorkspace(t, work, "chain-1")
	for _, dir := range []string{filepath.Join(work, parent), w.path} {
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	}
	content, err := os.ReadFile(filepath.Join(w.path, givenFile))
	require.NoError(t, err)
	require.Equal(t, "chain-1", string(content))
	left, err := w.take(askedFile, 10)
	require.NoError(t, err)
	require.Nil(t, left, "nothing was left")

	require.NoError(t, w.close())
	require.NoDirExists(t, w.path)
	entries, err := os.ReadDir(filepath.Join(work, parent))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, ignoreFile, entries[0].Name())
}

func TestWorkspaceKeepsARepositoryClean(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("git")
	require.NoError(t, err, "the test needs git: install it")
	work := t.TempDir()
	git := func(args ...string) string {
		command := exec.CommandContext(t.Context(), "git", args...)
		command.Dir = work
		output, err := command.CombinedOutput()
		require.NoError(t, err, string(output))
		return string(output)
	}
	git("init")
	w := mustOpenWorkspace(t, work, "chain-1")
	require.Empty(t, git("status", "--porcelain", "--untracked-files=all"))
	require.NoError(t, w.close())
	require.Empty(t, git("status", "--porcelain", "--untracked-files=all"))
}

func TestWorkspacesOfTwoChains(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	first, second := mustOpenWorkspace(t, work, "a"), mustOpenWorkspace(t, work, "b")
	require.NoError(t, os.WriteFile(filepath.Join(first.path, askedFile), []byte("first"), 0o600))
	left, err := second.take(askedFile, 10)
	require.NoError(t, err)
	require.Nil(t, left)
	require.NoError(t, second.close())
	left, err = first.take(askedFile, 10)
	require.NoError(t, err)
	require.Equal(t, "first", string(left))
	require.NoError(t, first.close())
}

func TestWorkspaceTakes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		leave func(t *testing.T, path, precious string)
		want  []byte
		err   error
	}{
		"a file": {
			func(t *testing.T, path, _ string) {
				t.Helper()
				require.NoError(t, os.WriteFile(path, []byte("{}"), 0o600))
			},
			[]byte("{}"), nil,
		},
		"an empty file": {
			func(t *testing.T, path, _ string) { t.Helper(); require.NoError(t, os.WriteFile(path, nil, 0o600)) },
			[]byte{},
			nil,
		},
		"the beginning of a large file": {
			func(t *testing.T, path, _ string) {
				t.Helper()
				require.NoError(t, os.WriteFile(path, make([]byte, 1<<20), 0o600))
			},
			make([]byte, 11), nil,
		},
		"no link": {
			func(t *testing.T, path, precious string) { t.Helper(); require.NoError(t, os.Symlink(precious, path)) },
			nil, files.ErrForeign,
		},
		"no link within": {
			func(t *testing.T, path, _ string) {
				t.Helper()
				require.NoError(t, os.Symlink(givenFile, path))
			},
			nil, files.ErrForeign,
		},
		"no directory": {
			func(t *testing.T, path, precious string) {
				t.Helper()
				require.NoError(t, os.MkdirAll(filepath.Join(path, "sub"), 0o700))
				require.NoError(t, os.Symlink(filepath.Dir(precious), filepath.Join(path, "sub", "link")))
			},
			nil, files.ErrForeign,
		},
		"no pipe": {
			func(t *testing.T, path, _ string) { t.Helper(); require.NoError(t, syscall.Mkfifo(path, 0o600)) },
			nil, files.ErrForeign,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, precious := outside(t)
			w := mustOpenWorkspace(t, t.TempDir(), "chain-1")
			tt.leave(t, filepath.Join(w.path, askedFile), precious)
			left, err := w.take(askedFile, 10)
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, tt.want, left)
			entries, err := os.ReadDir(w.path)
			require.NoError(t, err)
			require.Len(t, entries, 1, "what was taken is gone")
			require.NoError(t, w.close())
			requirePrecious(t, precious)
		})
	}
}

// TestWorkspaceFollowsNoLink plants links and files at the paths of a workspace, as an agent could. No file outside may
// be changed.
func TestWorkspaceFollowsNoLink(t *testing.T) {
	t.Parallel()
	chains, own := parent, filepath.Join(parent, "chain-1")
	for name, plant := range map[string]func(t *testing.T, work, dir string){
		"in place of all": func(t *testing.T, work, dir string) {
			t.Helper()
			require.NoError(t, os.Symlink(dir, filepath.Join(work, chains)))
		},
		"a file in place of all": func(t *testing.T, work, _ string) {
			t.Helper()
			require.NoError(t, os.WriteFile(filepath.Join(work, chains), nil, 0o600))
		},
		"dangling": func(t *testing.T, work, dir string) {
			t.Helper()
			require.NoError(t, os.Symlink(dir+"/no", filepath.Join(work, chains)))
		},
		"to the work's own files": func(t *testing.T, work, _ string) {
			t.Helper()
			require.NoError(t, os.Symlink(".", filepath.Join(work, chains)))
		},
		"in place of one": func(t *testing.T, work, dir string) {
			t.Helper()
			require.NoError(t, os.Mkdir(filepath.Join(work, chains), 0o700))
			require.NoError(t, os.Symlink(dir, filepath.Join(work, own)))
		},
		"below": func(t *testing.T, work, dir string) {
			t.Helper()
			require.NoError(t, os.MkdirAll(filepath.Join(work, own), 0o700))
			require.NoError(t, os.Symlink(dir, filepath.Join(work, own, "sub")))
			require.NoError(t, os.Symlink(filepath.Join(dir, "precious"), filepath.Join(work, own, givenFile)))
		},
		"in place of the ignore file": func(t *testing.T, work, dir string) {
			t.Helper()
			require.NoError(t, os.Mkdir(filepath.Join(work, chains), 0o700))
			require.NoError(t, os.Symlink(filepath.Join(dir, "precious"), filepath.Join(work, chains, ignoreFile)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, precious := outside(t)
			work := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(work, "inside"), nil, 0o600))
			plant(t, work, dir)
			w := mustOpenWorkspace(t, work, "chain-1")
			for _, path := range []string{filepath.Join(work, chains), w.path, filepath.Join(w.path, givenFile), filepath.Join(work, chains, ignoreFile)} {
				info, err := os.Lstat(path)
				require.NoError(t, err)
				require.Zero(t, info.Mode()&os.ModeSymlink, path)
			}
			// Replace the workspace by a link while the agent works.
			require.NoError(t, os.Rename(w.path, w.path+"-moved"))
			require.NoError(t, os.Symlink(dir, w.path))
			left, err := w.take("precious", 10)
			require.NoError(t, err)
			require.Nil(t, left)
			require.NoError(t, w.close())
			requirePrecious(t, precious)
			require.FileExists(t, filepath.Join(work, "inside"))
		})
	}
}

// TestWorkspaceLeavesItsSuccessorAlone checks that a worker that notices the end of its attempt late does not remove
// the workspace of the next attempt.
func TestWorkspaceLeavesItsSuccessorAlone(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	first := mustOpenWorkspace(t, work, "chain-1")
	require.NoError(t, os.WriteFile(filepath.Join(first.path, askedFile), []byte("stale"), 0o600))
	second, err := openWorkspace(work, exchange("chain-1", "of the second"))
	require.NoError(t, err)
	left, err := second.take(askedFile, 10)
	require.NoError(t, err)
	require.Nil(t, left, "what an earlier process left is gone")
	require.NoError(t, first.close())
	content, err := os.ReadFile(filepath.Join(second.path, givenFile))
	require.NoError(t, err)
	require.Equal(t, "of the second", string(content))
	require.NoError(t, second.close())
	require.NoDirExists(t, second.path)
}

func TestWorkspaceInAReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		work := filepath.Join(t.TempDir(), "missing") // root ignores the mode of a directory
		_, err := openWorkspace(work, exchange("chain-1", ""))
		require.ErrorIs(t, err, os.ErrNotExist)
		return
	}
	work := t.TempDir()
	require.NoError(t, os.Chmod(work, 0o500)) //nolint:gosec // a directory needs the x bit
	_, err := openWorkspace(work, exchange("chain-1", ""))
	require.ErrorIs(t, err, os.ErrPermission)
}
