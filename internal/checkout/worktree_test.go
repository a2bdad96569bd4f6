package checkout_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/checkout"
	"github.com/claudeops/claudeops/internal/process"
)

// TestTwoSessionsOfOneRepository gives two sessions a worktree and a branch each. The changes of one session are
// invisible in the other worktree and in the shared directory. A later session of the same chain gets the changes of
// the earlier one.
func TestTwoSessionsOfOneRepository(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	one, two := s.enter(s.session("one")), s.enter(s.session("two"))
	for name, place := range map[string]*checkout.Place{"one": one, "two": two} {
		require.Equal(t, filepath.Join(s.root, "worktrees", name), place.Directory)
		require.Empty(t, place.Shared)
		require.True(t, place.Worktree.New)
		require.Equal(t, "claudeops/"+name, place.Worktree.Branch)
		require.Equal(t, place.Worktree.Branch, s.git(place.Directory, "branch", "--show-current"))
		require.Equal(t, s.git(s.work, "rev-parse", "HEAD"), s.git(place.Directory, "rev-parse", "HEAD"))
		require.FileExists(t, filepath.Join(place.Directory, "compose.yaml"))
	}
	s.write("worktrees/one/compose.yaml", "services: {web: {}}\n")
	s.commit(one.Directory, "second")
	s.write("worktrees/one/draft", "x")
	require.NoFileExists(t, filepath.Join(two.Directory, "draft"))
	require.Equal(t, "main", s.git(s.work, "branch", "--show-current"))
	require.Empty(t, s.git(s.work, "status", "--porcelain"))

	require.Equal(t, checkout.Left{Kept: true, Commits: 1, Changed: true}, s.leave(one))
	require.Equal(t, checkout.Left{}, s.leave(two))
	require.NoDirExists(t, two.Directory)
	require.Equal(t, "claudeops/one\nmain", s.git(s.work, "branch", "--format=%(refname:short)"))

	again := s.enter(s.session("one"))
	require.False(t, again.Worktree.New)
	require.FileExists(t, filepath.Join(again.Directory, "draft"))
	require.NoError(t, os.Remove(filepath.Join(again.Directory, "draft")))
	s.git(s.work, "merge", "--quiet", "claudeops/one")
	require.Equal(t, checkout.Left{Kept: true, Commits: 1}, s.leave(again), "who has merged it? An agent could, too")
	require.Equal(t, "claudeops/one\nmain", s.git(s.work, "branch", "--format=%(refname:short)"))
}

// TestWhatIsKept checks that a worktree is not removed if it holds the only copy of anything.
func TestWhatIsKept(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		work func(s *stage, dir string)
		want checkout.Left
	}{
		"nothing":              {func(*stage, string) {}, checkout.Left{}},
		"the supervisor's own": {func(s *stage, _ string) { s.write("worktrees/chain/.claudeops/.gitignore", "*\n") }, checkout.Left{}},
		"a changed file":       {func(s *stage, _ string) { s.write("worktrees/chain/compose.yaml", "") }, checkout.Left{Kept: true, Changed: true}},
		"a new file":           {func(s *stage, _ string) { s.write("worktrees/chain/new", "") }, checkout.Left{Kept: true, Changed: true}},
		"a new file that git does not show": {
			func(s *stage, _ string) {
				s.git(s.work, "config", "status.showUntrackedFiles", "no")
				s.write("worktrees/chain/new", "")
			}, checkout.Left{Kept: true, Changed: true},
		},
		"an ignored file": {func(s *stage, _ string) { s.write("worktrees/chain/x.cache", "") }, checkout.Left{Kept: true, Changed: true}},
		"a staged file": {
			func(s *stage, dir string) { s.git(dir, "rm", "--quiet", "compose.yaml") }, checkout.Left{Kept: true, Changed: true},
		},
		"commits on another branch": {
			func(s *stage, dir string) {
				s.git(dir, "switch", "--quiet", "--create", "fix")
				s.write("worktrees/chain/new", "")
				s.commit(dir, "fix")
			}, checkout.Left{Kept: true, Commits: 1},
		},
		"commits on no branch": {
			func(s *stage, dir string) {
				s.git(dir, "switch", "--quiet", "--detach")
				s.write("worktrees/chain/new", "")
				s.commit(dir, "fix")
			}, checkout.Left{Kept: true, Commits: 1},
		},
		"commits that were left for another branch": {
			func(s *stage, dir string) {
				s.write("worktrees/chain/new", "")
				s.commit(dir, "fix")
				s.git(dir, "switch", "--quiet", "--detach", "main")
			}, checkout.Left{Kept: true, Commits: 1},
		},
		"the branch is gone": {
			func(s *stage, dir string) {
				s.git(dir, "switch", "--quiet", "--detach")
				s.git(dir, "branch", "--quiet", "-D", "claudeops/chain")
			}, checkout.Left{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t).repository()
			place := s.enter(s.session("chain"))
			test.work(s, place.Directory)
			require.Equal(t, test.want, s.leave(place))
			if test.want.Kept {
				require.DirExists(t, place.Directory)
				return
			}
			require.NoDirExists(t, place.Directory)
			require.Equal(t, "main", s.git(s.work, "branch", "--format=%(refname:short)"))
			require.NotContains(t, s.git(s.work, "worktree", "list"), place.Directory)
		})
	}
}

