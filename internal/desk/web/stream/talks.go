package stream

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
)

// maxTalks limits the streams of all people. Each asks Temporal about its conversation at an interval.
const maxTalks = 256

// TalkEvent is the event of a stream of a conversation. Its data is an operations.TalkNews.
const TalkEvent = "talk"

// WatchTalk reports what happens in a conversation until ctx ends. operations.Conversations.Watch is one.
type WatchTalk func(ctx context.Context, name string, see func(operations.TalkNews) error) error

// Talks let people follow conversations. Each stream has a watch of its own.
type Talks struct {
	watch WatchTalk
	// fail answers a request with an error.
	fail func(w http.ResponseWriter, err error)

	mutex sync.Mutex
	open  map[string]int // number of streams of each person
	all   int            // number of all streams
}

// NewTalks returns talks that report an error by fail.
func NewTalks(watch WatchTalk, fail func(http.ResponseWriter, error)) *Talks {
	return &Talks{watch: watch, fail: fail, open: map[string]int{}}
}

// Handler serves the stream of the conversation that the path names. The caller checks the role.
func (t *Talks) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		person, _ := access.PersonOf(r.Context())
		name := person.Named(r.PathValue("name"))
		err := person.CheckRead(name)
		if err == nil {
			err = operations.Invalid(escalation.CheckConversationName(name))
		}
		if err != nil {
			t.fail(w, err)
			return
		}
		switch err := t.enter(person.Name); {
		case errors.Is(err, ErrPersonFull):
			w.Header().Set("Retry-After", retryRefusedS)
			access.WriteProblem(w, http.StatusTooManyRequests, err)
			return
		case err != nil:
			w.Header().Set("Retry-After", retryRefusedS)
			access.WriteProblem(w, http.StatusServiceUnavailable, err)
			return
		}
		defer t.leave(person.Name)
		t.serve(w, r, name)
	})
}

func (t *Talks) enter(person string) error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	switch {
	case t.open[person] >= PerPerson:
		return ErrPersonFull
	case t.all >= maxTalks:
		return ErrFull
	}
	t.open[person]++
	t.all++
	return nil
}

func (t *Talks) leave(person string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.open[person]--
	t.all--
	if t.open[person] == 0 {
		delete(t.open, person)
	}
}

// serve sends what happens in a conversation until the viewer leaves, or the lifetime of a stream is over.
func (t *Talks) serve(w http.ResponseWriter, r *http.Request, name string) {
	ctx, stop := context.WithTimeout(r.Context(), lifetime)
	news := make(chan operations.TalkNews)
	ended := make(chan struct{})
	defer func() { // the watch uses the connection and the records, which the server closes after its last request
		stop()
		<-ended
	}()
	go func() {
		defer close(ended)
		_ = t.watch(ctx, name, func(one operations.TalkNews) error {
			select {
			case news <- one:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	out := Begin(w)
	pings := time.NewTicker(ping)
	defer pings.Stop()
	text := []byte("retry: " + retryMS + "\n\n")
	for out.Send(text) {
		select {
		case one := <-news:
			data, err := json.Marshal(one)
			if err != nil {
				return
			}
			text = []byte("event: " + TalkEvent + "\ndata: " + string(data) + "\n\n")
		case <-pings.C:
			text = []byte(": ping\n\n")
		case <-ended:
			return
		}
	}
}
