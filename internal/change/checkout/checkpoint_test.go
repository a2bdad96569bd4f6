package checkout_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/change/checkout"
)

// otherHost returns a stage with a clone of the shared directory of s.
func (s *stage) otherHost() *stage {
	s.t.Helper()
	other := newStage(s.t)
	s.git(s.root, "clone", "--quiet", s.work, other.work)
	return other
}

// checkpoint returns what a worktree has committed, for another host.
func (s *stage) checkpoint(place *checkout.Place) checkout.Checkpoint {
	s.t.Helper()
	change, err := place.Change(s.t.Context(), checkout.Question{Pack: true}, patience)
	require.NoError(s.t, err)
	return checkout.Checkpoint{Commit: change.Commit, Base: change.Fork, Pack: change.Pack}
}

// at returns a session of the run that begins at a checkpoint.
func (s *stage) at(from checkout.Checkpoint) checkout.Session {
	session := s.session("run")
	session.From = from
	return session
}

// TestCheckpoint carries the commits of a run to another host and back.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	a := newStage(t).repository()
	b := a.otherHost()
	place := a.enter(a.session("run"))
	a.write("worktrees/run/compose.yaml", "services: {web: {}}\n")
	a.commit(place.Worktree.Guarded.Top, "first phase")
	first := a.checkpoint(place)
	require.NotEmpty(t, first.Pack)
	a.leave(place)

	there := b.enter(b.at(first))
	require.FileExists(t, filepath.Join(there.Directory, "compose.yaml"))
	require.Equal(t, first.Commit, b.git(there.Directory, "rev-parse", "HEAD"))
	b.write("worktrees/run/second", "x\n")
	b.commit(there.Worktree.Guarded.Top, "second phase")
	change, err := there.Change(t.Context(), checkout.Question{Base: first.Commit, Pack: true}, patience)
	require.NoError(t, err)
	second := checkout.Checkpoint{Commit: change.Commit, Base: change.Fork, Pack: change.Pack}
	require.Equal(t, first.Commit, b.git(there.Directory, "rev-parse", second.Commit+"~"))
	require.Contains(t, change.List, "second")
	require.NotContains(t, change.List, "compose.yaml", "only the second phase")
	b.leave(there)

	back := a.enter(a.at(second))
	require.Equal(t, second.Commit, a.git(back.Directory, "rev-parse", "HEAD"), "it moves on")
	a.write("worktrees/run/third", "x\n")
	a.commit(back.Worktree.Guarded.Top, "third phase")
	raw := a.git(back.Directory, "rev-parse", "HEAD")
	a.leave(back)
	back = a.enter(a.at(second))
	require.Equal(t, raw, a.git(back.Directory, "rev-parse", "HEAD"), "what was committed after it stays")
	change, err = back.Change(t.Context(), checkout.Question{Base: first.Commit}, patience)
	require.NoError(t, err)
	a.leave(back)
	again := a.at(second)
	again.Interrupted = true // its worker died before it reported
	back = a.enter(again)
	require.Equal(t, change.Commit, a.git(back.Directory, "rev-parse", "HEAD"), "so does the commit of ours that replaced it")
	a.leave(back)
}

// TestCheckpointLeavesNothing moves a worktree whose commits are not in the checkpoint: they stay under another name.
func TestCheckpointLeavesNothing(t *testing.T) {
	t.Parallel()
	a := newStage(t).repository()
	b := a.otherHost()
	place := a.enter(a.session("run"))
	a.write("worktrees/run/a", "x\n")
	a.commit(place.Worktree.Guarded.Top, "died before it was reported")
	lost := a.git(place.Directory, "rev-parse", "HEAD")
	a.leave(place)
	there := b.enter(b.session("run"))
	b.write("worktrees/run/b", "x\n")
	b.commit(there.Worktree.Guarded.Top, "done again elsewhere")
	from := b.checkpoint(there)
	b.leave(there)

	back := a.enter(a.at(from))
	require.Equal(t, from.Commit, a.git(back.Directory, "rev-parse", "HEAD"))
	require.Contains(t, a.git(a.work, "for-each-ref", "refs/claudeops/left"), lost)
	a.leave(back)
}