// TestABranchInUseIsLeft checks that the branch of a worktree is not deleted while somebody else has it checked out.
func TestABranchInUseIsLeft(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	place := s.enter(s.session("chain"))
	s.git(place.Directory, "switch", "--quiet", "--detach")
	s.git(s.work, "switch", "--quiet", "claudeops/chain")
	require.Equal(t, checkout.Left{}, s.leave(place))
	require.Equal(t, "claudeops/chain", s.git(s.work, "rev-parse", "--abbrev-ref", "HEAD"))
}

// TestASubdirectoryOfARepository checks that a session works in the same subdirectory of its worktree.
func TestASubdirectoryOfARepository(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	session := s.session("chain")
	session.Directory += "/sub"
	place := s.enter(session)
	require.Equal(t, filepath.Join(s.root, "worktrees/chain/sub"), place.Directory)
	require.FileExists(t, filepath.Join(place.Directory, "config"))
	s.write("worktrees/chain/sub/.claudeops/.gitignore", "*\n")
	require.Equal(t, checkout.Left{}, s.leave(place))
}

// TestAWorktreeThatIsGone checks that a chain continues on its branch after its worktree was removed, with git or
// without it.
func TestAWorktreeThatIsGone(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(s *stage, dir string){
		"with git":    func(s *stage, dir string) { s.git(s.work, "worktree", "remove", dir) },
		"without git": func(s *stage, dir string) { require.NoError(s.t, os.RemoveAll(dir)) },
		"killed while it was made": func(s *stage, dir string) {
			require.NoError(s.t, os.Remove(filepath.Join(dir, "compose.yaml")))
			s.write("work/.git/worktrees/chain/locked", "initializing\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t).repository()
			first := s.enter(s.session("chain"))
			s.write("worktrees/chain/compose.yaml", "services: {web: {}}\n")
			s.commit(first.Directory, "second")
			require.Equal(t, checkout.Left{Kept: true, Commits: 1}, s.leave(first))
			remove(s, first.Directory)
			second := s.enter(s.session("chain"))
			require.True(t, second.Worktree.New)
			content, err := os.ReadFile(filepath.Join(second.Directory, "compose.yaml"))
			require.NoError(t, err)
			require.Equal(t, "services: {web: {}}\n", string(content))
			require.Equal(t, checkout.Left{Kept: true, Commits: 1}, s.leave(second))
		})
	}
}

// TestWhereThereIsNoWorktree checks that a session gets the shared directory, with the reason, if a worktree is not
// possible or not safe.
func TestWhereThereIsNoWorktree(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare func(s *stage)
		why     string
	}{
		"off":               {func(s *stage) { s.repository().off = true }, "worktrees are off"},
		"no git":            {func(s *stage) { s.repository().searchPath = s.root }, "there is no git on the PATH"},
		"no commit":         {func(s *stage) { s.git(s.work, "init", "--quiet") }, "git worktree"},
		"bare":              {func(s *stage) { s.git(s.work, "init", "--quiet", "--bare") }, "is in no git repository"},
		"no repository":     {func(s *stage) { require.NoError(s.t, os.Mkdir(s.work+"/.git", 0o700)) }, "not a git repository"},
		"a worktree itself": {func(s *stage) { s.write("work/.git", "gitdir: /elsewhere\n") }, "is a worktree or a submodule itself"},
		"a filter": {
			func(s *stage) { s.repository().git(s.work, "config", "filter.evil.smudge", "touch x; cat") }, "sets filter.evil.smudge",
		},
		"a monitor": {func(s *stage) { s.repository().git(s.work, "config", "core.fsmonitor", "touch x") }, "sets core.fsmonitor"},
		"a configuration elsewhere": {
			func(s *stage) { s.repository().git(s.work, "config", "include.path", "/elsewhere") }, "sets include.path",
		},
		"a directory elsewhere": {func(s *stage) { s.repository().write("work/.git/commondir", "/elsewhere\n") }, "has its configuration elsewhere"},
		"the place is taken":    {func(s *stage) { s.repository().write("worktrees/chain/file", "x") }, "no such file"},
		"the branch is taken":   {func(s *stage) { s.repository().git(s.work, "branch", "claudeops") }, "claudeops"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			test.prepare(s)
			place := s.enter(s.session("chain"))
			require.Equal(t, s.work, place.Directory)
			require.Nil(t, place.Worktree)
			require.Contains(t, place.Shared, test.why)
			require.Equal(t, checkout.Left{}, s.leave(place))
		})
	}
}

