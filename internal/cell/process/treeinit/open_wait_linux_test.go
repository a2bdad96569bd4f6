package treeinit

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// waitsFor returns a call that waits until late returns an error, and holds descriptors.
func waitsFor(a *answerer, late func() error, held ...int) *waitingCall {
	return &waitingCall{
		call: &call{answerer: a, asked: &notification{}}, ready: -1, held: held, isLate: late, attempt: func() error { return errWaits },
	}
}

// opened returns a descriptor.
func opened(t *testing.T) int {
	t.Helper()
	descriptor, err := syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	require.NoError(t, err)
	return descriptor
}

// TestWaitingCallsHoldAShareOfTheDescriptors checks that a call fails that would wait with more descriptors than the
// share, and that it keeps none of them.
func TestWaitingCallsHoldAShareOfTheDescriptors(t *testing.T) {
	t.Parallel()
	share := maxDescriptors() / heldShare
	a := &answerer{listener: -1, waiting: waitingCalls{running: true, bell: -1, held: share - 2}} // nobody attends
	fits := waitsFor(a, nil, opened(t), opened(t))
	require.ErrorIs(t, a.wait(fits), errWaits)
	require.Equal(t, share, a.waiting.held)

	more, err := syscall.Open(t.TempDir(), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	require.NoError(t, err)
	var before, after syscall.Stat_t
	require.NoError(t, syscall.Fstat(more, &before))
	require.ErrorIs(t, a.wait(waitsFor(a, nil, more)), syscall.ENFILE)
	// Another test may have got the number meanwhile.
	err = syscall.Fstat(more, &after)
	require.True(t, errors.Is(err, syscall.EBADF) || err == nil && after.Ino != before.Ino, "it is still open")
	require.ErrorIs(t, a.wait(waitsFor(a, nil)), errWaits, "one without descriptors")

	fits.release()
	a.waiting.forget(fits)
	require.Equal(t, share-2, a.waiting.held)
	last := waitsFor(a, nil, opened(t))
	require.ErrorIs(t, a.wait(last), errWaits)
	last.release()
}

// TestCallersAreLookedAtInTurn has more calls wait than are looked at in a round. Each caller is looked at as often as
// the others, and a call ends when its caller does not wait any longer.
func TestCallersAreLookedAtInTurn(t *testing.T) {
	t.Parallel()
	const calls = 10 * maxLooks
	a := &answerer{listener: -1, sandbox: &Sandbox{}}
	var looks [calls]atomic.Int32
	var ended atomic.Bool
	for i := range calls {
		late := func() error {
			looks[i].Add(1)
			if ended.Load() {
				return syscall.EINTR
			}
			return nil
		}
		held := []int{}
		if i < maxLooks {
			held = append(held, opened(t))
		}
		require.ErrorIs(t, a.wait(waitsFor(a, late, held...)), errWaits)
	}
	least := func() int32 {
		least := looks[0].Load()
		for i := range calls {
			least = min(least, looks[i].Load())
		}
		return least
	}
	require.Eventually(t, func() bool { return least() >= 3 }, time.Minute, time.Millisecond)
	for i := range calls {
		require.LessOrEqual(t, looks[i].Load(), least()+2, i)
	}
	ended.Store(true)
	require.Eventually(t, func() bool {
		a.waiting.mutex.Lock()
		defer a.waiting.mutex.Unlock()
		return a.waiting.held == 0
	}, time.Minute, time.Millisecond)
}
