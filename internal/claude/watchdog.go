package claude

import (
	"context"
	"errors"
	"math"
	"time"
)

// The causes for which a watchdog ends a run.
var (
	errWall      = errors.New("the time limit is over")
	errFirstByte = errors.New("no output came")
	errIdle      = errors.New("the output stopped")
	errFlood     = errors.New("the output does not stop")
	errLongLine  = errors.New("a line of the output does not end")
)

// watchdog ends a context when a run exceeds its limits, in time and in output.
type watchdog struct {
	cancel context.CancelCauseFunc
	idle   time.Duration
	wall   *time.Timer
	// silence waits for the first byte, and from then on for the next.
	silence *time.Timer
	heard   bool
}

// watch returns a context that ends with the first limit that is exceeded, its cause one of
// the errors above.
func watch(ctx context.Context, limits Limits) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watchdog{cancel: cancel, idle: limits.Idle}
	w.wall = w.after(limits.Wall, errWall)
	w.silence = w.after(limits.FirstByte, errFirstByte)
	return ctx, w
}

// alive notes that there was output. It is called by the one goroutine that reads it.
func (w *watchdog) alive() {
	if w.heard {
		w.silence.Reset(orForever(w.idle))
		return
	}
	w.heard = true
	w.silence.Stop()
	w.silence = w.after(w.idle, errIdle)
}

// drown ends the run because of its output.
func (w *watchdog) drown(cause error) { w.cancel(cause) }

// release ends the watch, and its context, when nothing reads any more.
func (w *watchdog) release() {
	w.wall.Stop()
	w.silence.Stop()
	w.cancel(nil)
}

// after sets a timer that ends the context with cause.
func (w *watchdog) after(limit time.Duration, cause error) *time.Timer {
	return time.AfterFunc(orForever(limit), func() { w.cancel(cause) })
}

// orForever returns limit, or the longest there is when limit does not apply.
func orForever(limit time.Duration) time.Duration {
	if limit == 0 {
		return math.MaxInt64
	}
	return limit
}