// TestADirectoryThatIsNotCommitted checks that a directory inside of a repository is shared if the repository has no
// files of it. An example is a state directory below a home whose settings are in a repository.
func TestADirectoryThatIsNotCommitted(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	session := s.session("chain")
	session.Directory += "/state/work"
	require.NoError(t, os.MkdirAll(session.Directory, 0o700))
	place := s.enter(session)
	require.Equal(t, session.Directory, place.Directory)
	require.Contains(t, place.Shared, "is not a directory of the repository")
	s.leave(place)
}

// TestAHostileRepository checks that git runs no program that a repository names. The repository has hooks and filters, and
// the agent has put files into the worktree.
func TestAHostileRepository(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	mark := filepath.Join(s.root, "mark")
	program := func(name string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(s.root, name)), 0o700))
		require.NoError(t, process.WriteProgram(filepath.Join(s.root, name), []byte("#!/bin/sh\necho "+name+" >> "+mark+"\ncat\n")))
	}
	program("bin/git-lfs")
	s.searchPath = filepath.Join(s.root, "bin") + ":" + os.Getenv("PATH")
	s.write("work/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs\n*.yaml filter=evil diff=evil\n")
	s.write("work/large.bin", "version https://git-lfs.github.com/spec/v1\n")
	s.write("work/.lfsconfig", "[lfs]\n\turl = https://evil.example\n")
	s.repository()
	for key, value := range map[string]string{
		"clean": "git-lfs clean -- %f", "smudge": "git-lfs smudge -- %f", "process": "git-lfs filter-process", "required": "true",
	} {
		s.git(s.work, "config", "filter.lfs."+key, value)
	}
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change", "pre-commit", "post-commit", "fsmonitor-watchman"} {
		program("work/.git/hooks/" + hook)
	}
	place := s.enter(s.session("clean"))
	require.NotNil(t, place.Worktree, place.Shared)
	require.Equal(t, checkout.Left{}, s.leave(place))

	place = s.enter(s.session("changed"))
	s.write("worktrees/changed/large.bin", "changed")
	require.Equal(t, checkout.Left{Kept: true, Changed: true}, s.leave(place))

	// The agent makes git use another directory, or run a program.
	evil := "[core]\n\tfsmonitor = echo evil >> " + mark + "\n"
	for name, attack := range map[string]func(dir string){
		"gitfile": func(string) {
			s.write("elsewhere/config", evil)
			s.write("worktrees/gitfile/.git", "gitdir: "+filepath.Join(s.root, "elsewhere")+"\n")
		},
		"another": func(string) {
			s.write("worktrees/another/.git", "gitdir: "+filepath.Join(s.work, ".git/worktrees/changed")+"\n")
		},
		"commondir": func(string) {
			s.write("elsewhere/config", evil)
			s.write("work/.git/worktrees/commondir/commondir", filepath.Join(s.root, "elsewhere")+"\n")
		},
		"own": func(string) { s.write("work/.git/worktrees/own/config.worktree", evil) },
	} {
		place := s.enter(s.session(name))
		require.NotNil(t, place.Worktree, place.Shared)
		attack(place.Directory)
		left := s.leave(place)
		require.True(t, left.Kept, name)
		require.NotEmpty(t, left.Problem, name)
		again := s.enter(s.session(name))
		require.Nil(t, again.Worktree, "it is not used again")
		s.leave(again)
	}
	place = s.enter(s.session("configuration"))
	s.git(s.work, "config", "core.fsmonitor", "echo evil >> "+mark)
	left := s.leave(place)
	require.True(t, left.Kept)
	require.Contains(t, left.Problem, "sets core.fsmonitor")

	ran, err := os.ReadFile(mark)
	require.ErrorIs(t, err, os.ErrNotExist, string(ran))
}

// TestPathsOfAWorktree checks the directories for the sandbox. The hooks and the configuration can only be read.
func TestPathsOfAWorktree(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	place := s.enter(s.session("chain"))
	common := filepath.Join(s.work, ".git")
	require.Equal(t, []string{place.Directory, common}, place.Worktree.Readable())
	for _, dir := range place.Worktree.Writable() {
		if strings.HasPrefix(dir, common) {
			require.NotEqual(t, common, dir)
			require.NotContains(t, dir, "hooks")
		}
	}
	require.Contains(t, place.Worktree.Writable(), filepath.Join(common, "worktrees/chain"))
	s.leave(place)
}

// TestWorktreesAtOnce makes and removes worktrees of one repository at the same time. Git alone fails if it finds a worktree that is
// being made.
func TestWorktreesAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	keeper, head := s.keeper(), s.git(s.work, "rev-parse", "HEAD")
	for i := range 8 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			for round := range 6 {
				name := fmt.Sprint("run-", i, "-", round)
				place, err := keeper.Enter(t.Context(), s.session(name), func(string) {})
				require.NoError(t, err)
				require.NotNil(t, place.Worktree, place.Shared)
				_, err = place.Committed(t.Context(), head)
				require.NoError(t, err)
				require.Equal(t, checkout.Left{}, place.Tidy(t.Context(), patience))
				require.NoError(t, place.Release())
				require.Empty(t, s.git(s.work, "branch", "--list", "claudeops/"+name))
			}
		})
	}
}
