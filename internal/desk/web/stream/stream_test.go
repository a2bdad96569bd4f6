package stream

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
)

// tape is a Source that a test fills. It counts the looks.
type tape struct {
	mutex     sync.Mutex
	changes   []operations.Change
	interests []operations.Interest
	begun     int
	err       error
}

var _ Source = (*tape)(nil)

func (s *tape) Next(_ context.Context, interest operations.Interest) ([]operations.Change, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.interests = append(s.interests, interest)
	changes := s.changes
	s.changes = nil
	return changes, s.err
}

func (s *tape) add(changes ...operations.Change) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.changes = append(s.changes, changes...)
}

// looks returns how often the hub has looked since the previous call.
func (s *tape) looks() []operations.Interest {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	looks := s.interests
	s.interests = nil
	return looks
}

// start returns a hub at work on a tape. It must be called in a bubble of synctest.
func start(t *testing.T) (*Hub, *tape) {
	t.Helper()
	source := &tape{}
	hub := NewHub(func() Source { source.begun++; return source }, slog.New(slog.NewTextHandler(t.Output(), nil)))
	done := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() { defer close(done); hub.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return hub, source
}

// stream is a viewer's connection.
type stream struct {
	events chan received
	stop   context.CancelFunc
	done   chan struct{}
}

// received is an event as a viewer reads it.
type received struct {
	id, kind, comment string
	data              Event
}

// view opens a stream for ada.
func view(t *testing.T, hub *Hub, query, lastID string, reads bool) *stream {
	t.Helper()
	return viewAs(t, hub, "ada", query, lastID, reads)
}

// viewAs opens a stream. The writer of the response is a pipe, which a slow viewer does not read.
func viewAs(t *testing.T, hub *Hub, person, query, lastID string, reads bool) *stream {
	t.Helper()
	ctx, stop := context.WithCancel(access.WithPerson(t.Context(), access.Person{Name: person}))
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/events"+query, nil)
	request.Header.Set("Last-Event-ID", lastID)
	s := &stream{events: make(chan received, 10_000), stop: stop, done: make(chan struct{})}
	reader, writer := io.Pipe()
	go func() {
		defer close(s.done)
		defer func() { _ = writer.Close() }()
		hub.Handler().ServeHTTP(&pipeWriter{header: http.Header{}, PipeWriter: writer}, request)
	}()
	if reads {
		go s.read(reader)
	}
	t.Cleanup(func() {
		stop()
		_ = reader.Close()
		<-s.done
	})
	return s
}

type pipeWriter struct {
	*io.PipeWriter

	header http.Header
}

func (w *pipeWriter) Header() http.Header { return w.header }
func (*pipeWriter) WriteHeader(int)       {}
func (*pipeWriter) Flush()                {}

func (s *stream) read(r io.Reader) {
	defer close(s.events)
	var now received
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			now.id = value
		case "event":
			now.kind = value
		case "":
			if value != "" {
				now.comment = value
				continue
			}
			s.events <- now
			now = received{}
		case "data":
			if err := json.Unmarshal([]byte(value), &now.data); err != nil {
				now.comment = err.Error()
			}
		}
	}
}

// all returns what has arrived.
func (s *stream) all() (events []received) {
	synctest.Wait()
	for {
		select {
		case event, open := <-s.events:
			if !open {
				return events
			}
			events = append(events, event)
		default:
			return events
		}
	}
}

func kinds(events []received) (kinds []string) {
	for _, event := range events {
		kinds = append(kinds, event.kind+event.comment)
	}
	return kinds
}

func change(kind operations.ChangeKind, chain string) operations.Change {
	return operations.Change{Kind: kind, ChainID: chain, At: time.Now()}
}

func TestManyViewersCostOneLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub, source := start(t)
		time.Sleep(time.Hour)
		require.Empty(t, source.looks(), "nobody looks, so nothing is read")
		var viewers []*stream
		for i := range 200 {
			viewers = append(viewers, viewAs(t, hub, fmt.Sprint("person ", i/20), "?chain=one", "", true))
		}
		synctest.Wait()
		require.Len(t, source.looks(), 1)
		source.add(change(operations.ChangeCall, "one"))
		time.Sleep(10*time.Second + time.Millisecond)
		looks := source.looks()
		require.Len(t, looks, 10)
		require.Equal(t, operations.Interest{Chains: []string{"one"}}, looks[9])
		for _, viewer := range viewers {
			require.Equal(t, []string{"", "call"}, kinds(viewer.all()))
			viewer.stop()
		}
		time.Sleep(linger + 2*time.Second)
		source.looks()
		time.Sleep(time.Hour)
		require.Empty(t, source.looks(), "everybody has gone")
		require.Equal(t, 1, source.begun)
	})
}

func TestResume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub, source := start(t)
		first := view(t, hub, "", "", true)
		begin := first.all()
		require.Len(t, begin, 1)
		require.NotEmpty(t, begin[0].id, "a viewer who leaves before the first change can come back, too")
		source.add(change(operations.ChangeChain, "one"), change(operations.ChangeProgress, "one"), change(operations.ChangeGate, "two"))
		time.Sleep(interval + time.Millisecond)
		events := first.all()
		require.Equal(t, []string{"chain", "progress", "gate"}, kinds(events))
		require.Empty(t, events[1].id, "progress has no ID: it must not replace the ID of the latest change")
		first.stop()
		source.add(change(operations.ChangeIncident, ""), change(operations.ChangeCall, "one"))
		time.Sleep(interval)

		require.Equal(t, []string{"", "gate", "incident", "call", "progress"}, kinds(view(t, hub, "", events[0].id, true).all()))
		require.Equal(t, []string{"", "chain", "call", "progress"}, kinds(view(t, hub, "?chain=one", begin[0].id, true).all()))
		require.Equal(t, []string{"", "call", "progress"}, kinds(view(t, hub, "?chain=one&after="+events[2].id, "", true).all()))
		for _, id := range []string{"elsewhere-1", "x", hub.ring.name + "-99", hub.ring.name + "--1", hub.ring.name + "-"} {
			got := view(t, hub, "", id, true).all()
			require.Equal(t, []string{"", "reset", "progress"}, kinds(got), id)
			require.Equal(t, hub.ring.position(), got[1].id)
		}
	})
}

