package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// The limits of the requests of one session. Of requests that the API has not begun to answer, the proxy holds maxOpen
// small ones and one large one.
const (
	// maxRequestBytes limits the size of a request's body. The API refuses bodies over 32 MB.
	maxRequestBytes = 33 << 20
	// smallRequest is the size in bytes from which on a request is large: it has pictures or documents.
	smallRequest = 4 << 20
	// largeLimit limits the time in which the rest of a large request arrives. Others wait meanwhile.
	largeLimit = 10 * time.Second
	// maxWaiting limits the large requests that wait for another one, and largePatience the time for which each waits:
	// a caller that has gone is noticed only when its request is read.
	maxWaiting    = 4
	largePatience = 30 * time.Second
)

// requestBody is the body of a request, until the API answers or the request ends.
type requestBody struct {
	mutex   sync.Mutex
	content []byte
	// sent reports that the whole content has been read.
	sent bool
	// release lets the next large request in.
	release func()
}

// receive reads the body of a request. Before it reads more than a small one, it waits until no other large request of
// the session is held.
func (l *Lease) receive(w http.ResponseWriter, r *http.Request) (*requestBody, error) {
	limited := http.MaxBytesReader(w, r.Body, maxRequestBytes)
	var read bytes.Buffer
	body := &requestBody{release: func() {}}
	switch n, err := io.CopyN(&read, limited, smallRequest); {
	case err == io.EOF: //nolint:errorlint // CopyN returns it as it is
		body.content = read.Bytes()
		return body, nil
	case err != nil:
		return nil, err
	case n < smallRequest:
		return nil, io.ErrShortWrite
	}
	if err := l.awaitLarge(r.Context()); err != nil {
		return nil, err
	}
	body.release = sync.OnceFunc(func() { <-l.large })
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Now().Add(largeLimit)) // an error means that the connection is closed already
	err := r.Context().Err()                                   // the end of the session sets another deadline
	if err == nil {
		_, err = read.ReadFrom(limited)
	}
	if err != nil {
		body.release()
		return nil, err
	}
	_ = connection.SetReadDeadline(time.Time{})
	body.content = read.Bytes()
	return body, nil
}

// awaitLarge waits until no other large request of the session is held.
func (l *Lease) awaitLarge(ctx context.Context) error {
	select {
	case l.waiting <- struct{}{}:
		defer func() { <-l.waiting }()
	default:
		return busy()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, largePatience, busy())
	defer cancel()
	select {
	case l.large <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reader returns a reader of the whole body.
func (b *requestBody) reader() io.ReadCloser { return &bodyReader{body: b} }

// answered frees the body if all of it has been sent. An API that answers before still reads the rest.
func (b *requestBody) answered() {
	b.mutex.Lock()
	sent := b.sent
	b.mutex.Unlock()
	if sent {
		b.drop()
	}
}

// drop frees the body. It can be called more than once.
func (b *requestBody) drop() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.content = nil
	b.release()
}

// bodyReader reads a body that can be dropped meanwhile.
type bodyReader struct {
	body *requestBody
	at   int
}

// Read implements io.Reader.
func (r *bodyReader) Read(p []byte) (int, error) {
	r.body.mutex.Lock()
	defer r.body.mutex.Unlock()
	if r.at >= len(r.body.content) {
		return 0, io.EOF
	}
	n := copy(p, r.body.content[r.at:])
	r.at += n
	r.body.sent = r.body.sent || r.at == len(r.body.content)
	return n, nil
}

// Close implements io.Closer.
func (*bodyReader) Close() error { return nil }
