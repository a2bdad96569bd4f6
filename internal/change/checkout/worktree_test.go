package checkout_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/change/checkout"
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
		"a changed file that the index hides": {
			func(s *stage, dir string) {
				s.git(dir, "update-index", "--assume-unchanged", "compose.yaml")
				s.write("worktrees/chain/compose.yaml", "changed")
			}, checkout.Left{Kept: true, Changed: true},
		},
		"a changed file that the index skips": {
			func(s *stage, dir string) {
				s.git(dir, "update-index", "--skip-worktree", "sub/config")
				s.write("worktrees/chain/sub/config", "changed")
			}, checkout.Left{Kept: true, Changed: true},
		},
		"a file that only the index has": {
			func(s *stage, dir string) {
				s.write("worktrees/chain/new", "x")
				s.git(dir, "add", "new")
				require.NoError(s.t, os.Remove(filepath.Join(dir, "new")))
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
			if missing := checkout.Missing(t.Context(), s.options(), s.work); name != "the place is taken" {
				require.NotEmpty(t, missing)
			} else {
				require.Empty(t, missing)
			}
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

// TestAHostileRepository checks that git runs no program that a repository names. The repository has hooks and filters,
// and the agent has put files into the worktree.
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

// TestEachSessionFindsNoLocks enters a worktree in which git was killed. No lock is left, and a commit works.
func TestEachSessionFindsNoLocks(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	place := s.enter(s.session("chain"))
	dir := place.Worktree.Guarded.GitDir
	s.write("worktrees/chain/new", "x")
	s.leave(place)
	locks := []string{
		filepath.Join(dir, "index.lock"), filepath.Join(dir, "HEAD.lock"), filepath.Join(dir, "logs", "HEAD.lock"),
		filepath.Join(s.work, ".git/refs/heads/claudeops/chain.lock"),
	}
	for _, lock := range locks {
		require.NoError(t, os.WriteFile(lock, nil, 0o600))
	}
	other := filepath.Join(s.work, ".git", "packed-refs.lock")
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	outside := filepath.Join(s.root, "outside.lock")
	require.NoError(t, os.WriteFile(outside, nil, 0o600))
	require.NoError(t, os.Symlink(s.root, filepath.Join(dir, "link")))
	place = s.enter(s.session("chain"))
	for _, lock := range locks {
		require.NoFileExists(t, lock)
	}
	require.FileExists(t, other, "another session may hold it")
	require.FileExists(t, outside)
	s.commit(place.Directory, "it works")
	s.leave(place)
}

// TestHostileRepositories runs all operations on repositories that name programs in every way that git knows. None of
// them runs, and each operation succeeds or gives an error.
func TestHostileRepositories(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(s *stage, program string){
		"hooks": func(s *stage, program string) {
			for _, hook := range []string{
				"post-checkout", "reference-transaction", "post-index-change", "pre-commit", "post-commit", "commit-msg", "pre-push", "post-merge",
				"post-rewrite", "pre-auto-gc", "fsmonitor-watchman", "update", "post-update", "pre-receive", "push-to-checkout",
			} {
				require.NoError(s.t, process.WriteProgram(filepath.Join(s.work, ".git/hooks", hook), []byte("#!/bin/sh\n"+program+"\n")))
			}
		},
		"filters": func(s *stage, program string) {
			s.write("work/.gitattributes", "* filter=evil diff=evil merge=evil\n")
			s.write("work/.git/info/attributes", "* filter=evil diff=evil merge=evil textconv=evil\n")
			for _, key := range []string{"filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "merge.evil.driver"} {
				s.git(s.work, "config", key, program)
			}
		},
		"textconv": func(s *stage, program string) {
			s.write("work/.gitattributes", "* diff=evil\n")
			s.git(s.work, "config", "diff.evil.textconv", program)
			s.git(s.work, "config", "diff.evil.command", program)
			s.git(s.work, "config", "diff.external", program)
		},
		"attributes without a configuration": func(s *stage, _ string) {
			s.write("work/.gitattributes", "* filter=evil diff=evil merge=evil text=auto eol=crlf ident working-tree-encoding=UTF-16 export-subst\n")
		},
		"programs": func(s *stage, program string) {
			for _, key := range []string{
				"core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.gitProxy", "gpg.program", "credential.helper",
				"sequence.editor", "uploadpack.packObjectsHook", "core.alternateRefsCommand", "alias.status", "interactive.diffFilter",
			} {
				s.git(s.work, "config", key, program)
			}
			s.git(s.work, "config", "commit.gpgsign", "true")
			s.git(s.work, "config", "log.showSignature", "true")
		},
		"a remote that is a program": func(s *stage, program string) { s.git(s.work, "remote", "add", "origin", "ext::sh -c '"+program+"'") },
		"an included configuration": func(s *stage, program string) {
			s.write("evil", "[core]\n\tfsmonitor = "+program+"\n")
			s.git(s.work, "config", "include.path", filepath.Join(s.root, "evil"))
		},
		"submodules": func(s *stage, program string) {
			s.write("work/.gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c '"+program+"'\n\tupdate = !"+program+"\n")
			s.git(s.work, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",x")
			s.write("work/x/.git", "gitdir: "+filepath.Join(s.root, "evil")+"\n")
			s.write("evil/config", "[core]\n\tfsmonitor = "+program+"\n")
			s.write("evil/HEAD", "ref: refs/heads/main\n")
			s.git(s.work, "commit", "--quiet", "--message", "a submodule")
		},
		"alternates": func(s *stage, _ string) {
			s.write("work/.git/objects/info/alternates", filepath.Join(s.root, "elsewhere")+"\n")
		},
		"links": func(s *stage, _ string) {
			require.NoError(s.t, os.Symlink(filepath.Join(s.root, "hidden"), filepath.Join(s.work, "link")))
			require.NoError(s.t, os.Symlink("/etc/passwd", filepath.Join(s.work, "passwd")))
			s.commit(s.work, "links")
		},
		"names": func(s *stage, program string) {
			for _, name := range []string{"a\nb", "`" + filepath.Base(program) + "`", "$(x)", `quo"te`, "-rf", "--exec=x", ":(top)x", "tab\there", "ü"} {
				require.NoError(s.t, os.WriteFile(filepath.Join(s.work, name), []byte("x"), 0o600))
			}
			s.commit(s.work, "names")
		},
		"an unborn head": func(s *stage, _ string) { s.git(s.work, "switch", "--quiet", "--orphan", "empty") },
		"a shallow clone": func(s *stage, _ string) {
			s.write("work/second", "x")
			s.commit(s.work, "second")
			s.git(s.root, "clone", "--quiet", "--depth=1", "file://"+s.work, "shallow")
			require.NoError(s.t, os.RemoveAll(s.work))
			require.NoError(s.t, os.Rename(filepath.Join(s.root, "shallow"), s.work))
		},
		"replaced objects": func(s *stage, _ string) {
			s.write("work/second", "x")
			s.commit(s.work, "second")
			s.git(s.work, "replace", "HEAD", "HEAD~")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t).repository()
			mark := filepath.Join(s.root, "mark")
			program := filepath.Join(s.root, "program")
			require.NoError(t, process.WriteProgram(program, []byte("#!/bin/sh\necho ran >> "+mark+"\ncat\n")))
			prepare(s, program)
			require.NoError(t, os.RemoveAll(mark), "a person's git has run programs, too")

			keeper, ctx := s.keeper(), t.Context()
			_, _ = keeper.Document(ctx, s.work, "compose.yaml", 100)
			_ = checkout.Missing(ctx, s.options(), s.work)
			_, _ = keeper.Origin(ctx, s.work, checkout.Checkpoint{})
			place := s.enter(s.session("chain"))
			if place.Worktree != nil {
				s.write("worktrees/chain/compose.yaml", "changed")
				_ = exec.CommandContext(ctx, "git", "-C", place.Directory, "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgsign=false",
					"-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--all", "--message", "an author's").Run()
				require.NoError(t, os.RemoveAll(mark))
				change, err := place.Change(ctx, checkout.Question{Pack: true}, patience)
				require.NoError(t, err)
				require.NotNil(t, change)
				tree, err := place.Committed(ctx, change.Commit)
				require.NoError(t, err)
				require.NoError(t, place.Restore(ctx, tree, change.Fork, []string{"compose.yaml"}))
				text, err := place.File(ctx, change.Commit, "compose.yaml", 100)
				require.NoError(t, err)
				require.Equal(t, "changed", text)
				_, _ = place.File(ctx, change.Commit, "a\nb", 100)
				_, err = place.Remote(ctx)
				require.NoError(t, err)
				_, err = keeper.Show(ctx, s.work, checkout.Checkpoint{Commit: change.Commit, Base: change.Fork}, t.TempDir())
				require.NoError(t, err)
				from := checkout.Checkpoint{Commit: change.Fork, Base: change.Fork}
				s.leave(place)
				place, err = keeper.Enter(ctx, checkout.Session{ID: "2", Name: "chain", Directory: s.work, From: from, Exact: true}, func(string) {})
				require.NoError(t, err)
			}
			s.leave(place)
			ran, err := os.ReadFile(mark)
			require.ErrorIs(t, err, os.ErrNotExist, string(ran))
		})
	}
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

// TestWorktreesAtOnce makes and removes worktrees of one repository at the same time. Git alone fails if it finds a
// worktree that is being made.
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
