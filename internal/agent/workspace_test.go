package agent

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/cell/files"
	"github.com/claudeops/claudeops/internal/escalation"
)

func states(services ...string) []escalation.ServiceState {
	var all []escalation.ServiceState
	for _, service := range services {
		all = append(all, escalation.ServiceState{Service: service, Restarts: escalation.Use{Used: 2}})
	}
	return all
}

func mustOpenWorkspace(t *testing.T, workDir, chainID string, cooldowns ...escalation.ServiceState) *workspace {
	t.Helper()
	w, err := openWorkspace(workDir, chainID, cooldowns)
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

func TestWorkspaceTellsCooldownsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	w := mustOpenWorkspace(t, work, "chain-1", states("web")...)
	for _, dir := range []string{filepath.Join(work, activities.ChainsDir), w.path} {
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	}
	content, err := os.ReadFile(filepath.Join(w.path, activities.CooldownFile))
	require.NoError(t, err)
	handoff, err := json.Marshal(escalation.NewHandoff(1, 2, nil, states("web")).Cooldowns)
	require.NoError(t, err)
	require.JSONEq(t, string(handoff), string(content), "the shape of a handoff's cooldown_state")
	require.Equal(t, activities.LeftFile{}, w.take(activities.HandoffFile, 10), "nothing was left")

	require.NoError(t, w.close())
	require.NoDirExists(t, w.path)
	entries, err := os.ReadDir(filepath.Join(work, activities.ChainsDir))
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

func TestWorkspaceOfAnyChain(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	names := map[string]string{}
	for _, chainID := range []string{
		"", ".", "..", "../..", "/", "/etc/passwd", "a/b", "a-b", "a\\b", "a:b", "A-b", "ä", "ö", "*", "(x)", "a b", "a\nb", "a\x00b", "-rf", "~",
		strings.Repeat("x", 1000), strings.Repeat("x", 1001), "claudeops-2026-03-01T12:00:00Z", "claudeops-2026-03-01T12:00:01Z",
	} {
		name := activities.ChainDirName(chainID)
		require.Regexp(t, `^[A-Za-z0-9_][A-Za-z0-9_-]{0,50}$`, name, "%q", chainID)
		require.Empty(t, names[strings.ToLower(name)], "%q shares its directory with %q", chainID, names[strings.ToLower(name)])
		names[strings.ToLower(name)] = "it: " + chainID
		w := mustOpenWorkspace(t, work, chainID)
		require.Equal(t, filepath.Join(work, activities.ChainsDir), filepath.Dir(w.path))
		require.FileExists(t, filepath.Join(w.path, activities.CooldownFile))
		require.NoError(t, w.close())
	}
}

func TestWorkspacesOfTwoChains(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	first, second := mustOpenWorkspace(t, work, "a/b", states("web")...), mustOpenWorkspace(t, work, "a-b")
	require.NoError(t, os.WriteFile(filepath.Join(first.path, activities.HandoffFile), []byte("first"), 0o600))
	require.Nil(t, second.take(activities.HandoffFile, 10).Content)
	require.NoError(t, second.close())
	require.Equal(t, "first", string(first.take(activities.HandoffFile, 10).Content))
	require.NoError(t, first.close())
}

func TestWorkspaceTakes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		leave func(t *testing.T, path, precious string)
		want  activities.LeftFile
	}{
		"a file": {
			func(t *testing.T, path, _ string) {
				t.Helper()
				require.NoError(t, os.WriteFile(path, []byte("{}"), 0o600))
			},
			activities.LeftFile{Content: []byte("{}")},
		},
		"an empty file": {
			func(t *testing.T, path, _ string) { t.Helper(); require.NoError(t, os.WriteFile(path, nil, 0o600)) },
			activities.LeftFile{Content: []byte{}},
		},
		"the beginning of a large file": {
			func(t *testing.T, path, _ string) {
				t.Helper()
				require.NoError(t, os.WriteFile(path, make([]byte, 1<<20), 0o600))
			},
			activities.LeftFile{Content: make([]byte, 11)},
		},
		"no link": {
			func(t *testing.T, path, precious string) { t.Helper(); require.NoError(t, os.Symlink(precious, path)) },
			activities.LeftFile{Problem: files.ErrForeign.Error()},
		},
		"no link within": {
			func(t *testing.T, path, _ string) {
				t.Helper()
				require.NoError(t, os.Symlink(activities.CooldownFile, path))
			},
			activities.LeftFile{Problem: files.ErrForeign.Error()},
		},
		"no directory": {
			func(t *testing.T, path, precious string) {
				t.Helper()
				require.NoError(t, os.MkdirAll(filepath.Join(path, "sub"), 0o700))
				require.NoError(t, os.Symlink(filepath.Dir(precious), filepath.Join(path, "sub", "link")))
			},
			activities.LeftFile{Problem: files.ErrForeign.Error()},
		},
		"no pipe": {
			func(t *testing.T, path, _ string) { t.Helper(); require.NoError(t, syscall.Mkfifo(path, 0o600)) },
			activities.LeftFile{Problem: files.ErrForeign.Error()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, precious := outside(t)
			w := mustOpenWorkspace(t, t.TempDir(), "chain-1")
			tt.leave(t, filepath.Join(w.path, activities.HandoffFile), precious)
			require.Equal(t, tt.want, w.take(activities.HandoffFile, 10))
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
	chains, own := activities.ChainsDir, filepath.Join(activities.ChainsDir, activities.ChainDirName("chain-1"))
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
			require.NoError(t, os.Symlink(filepath.Join(dir, "precious"), filepath.Join(work, own, activities.CooldownFile)))
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
			w := mustOpenWorkspace(t, work, "chain-1", states("web")...)
			for _, path := range []string{filepath.Join(work, chains), w.path, filepath.Join(w.path, activities.CooldownFile), filepath.Join(work, chains, ignoreFile)} {
				info, err := os.Lstat(path)
				require.NoError(t, err)
				require.Zero(t, info.Mode()&os.ModeSymlink, path)
			}
			// Replace the workspace by a link while the agent works.
			require.NoError(t, os.Rename(w.path, w.path+"-moved"))
			require.NoError(t, os.Symlink(dir, w.path))
			require.Nil(t, w.take("precious", 10).Content)
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
	first := mustOpenWorkspace(t, work, "chain-1", states("web")...)
	require.NoError(t, os.WriteFile(filepath.Join(first.path, activities.HandoffFile), []byte("stale"), 0o600))
	second := mustOpenWorkspace(t, work, "chain-1", states("db")...)
	require.Nil(t, second.take(activities.HandoffFile, 10).Content, "what an earlier process left is gone")
	require.NoError(t, first.close())
	content, err := os.ReadFile(filepath.Join(second.path, activities.CooldownFile))
	require.NoError(t, err)
	require.Contains(t, string(content), `"db"`)
	require.NoError(t, second.close())
	require.NoDirExists(t, second.path)
}

func TestWorkspaceInAReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		work := filepath.Join(t.TempDir(), "missing") // root ignores the mode of a directory
		_, err := openWorkspace(work, "chain-1", nil)
		require.ErrorIs(t, err, os.ErrNotExist)
		return
	}
	work := t.TempDir()
	require.NoError(t, os.Chmod(work, 0o500)) //nolint:gosec // a directory needs the x bit
	_, err := openWorkspace(work, "chain-1", nil)
	require.ErrorIs(t, err, os.ErrPermission)
}
