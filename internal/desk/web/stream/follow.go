package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

// Follow reports snapshots of a chain to observer until the chain has ended. operations.Chains.Follow is one.
type Follow func(ctx context.Context, chainID string, observer operations.Observer) (escalation.Chain, error)

// Followers let many viewers follow chains. Each chain has one follower, whatever the number of its viewers.
type Followers struct {
	follow Follow
	// fail answers a request with an error. problem returns an error in the form in which an answer has it.
	fail    func(w http.ResponseWriter, err error)
	problem func(err error) any

	mutex   sync.Mutex
	running map[string]*follower
}

// NewFollowers returns followers that report an error by fail, or by problem if the stream has begun.
func NewFollowers(follow Follow, fail func(http.ResponseWriter, error), problem func(error) any) *Followers {
	return &Followers{follow: follow, fail: fail, problem: problem, running: map[string]*follower{}}
}

// The events of a stream that follows a chain.
const (
	SnapshotEvent = "snapshot" // operations.Snapshot
	NobodyEvent   = "nobody"   // no worker answers; no data
	EndEvent      = "end"      // End
)

// End is the last event: the last snapshot, which is that of the ended chain, or why the chain cannot be followed any
// more.
type End struct {
	Snapshot *operations.Snapshot `json:"snapshot,omitempty"`
	Problem  any                  `json:"problem,omitempty"`
}

// follower follows one chain. Viewers see its latest state: states that come quickly can be left out.
type follower struct {
	viewers int
	stop    context.CancelFunc

	mutex sync.Mutex
	now   state

	// snapshot is the last one; nil before the first. Only the goroutine that follows uses it.
	snapshot *operations.Snapshot
}

// state is the latest event of a follower.
type state struct {
	text []byte
	// number counts the states, from 1.
	number int
	// last reports that no other state follows. If there was no state before it, err is why there was none.
	last bool
	err  error
	// changed is closed when there is a later state.
	changed chan struct{}
}

var _ operations.Observer = (*follower)(nil)

// Saw implements operations.Observer.
func (f *follower) Saw(now operations.Snapshot) {
	f.snapshot = &now
	f.set(SnapshotEvent, now, false, nil)
}

// SawNobody implements operations.Observer.
func (f *follower) SawNobody() { f.set(NobodyEvent, struct{}{}, false, nil) }

func (f *follower) set(event string, data any, last bool, cause error) {
	encoded, err := json.Marshal(data)
	if err != nil {
		return // it came from JSON, and can be written as JSON
	}
	text := []byte("event: " + event + "\ndata: " + string(encoded) + "\n\n")
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !last && bytes.Equal(text, f.now.text) {
		return
	}
	if f.now.number > 0 {
		cause = nil
	}
	before := f.now
	f.now = state{text: text, number: before.number + 1, last: last, err: cause, changed: make(chan struct{})}
	close(before.changed)
}

// latest returns the latest state.
func (f *follower) latest() state {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.now
}

// join returns the follower of a chain, and starts it if there is none.
func (s *Followers) join(ctx context.Context, chainID string) *follower {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	f, found := s.running[chainID]
	if !found {
		following, stop := context.WithCancel(context.WithoutCancel(ctx))
		f = &follower{stop: stop, now: state{changed: make(chan struct{})}}
		s.running[chainID] = f
		go s.run(following, chainID, f)
	}
	f.viewers++
	return f
}

// leave stops the follower of a chain with its last viewer.
func (s *Followers) leave(chainID string, f *follower) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	f.viewers--
	if f.viewers == 0 {
		f.stop()
		s.forget(chainID, f)
	}
}

func (s *Followers) forget(chainID string, f *follower) {
	if s.running[chainID] == f {
		delete(s.running, chainID)
	}
}

func (s *Followers) run(ctx context.Context, chainID string, f *follower) {
	_, err := s.follow(ctx, chainID, f)
	s.mutex.Lock()
	s.forget(chainID, f) // a chain with this ID may be started again
	s.mutex.Unlock()
	end := End{Snapshot: f.snapshot}
	if err != nil {
		end = End{Problem: s.problem(err)}
	}
	f.set(EndEvent, end, true, err)
}

// Handler serves the snapshots of the chain that the path names, until the chain has ended. The caller checks the role.
func (s *Followers) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chainID := r.PathValue("chain_id")
		f := s.join(r.Context(), chainID)
		defer s.leave(chainID, f)
		now := f.latest()
		for now.number == 0 {
			select {
			case <-r.Context().Done():
				return
			case <-now.changed:
			}
			now = f.latest()
		}
		if now.err != nil {
			s.fail(w, now.err)
			return
		}
		serveStates(w, r, f)
	})
}

// serveStates sends the states of a follower, beginning with the latest.
func serveStates(w http.ResponseWriter, r *http.Request, f *follower) {
	out := Begin(w)
	pings := time.NewTicker(ping)
	defer pings.Stop()
	end := time.NewTimer(lifetime)
	defer end.Stop()
	sent := 0
	for {
		now := f.latest()
		if now.number != sent {
			if sent = now.number; !out.Send(now.text) || now.last {
				return
			}
			continue
		}
		select {
		case <-r.Context().Done():
			return
		case <-end.C:
			return
		case <-now.changed:
		case <-pings.C:
			if !out.Send([]byte(": ping\n\n")) {
				return
			}
		}
	}
}
