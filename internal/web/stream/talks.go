package stream

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/operations"
	"github.com/claudeops/claudeops/internal/web/access"
)

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
		err := person.CheckTalk(name)
		if err == nil {
			err = operations.Invalid(escalation.CheckConversationName(name))
		}
		if err != nil {
			t.fail(w, err)
			return
		}
		if !t.enter(person.Name) {
			w.Header().Set("Retry-After", retryRefusedS)
			access.WriteProblem(w, http.StatusTooManyRequests, ErrPersonFull)
			return
		}
		defer t.leave(person.Name)
		t.serve(w, r, name)
	})
}

func (t *Talks) enter(person string) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.open[person] >= PerPerson {
		return false
	}
	t.open[person]++
	return true
}

func (t *Talks) leave(person string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.open[person]--
	if t.open[person] == 0 {
		delete(t.open, person)
	}
}

// serve sends what happens in a conversation until the viewer leaves, or the lifetime of a stream is over.
func (t *Talks) serve(w http.ResponseWriter, r *http.Request, name string) {
	ctx, stop := context.WithTimeout(r.Context(), lifetime)
	defer stop()
	news := make(chan operations.TalkNews)
	ended := make(chan struct{})
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