// phased returns a repository with a worktree whose session has committed a phase, and the checkpoint of that commit.
func phased(t *testing.T) (*stage, *checkout.Place, checkout.Checkpoint) {
	t.Helper()
	s := newStage(t).repository()
	place := s.enter(s.session("run"))
	s.write("worktrees/run/compose.yaml", "services: {web: {}}\n")
	s.commit(place.Worktree.Guarded.Top, "phase")
	from := s.checkpoint(place)
	return s, place, from
}

// TestCheckpointOverUncommittedWork moves a worktree whose agent went back and left edits that contradict the
// checkpoint. The edits stay under another name.
func TestCheckpointOverUncommittedWork(t *testing.T) {
	t.Parallel()
	s, place, from := phased(t)
	top := place.Worktree.Guarded.Top
	s.git(top, "reset", "--quiet", "--soft", "HEAD~")
	s.write("worktrees/run/compose.yaml", "services: {other: {}}\n")
	s.write("worktrees/run/new", "x\n")
	s.git(top, "update-index", "--assume-unchanged", "compose.yaml")
	s.leave(place)

	place = s.enter(s.at(from))
	require.Equal(t, from.Commit, s.git(top, "rev-parse", "HEAD"))
	require.Empty(t, s.git(top, "status", "--porcelain"))
	left := strings.Fields(s.git(s.work, "for-each-ref", "--format=%(refname)", "refs/claudeops/left"))
	require.Len(t, left, 1)
	require.Equal(t, "services: {other: {}}", s.git(s.work, "show", left[0]+":compose.yaml"))
	require.Equal(t, "x", s.git(s.work, "show", left[0]+":new"))
	s.leave(place)
}

// TestCheckpointThatWasReplaced enters a worktree whose agent has amended the commit of the checkpoint, or has
// committed after it. What an interrupted session has done stays, and so does what comes after; a session that must
// begin with the checkpoint itself does.
func TestCheckpointThatWasReplaced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		amends, exact, interrupted, moves bool
	}{
		"amended":                  {amends: true, moves: true},
		"amended, and interrupted": {amends: true, interrupted: true},
		"a commit after it":        {},
		"exactly":                  {exact: true, moves: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, place, from := phased(t)
			s.leave(place)
			place = s.enter(s.at(from))
			top := place.Worktree.Guarded.Top
			s.write("worktrees/run/new", "x\n")
			if c.amends {
				s.git(top, "add", "--all")
				s.git(top, "commit", "--quiet", "--amend", "--message", "amended")
			} else {
				s.commit(top, "more")
			}
			head := s.git(top, "rev-parse", "HEAD")
			s.leave(place)

			session := s.at(from)
			session.Exact, session.Interrupted = c.exact, c.interrupted
			place = s.enter(session)
			want := map[bool]string{true: from.Commit, false: head}[c.moves]
			require.Equal(t, want, s.git(top, "rev-parse", "HEAD"))
			if c.moves {
				require.Equal(t, "x", s.git(s.work, "show", "refs/claudeops/left/run/"+head+":new"))
			}
			s.leave(place)
		})
	}
}

// TestCheckpointOfAnotherHost returns to a worktree whose commit was corrected on another host. It gets the correction,
// also if an interrupted session goes on, because its own commit is older.
func TestCheckpointOfAnotherHost(t *testing.T) {
	t.Parallel()
	for _, interrupted := range []bool{false, true} {
		s, place, from := phased(t)
		top := place.Worktree.Guarded.Top
		s.leave(place)
		place = s.enter(s.at(from))
		s.leave(place)
		place = s.enter(s.at(from))
		require.True(t, place.Worktree.Again)
		require.Empty(t, place.Worktree.Aside)
		s.leave(place)
		tree := s.git(s.work, "rev-parse", from.Base+"^{tree}")
		corrected := s.git(s.work, "commit-tree", "-p", from.Base, "-m", "corrected elsewhere", tree)

		session := s.at(checkout.Checkpoint{Commit: corrected, Base: from.Base})
		session.ID, session.Interrupted = "another", interrupted
		place = s.enter(session)
		require.Equal(t, corrected, s.git(top, "rev-parse", "HEAD"), "interrupted: %v", interrupted)
		require.Equal(t, "refs/claudeops/left/run/"+from.Commit, place.Worktree.Aside)
		require.NotEmpty(t, s.git(s.work, "for-each-ref", place.Worktree.Aside))
		require.False(t, place.Worktree.Again)
		s.leave(place)
	}
}