func TestForgottenChangesAreReset(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub, source := start(t)
		viewer := view(t, hub, "", "", true)
		begin := viewer.all()[0].id
		for range 20 { // in parts, so that the viewer keeps up
			for range ringSize / 16 {
				source.add(change(operations.ChangeCall, "one"))
			}
			time.Sleep(interval)
			synctest.Wait()
		}
		events := slices.DeleteFunc(viewer.all(), func(event received) bool { return event.comment != "" })
		require.Len(t, events, 20*ringSize/16)
		require.Equal(t, []string{"", "reset"}, kinds(view(t, hub, "", begin, true).all()), "it has fallen out of the ring")
		oldest := events[len(events)-ringSize-1].id
		require.Len(t, view(t, hub, "", oldest, true).all(), 1+ringSize, "the oldest from which a viewer can continue")

		viewer.stop()
		time.Sleep(time.Hour)
		last := events[len(events)-1].id
		require.Equal(t, []string{"", "reset"}, kinds(view(t, hub, "", last, true).all()), "nobody has looked meanwhile")
	})
}

// TestSourceResets checks that everybody is told if the source may have missed changes.
func TestSourceResets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub, source := start(t)
		viewer := view(t, hub, "?chain=one", "", true)
		source.add(change(operations.ChangeCall, "one"), change(operations.ChangeReset, ""))
		time.Sleep(2 * interval)
		events := viewer.all()
		require.Equal(t, []string{"", "call", "reset"}, kinds(events))
		require.Equal(t, []string{"", "reset"}, kinds(view(t, hub, "", events[1].id, true).all()))

		source.err = errors.New("the database is away")
		source.add(change(operations.ChangeCall, "one"))
		time.Sleep(2 * interval)
		require.Equal(t, []string{"call"}, kinds(viewer.all()), "an error ends no stream")
	})
}

func TestSlowViewerIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub, source := start(t)
		slow, quick := view(t, hub, "", "", false), view(t, hub, "", "", true)
		for range 3 {
			for range queueSize / 2 {
				source.add(change(operations.ChangeCall, "one"), change(operations.ChangeProgress, "one"))
			}
			time.Sleep(interval)
			synctest.Wait()
		}
		hub.mutex.Lock()
		require.Len(t, hub.viewers, 1)
		hub.mutex.Unlock()
		require.NotEmpty(t, quick.all())
		slow.stop()
	})
}

func TestStreamsAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub, _ := start(t)
		for range PerPerson {
			view(t, hub, "", "", true)
		}
		synctest.Wait()
		ask := func(person, query string) *httptest.ResponseRecorder {
			request := httptest.NewRequestWithContext(access.WithPerson(t.Context(), access.Person{Name: person}), http.MethodGet, "/"+query, nil)
			answer := httptest.NewRecorder()
			hub.Handler().ServeHTTP(answer, request)
			return answer
		}
		refused := ask("ada", "")
		require.Equal(t, http.StatusTooManyRequests, refused.Code)
		require.Equal(t, "application/problem+json", refused.Header().Get("Content-Type"))
		require.Contains(t, refused.Body.String(), ErrPersonFull.Error())
		require.Equal(t, http.StatusUnprocessableEntity, ask("bob", "?chain=%ff").Code)
		require.Equal(t, http.StatusUnprocessableEntity, ask("bob", "?chain="+strings.Repeat("x", 1_001)).Code)
		hub.close()
		require.Equal(t, http.StatusServiceUnavailable, ask("bob", "").Code)
	})
}

func TestPingsAndEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub, _ := start(t)
		viewer := view(t, hub, "", "", true)
		time.Sleep(ping + time.Millisecond)
		require.Equal(t, []string{"", "ping"}, kinds(viewer.all()))
		time.Sleep(lifetime)
		<-viewer.done
		hub.mutex.Lock()
		require.Empty(t, hub.viewers, "whoever comes back is checked again")
		hub.mutex.Unlock()
	})
}

// TestHostileText checks that no text of an agent becomes an event of its own.
func TestHostileText(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub, source := start(t)
		viewer := view(t, hub, "", "", true)
		hostile := operations.EventNews{Message: "a\n\nevent: reset\ndata: {}\r\n\r\n\u2028\u2029<script>"}
		source.add(operations.Change{Kind: operations.ChangeChain, ChainID: "x\nevent: gate", Data: hostile})
		time.Sleep(2 * interval)
		events := viewer.all()
		require.Equal(t, []string{"", "chain"}, kinds(events))
		require.Equal(t, hostile.Message, events[1].data.Data.(map[string]any)["message"])
	})
}

// TestPositionKeepsWatch checks that a page that was rendered with a position misses nothing until its stream is open.
func TestPositionKeepsWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub, source := start(t)
		position := hub.Position()
		time.Sleep(interval)
		source.add(change(operations.ChangeChain, "one"))
		time.Sleep(interval)
		require.Equal(t, []string{"", "chain"}, kinds(view(t, hub, "?after="+position, "", true).all()))
	})
}
