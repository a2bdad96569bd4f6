package checkout_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/change/checkout"
)

// entered is the result of an Enter in the background.
type entered struct {
	place *checkout.Place
	err   error
}

// enterLater enters a place that another session has. It returns when Enter waits. The result what describes the
// session for which Enter waits.
func (s *stage) enterLater(ctx context.Context, keeper *checkout.Keeper, session checkout.Session) (what string, result <-chan entered) {
	s.t.Helper()
	waits, done := make(chan string, 1), make(chan entered, 1)
	go func() {
		place, err := keeper.Enter(ctx, session, func(what string) { waits <- what })
		done <- entered{place, err}
	}()
	select {
	case what = <-waits:
	case got := <-done:
		require.Fail(s.t, "it does not wait", "%+v", got)
	}
	return what, done
}

// TestOneSessionAtATime lets a second session wait for a directory outside of a repository until the first one has
// released it.
func TestOneSessionAtATime(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	first := s.enter(s.session("first"))
	require.Equal(t, s.work, first.Directory)
	require.Nil(t, first.Worktree)
	require.Contains(t, first.Shared, "is in no git repository")

	what, second := s.enterLater(t.Context(), s.keeper(), s.session("second"))
	require.Equal(t, "session first repairs in "+s.work, what)
	require.Equal(t, checkout.Left{}, s.leave(first))
	got := <-second
	require.NoError(t, got.err)
	require.Empty(t, s.ended, "the first one has left")
	s.leave(got.place)
}

// TestDirectoriesOfARepositoryAreOne lets a session wait for another directory of the same checkout. If both sessions
// worked at once, each could switch the branch of the other.
func TestDirectoriesOfARepositoryAreOne(t *testing.T) {
	t.Parallel()
	s := newStage(t).repository()
	s.off = true
	first := s.enter(s.session("first"))
	below := s.session("second")
	below.Directory += "/sub"
	_, second := s.enterLater(t.Context(), s.keeper(), below)
	s.leave(first)
	got := <-second
	require.NoError(t, got.err)
	require.Equal(t, below.Directory, got.place.Directory)
	s.leave(got.place)
}

// TestAWaitEnds checks the two ways in which a wait ends without success.
func TestAWaitEnds(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	first := s.enter(s.session("first"))
	options := s.options()
	options.Patience = 20 * time.Millisecond
	impatient, err := checkout.New(options)
	require.NoError(t, err)
	_, second := s.enterLater(t.Context(), impatient, s.session("second"))
	var busy *checkout.BusyError
	require.ErrorAs(t, (<-second).err, &busy)
	require.Equal(t, "session first repairs in "+s.work+", and has not finished yet", busy.Error())

	stop := errors.New("the worker stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, third := s.enterLater(ctx, s.keeper(), s.session("third"))
	cancel(stop)
	require.ErrorIs(t, (<-third).err, stop)

	s.leave(first)
	s.leave(s.enter(s.session("fourth")))
}

// TestAKilledProcessFreesItsPlace kills a process that has a place. The next session gets the place, after what the
// session has left running was ended.
func TestAKilledProcessFreesItsPlace(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	process := exec.CommandContext(t.Context(), os.Args[0])
	process.Env = append(os.Environ(), holder+"="+s.root)
	process.Stderr = os.Stderr
	output, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "entered\n", line)

	what, next := s.enterLater(t.Context(), s.keeper(), s.session("next"))
	require.Contains(t, what, "session holder")
	require.NoError(t, process.Process.Kill())
	require.Error(t, process.Wait())
	got := <-next
	require.NoError(t, got.err)
	require.Equal(t, []string{"holder"}, s.ended)
	s.leave(got.place)

	s.leave(s.enter(s.session("again")))
	require.Equal(t, []string{"holder"}, s.ended)
}
