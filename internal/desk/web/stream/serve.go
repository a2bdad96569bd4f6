package stream

import (
	"cmp"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/desk/web/access"
)

const (
	// ping is the time after which an idle stream sends a comment, so that proxies keep it open.
	ping = 15 * time.Second
	// writeTimeout limits a write to a viewer. Without it, a viewer who does not read would hold the stream for ever.
	writeTimeout = 10 * time.Second
	// lifetime ends a stream. The viewer comes back and continues, if it still may: so a revoked token ends its
	// streams, too.
	lifetime = 2 * time.Minute
	// retryMS is the time in milliseconds after which a viewer comes back.
	retryMS = "2000"
	// retryRefusedS is the time in seconds after which a viewer who was refused may try again.
	retryRefusedS = "30"
	// maxChainID is the maximum length of a workflow ID.
	maxChainID = 1_000
)

// Handler serves the stream of all changes or, with the query parameter chain, of one chain. A viewer names the last
// change that it knows in the header Last-Event-ID or, because a page cannot set that for its first request, in the
// parameter after. The caller checks the role.
func (h *Hub) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		person, _ := access.PersonOf(r.Context())
		query := r.URL.Query()
		chain := query.Get("chain")
		if len(chain) > maxChainID || !utf8.ValidString(chain) {
			access.WriteProblem(w, http.StatusUnprocessableEntity, errors.New("chain is not the ID of a chain"))
			return
		}
		viewer, err := h.join(person.Name, chain, cmp.Or(r.Header.Get("Last-Event-ID"), query.Get("after")))
		switch {
		case errors.Is(err, ErrPersonFull):
			w.Header().Set("Retry-After", retryRefusedS)
			access.WriteProblem(w, http.StatusTooManyRequests, err)
		case err != nil:
			w.Header().Set("Retry-After", retryRefusedS)
			access.WriteProblem(w, http.StatusServiceUnavailable, err)
		default:
			defer h.leave(viewer)
			serve(w, r, viewer)
		}
	})
}

// serve sends a viewer its messages until it leaves, is too slow, or has been there for the lifetime of a stream.
func serve(w http.ResponseWriter, r *http.Request, v *viewer) {
	out := Begin(w)
	if !out.Send([]byte("retry: " + retryMS + "\n" + v.begin + "\n")) {
		return
	}
	for _, m := range v.missed {
		if !out.Send(m.text) {
			return
		}
	}
	pings := time.NewTicker(ping)
	defer pings.Stop()
	end := time.NewTimer(lifetime)
	defer end.Stop()
	for {
		text := []byte(": ping\n\n")
		select {
		case <-r.Context().Done():
			return
		case <-end.C:
			return
		case m, open := <-v.queue:
			if !open {
				return
			}
			text = m.text
		case <-pings.C:
		}
		if !out.Send(text) {
			return
		}
	}
}

// Begin returns a writer for the events of a response.
func Begin(w http.ResponseWriter) Writer {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // nginx would hold events back
	return Writer{w, http.NewResponseController(w)}
}

// Writer sends events to one viewer.
type Writer struct {
	http.ResponseWriter

	control *http.ResponseController
}

// Send writes text at once. It reports whether the viewer has taken it in time.
func (w Writer) Send(text []byte) bool {
	deadline := w.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if deadline != nil && !errors.Is(deadline, http.ErrNotSupported) {
		return false
	}
	if _, err := w.Write(text); err != nil { //nolint:gosec // an event stream, and no page
		return false
	}
	return w.control.Flush() == nil
}
