package year

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing/synctest"

	"go.temporal.io/sdk/activity"
)

// turns lets the activities of a test environment run one at a time, in an order that its caller draws. The environment
// runs each activity in a goroutine of its own, so that effects of the same simulated time would happen in a random
// order. turns works in the bubble of synctest.Test, where time stands still as long as any goroutine runs.
type turns struct {
	mu      sync.Mutex
	waiting []turn
	wake    chan struct{}
}

// turn is an activity that waits until it may run.
type turn struct {
	workflowID, activityID string
	run                    chan struct{}
}

func newTurns() *turns { return &turns{wake: make(chan struct{}, 1)} }

// take waits until nothing else runs, and until this activity was drawn.
func (t *turns) take(ctx context.Context) {
	info := activity.GetInfo(ctx)
	own := turn{info.WorkflowExecution.ID, info.ActivityID, make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, own)
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default: // give has not yet received the previous one
	}
	<-own.run
}

// give gives one turn after the other, until the returned function is called. The function draw returns a number below
// n.
func (t *turns) give(draw func(n int, what ...any) int) (stop func()) {
	stopped := make(chan struct{})
	go func() {
		for given := 0; ; {
			select {
			case <-stopped:
				return
			case <-t.wake:
			}
			synctest.Wait() // until the workflows have seen the effects of the turn before
			for next := t.next(draw, given); next != nil; next = t.next(draw, given) {
				close(next)
				given++
				synctest.Wait()
			}
		}
	}()
	return func() { close(stopped) }
}

// next removes one of the waiting activities; nil if there is none.
func (t *turns) next(draw func(n int, what ...any) int, given int) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		return nil
	}
	slices.SortFunc(t.waiting, func(a, b turn) int {
		return cmp.Or(cmp.Compare(a.workflowID, b.workflowID), cmp.Compare(a.activityID, b.activityID))
	})
	drawn := draw(len(t.waiting), "turn", given)
	run := t.waiting[drawn].run
	t.waiting = slices.Delete(t.waiting, drawn, drawn+1)
	return run
}
