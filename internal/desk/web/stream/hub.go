package stream

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
)

const (
	// interval is the time between two looks for changes.
	interval = time.Second
	// linger is the time for which the hub looks on after the last viewer has left. A page that is reloaded loses
	// nothing.
	linger = 30 * time.Second
	// ringSize is the number of changes that are kept for viewers who come back.
	ringSize = 2_048
	// queueSize is the number of messages that a viewer may be behind. A slower one is dropped.
	queueSize = 256
	// PerPerson limits the streams of one person.
	PerPerson = 32
	// maxStreams limits all streams.
	maxStreams = 2_000
)

// Source reads what changes. *operations.Watch is one.
type Source interface {
	// Next returns what has changed since the previous call; nothing for the first call.
	Next(ctx context.Context, interest operations.Interest) ([]operations.Change, error)
}

// Why a stream is refused.
var (
	ErrPersonFull = errors.New("you have too many open streams: close pages that you do not need")
	ErrFull       = errors.New("the server has too many open streams: try again later")
	ErrClosed     = errors.New("the server stops")
)

// Hub passes changes on to all viewers. Run makes it work.
type Hub struct {
	newSource func() Source
	logger    *slog.Logger
	wake      chan struct{} // holds an element if somebody waits for the first look

	// mutex guards the fields below.
	mutex   sync.Mutex
	closed  bool
	viewers map[*viewer]struct{}
	ring    ring
	// progress holds the latest progress of each chain, for viewers who come later.
	progress map[string]*message
	// wantedAt is the last time at which somebody wanted to know of changes.
	wantedAt time.Time
}

// NewHub returns a hub. It calls newSource whenever it begins to look for changes.
func NewHub(newSource func() Source, logger *slog.Logger) *Hub {
	return &Hub{
		newSource: newSource, logger: logger, wake: make(chan struct{}, 1),
		viewers: map[*viewer]struct{}{}, ring: newRing(), progress: map[string]*message{},
	}
}

// Run looks for changes while somebody wants to know of them. It returns when ctx ends, and closes all streams.
func (h *Hub) Run(ctx context.Context) {
	defer h.close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
			h.look(ctx)
		}
	}
}

// look looks for changes until nobody wants to know of them any more. The changes afterwards are unknown, so what was
// kept is forgotten.
func (h *Hub) look(ctx context.Context) {
	source := h.newSource()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	failed := false
	for h.wanted() {
		changes, err := source.Next(ctx, h.interest())
		if err != nil && ctx.Err() == nil && !failed {
			h.logger.WarnContext(ctx, "changes cannot be read, and are shown later", "error", err)
		}
		failed = err != nil
		for _, change := range changes {
			h.publish(change)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// wanted reports whether somebody wants to know of changes. If not, it forgets those that are kept.
func (h *Hub) wanted() bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	now := time.Now()
	if len(h.viewers) > 0 {
		h.wantedAt = now
	}
	if now.Sub(h.wantedAt) < linger {
		return true
	}
	h.ring, h.progress, h.wantedAt = newRing(), map[string]*message{}, time.Time{}
	return false
}

// interest returns which progress the viewers want to see.
func (h *Hub) interest() operations.Interest {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	var interest operations.Interest
	for viewer := range h.viewers {
		switch {
		case viewer.chain == "":
			interest.All = true
		case !slices.Contains(interest.Chains, viewer.chain):
			interest.Chains = append(interest.Chains, viewer.chain)
		}
	}
	return interest
}

// Position returns the ID of the latest change. A page that contains it can ask for the changes after it. The hub looks
// for changes for a while, as if somebody viewed them.
func (h *Hub) Position() string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.want()
	return h.ring.position()
}

// want makes the hub look for changes.
func (h *Hub) want() {
	if h.wantedAt.IsZero() {
		select {
		case h.wake <- struct{}{}:
		default: // it will look anyway
		}
	}
	h.wantedAt = time.Now()
}

func (h *Hub) publish(change operations.Change) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if change.Kind == operations.ChangeReset {
		h.ring = newRing() // nobody can continue from before
	}
	m, err := newMessage(change)
	if err != nil {
		h.logger.Error("a change cannot be sent", "type", change.Kind, "error", err)
		return
	}
	if change.Kind == operations.ChangeProgress {
		h.progress[change.ChainID] = m
	} else {
		h.ring.add(m)
	}
	if change.Kind == operations.ChangeSession {
		delete(h.progress, change.ChainID) // it is that of the session before
	}
	for viewer := range h.viewers {
		if !viewer.offer(m) {
			h.drop(viewer)
		}
	}
}

// join adds a viewer. The argument after is the ID of the last change that it knows; empty if it knows none.
func (h *Hub) join(person, chain, after string) (*viewer, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if err := h.admit(person); err != nil {
		return nil, err
	}
	h.want()
	v := &viewer{person: person, chain: chain, queue: make(chan *message, queueSize)}
	if after == "" {
		v.begin = "id: " + h.ring.position() + "\n"
	}
	missed, known := h.ring.after(after)
	if !known {
		missed = []*message{h.ring.reset()}
	}
	for _, m := range slices.Concat(missed, slices.Collect(maps.Values(h.progress))) {
		if v.concerns(m) {
			v.missed = append(v.missed, m)
		}
	}
	h.viewers[v] = struct{}{}
	return v, nil
}

func (h *Hub) admit(person string) error {
	own := 0
	for viewer := range h.viewers {
		if viewer.person == person {
			own++
		}
	}
	switch {
	case h.closed:
		return ErrClosed
	case own >= PerPerson:
		return ErrPersonFull
	case len(h.viewers) >= maxStreams:
		return ErrFull
	}
	return nil
}

// leave removes a viewer.
func (h *Hub) leave(v *viewer) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.drop(v)
}

// drop removes a viewer and closes its queue, if it is still there.
func (h *Hub) drop(v *viewer) {
	if _, there := h.viewers[v]; there {
		delete(h.viewers, v)
		close(v.queue)
	}
}

func (h *Hub) close() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.closed = true
	for viewer := range h.viewers {
		h.drop(viewer)
	}
}

// viewer is one stream.
type viewer struct {
	person string
	// chain limits the stream to the changes of a chain; empty for all changes.
	chain string
	// begin is a line with the ID of the latest change when the viewer joined; empty if it knew one, from which it
	// continues.
	begin string
	// missed holds what the viewer gets first.
	missed []*message
	// queue is closed when the viewer was too slow, or the hub closes.
	queue chan *message
}

// concerns reports whether the viewer gets a message.
func (v *viewer) concerns(m *message) bool {
	return v.chain == "" || m.chain == v.chain || m.kind == operations.ChangeReset
}

// offer queues a message, if it concerns the viewer. It returns false if the viewer is too far behind. A progress that
// finds half of the queue taken is left out, because a later one replaces it.
func (v *viewer) offer(m *message) bool {
	if !v.concerns(m) || m.kind == operations.ChangeProgress && len(v.queue) > queueSize/2 {
		return true
	}
	select {
	case v.queue <- m:
		return true
	default:
		return false
	}
}
