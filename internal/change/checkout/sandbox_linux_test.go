package checkout_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/change/checkout"
)

// needSandbox skips a test where the kernel has no sandbox.
func needSandbox(t *testing.T) {
	t.Helper()
	found, err := process.ProbeSandbox(t.Context(), process.ModeAuto, &process.Sandbox{}, nil)
	require.NoError(t, err)
	if found.ABI == 0 {
		t.Skip("needs Landlock")
	}
}

// TestGitFollowsNoLinkOfAnAgent lets an agent replace what git writes by links to files that the agent itself cannot
// write.
func TestGitFollowsNoLinkOfAnAgent(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	for name, link := range map[string]struct{ file, target string }{
		"log of the worktree": {".git/worktrees/run/logs/HEAD", ".git/hooks/pre-commit"},
		"index":               {".git/worktrees/run/index", ".git/info/attributes"},
		"names":               {".git/refs/claudeops", "../hidden"},
		"objects":             {".git/objects/pack", "../hidden"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t).repository()
			s.write("hidden/x", "")
			s.write("work/.git/hooks/pre-commit", "original\n")
			s.write("work/.git/info/attributes", "original\n")
			other := s.otherHost()
			there := other.enter(other.session("run"))
			other.write("worktrees/run/a", "x\n")
			other.commit(there.Worktree.Guarded.Top, "elsewhere")
			from := other.checkpoint(there)
			other.leave(there)
			place := s.enter(s.session("run"))
			s.write("worktrees/run/b", "x\n")
			s.commit(place.Worktree.Guarded.Top, "here")
			s.leave(place)
			file := filepath.Join(s.work, link.file)
			require.NoError(t, os.RemoveAll(file))
			require.NoError(t, os.Symlink(filepath.Join(s.work, link.target), file))

			_, err := s.keeper().Enter(t.Context(), s.at(from), func(string) {})
			require.ErrorContains(t, err, "git ", "git was refused")
			for _, file := range []string{".git/hooks/pre-commit", ".git/info/attributes"} {
				content, err := os.ReadFile(filepath.Join(s.work, file))
				require.NoError(t, err)
				require.Equal(t, "original\n", string(content))
			}
			entries, err := os.ReadDir(filepath.Join(s.root, "hidden"))
			require.NoError(t, err)
			require.Len(t, entries, 1)
		})
	}
}

// TestGitReadsNoOtherRepository lets an agent borrow the objects of a repository that is hidden from it.
func TestGitReadsNoOtherRepository(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	s := newStage(t).repository()
	s.write("hidden/secret", "secret\n")
	hidden := filepath.Join(s.root, "hidden")
	s.git(hidden, "init", "--quiet")
	s.commit(hidden, "secrets")
	place := s.enter(s.session("chain"))
	s.write("work/.git/objects/info/alternates", filepath.Join(hidden, ".git", "objects")+"\n")
	s.git(place.Worktree.Guarded.Top, "merge", "--quiet", "--allow-unrelated-histories", "-m", "borrowed",
		s.git(hidden, "rev-parse", "HEAD"))
	_, err := place.Change(t.Context(), checkout.Question{Pack: true}, patience)
	require.ErrorContains(t, err, "borrows objects from elsewhere")
	s.leave(place)
}

// TestGitRunsNoFilterOfAnAgent lets an agent make a repository inside of its worktree whose configuration names a
// program.
func TestGitRunsNoFilterOfAnAgent(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	s := newStage(t).repository()
	place := s.enter(s.session("run"))
	top := place.Worktree.Guarded.Top
	s.write("worktrees/run/a", "x\n")
	s.commit(top, "phase")
	from := s.checkpoint(place)
	ran := filepath.Join(s.work, ".git", "worktrees", "run", "ran") // where git may write
	sub := filepath.Join(top, "sub2")
	s.git(top, "init", "--quiet", sub)
	s.write("worktrees/run/sub2/file", "x\n")
	s.write("worktrees/run/sub2/.gitattributes", "file filter=evil\n")
	s.commit(sub, "inside")
	s.git(top, "reset", "--quiet", "--hard", "HEAD~")
	s.git(top, "add", "sub2")
	s.git(top, "commit", "--quiet", "-m", "a submodule")
	s.git(sub, "config", "filter.evil.clean", "sh -c 'touch "+ran+"; cat'")
	s.write("worktrees/run/sub2/file", "y\n") // of the same size, so that git must read it
	s.leave(place)
	require.NoFileExists(t, ran)

	place = s.enter(s.at(from))
	require.Equal(t, from.Commit, s.git(top, "rev-parse", "HEAD"))
	require.NoFileExists(t, ran)
	s.leave(place)
}