// TestCheckpointAfterAKilledGit goes back to a checkpoint in a worktree with the locks of a git that was killed, and
// with a directory that git cannot add. What git can add is kept.
func TestCheckpointAfterAKilledGit(t *testing.T) {
	t.Parallel()
	s, place, from := phased(t)
	top, dir := place.Worktree.Guarded.Top, place.Worktree.Guarded.GitDir
	s.git(top, "reset", "--quiet", "--hard", "HEAD~")
	s.write("worktrees/run/new", "x\n")
	s.git(top, "init", "--quiet", "nested") // a repository without a commit
	s.write("worktrees/run/nested/file", "y\n")
	for _, name := range []string{"index.lock", "HEAD.lock"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	s.leave(place)

	place = s.enter(s.at(from))
	require.Equal(t, from.Commit, s.git(top, "rev-parse", "HEAD"))
	require.Equal(t, "?? nested/", s.git(top, "status", "--porcelain"))
	left := strings.Fields(s.git(s.work, "for-each-ref", "--format=%(refname)", "refs/claudeops/left"))
	require.Len(t, left, 1)
	require.Equal(t, "x", s.git(s.work, "show", left[0]+":new"))
	require.NoFileExists(t, filepath.Join(dir, "index.lock"))
	s.leave(place)
}

// TestCheckpointRefused enters hosts that cannot have the commit. None of them works anywhere else.
func TestCheckpointRefused(t *testing.T) {
	t.Parallel()
	a := newStage(t).repository()
	b, c := a.otherHost(), a.otherHost() // before the run has its branch
	place := a.enter(a.session("run"))
	a.write("worktrees/run/a", strings.Repeat("x", 10)+"\n")
	a.commit(place.Worktree.Guarded.Top, "work")
	from := a.checkpoint(place)
	a.leave(place)
	damaged := from
	damaged.Pack = append([]byte{}, from.Pack...)
	damaged.Pack[len(damaged.Pack)/2] ^= 0xff
	bare := from
	bare.Pack = nil
	stranger := newStage(t)
	stranger.git(stranger.work, "init", "--quiet")
	stranger.write("work/x", "x\n")
	stranger.commit(stranger.work, "another repository")
	for name, test := range map[string]struct {
		host *stage
		from checkout.Checkpoint
		want string
	}{
		"not carried":        {b, bare, "was not carried along"},
		"damaged":            {c, damaged, "git index-pack"},
		"another repository": {stranger, from, "lacks the commit"},
		"no repository":      {newStage(t), from, "is in no git repository"},
	} {
		_, err := test.host.keeper().Enter(t.Context(), test.host.at(test.from), func(string) {})
		require.ErrorContains(t, err, test.want, name)
	}
}

// TestDocument reads a plan as the latest commit has it.
func TestDocument(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	s.write("work/sub/plan.md", "# Plan\n")
	s.commit(s.work, "plan")
	s.write("work/sub/plan.md", "# Not committed\n")
	document, err := s.keeper().Document(t.Context(), filepath.Join(s.work, "sub"), "plan.md", 100)
	require.NoError(t, err)
	require.Equal(t, []string{s.git(s.work, "rev-parse", "HEAD"), "sub/plan.md", "# Plan\n"},
		[]string{document.Commit, document.Path, document.Text})
	require.Contains(t, document.Patch, "+# Plan")
	for name, want := range map[string]string{
		"missing.md": "is not in the latest commit", "../compose.yaml": "", "../sub": "no ordinary file", "plan.md": "more than 3 bytes",
	} {
		most := 100
		if name == "plan.md" {
			most = 3
		}
		_, err := s.keeper().Document(t.Context(), filepath.Join(s.work, "sub"), name, most)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want, name)
	}
	s.off = true
	_, err = s.keeper().Document(t.Context(), s.work, "sub/plan.md", 100)
	require.ErrorContains(t, err, "worktrees are off")
}
