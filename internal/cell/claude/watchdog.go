package claude

import (
	"context"
	"errors"
	"math"
	"time"
)

// These errors are the causes with which a watchdog cancels the context of a run.
var (
	errWall      = errors.New("the time limit is over")
	errFirstByte = errors.New("no output came")
	errIdle      = errors.New("the output stopped")
	errFlood     = errors.New("the output does not stop")
	errLongLine  = errors.New("a line of the output does not end")
	errLogin     = errors.New("the credentials are refused again and again")
)

// watchdog cancels a context when a run exceeds its limits of time or output, or cannot succeed.
type watchdog struct {
	cancel context.CancelCauseFunc
	idle   time.Duration
	wall   *time.Timer
	// silence is the timer that limits the time until the next output. The first output has a limit of its own.
	silence *time.Timer
	heard   bool
}

// watch returns a context that is cancelled when a limit is exceeded. The cause is one of the errors above.
func watch(ctx context.Context, limits Limits) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watchdog{cancel: cancel, idle: limits.Idle}
	w.wall = w.after(limits.Wall, errWall)
	w.silence = w.after(limits.FirstByte, errFirstByte)
	return ctx, w
}

// alive restarts the timer for output. Call it after each output, and only from the goroutine that reads the output.
func (w *watchdog) alive() {
	if w.heard {
		w.silence.Reset(orForever(w.idle))
		return
	}
	w.heard = true
	w.silence.Stop()
	w.silence = w.after(w.idle, errIdle)
}

// bite ends the run because of its output: the output or a line of it is too long, or says that the run cannot succeed.
// The argument cause is errFlood, errLongLine or errLogin.
func (w *watchdog) bite(cause error) { w.cancel(cause) }

// release stops the timers and cancels the context. Call release when no goroutine reads the output any more, and not
// earlier.
func (w *watchdog) release() {
	w.wall.Stop()
	w.silence.Stop()
	w.cancel(nil)
}

// after starts a timer that cancels the context with cause.
func (w *watchdog) after(limit time.Duration, cause error) *time.Timer {
	return time.AfterFunc(orForever(limit), func() { w.cancel(cause) })
}

// orForever returns limit, or the longest duration if limit is 0.
func orForever(limit time.Duration) time.Duration {
	if limit == 0 {
		return math.MaxInt64
	}
	return limit
}
