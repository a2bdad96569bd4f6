package cell

import (
	"bufio"
	"context"
	"errors"
	"net"
	"time"
)

// The limits of the questions of one session. Of questions that are not complete, the worker holds maxConnections small
// ones and one large one.
const (
	// maxQuestion limits a question, in bytes. It can contain a whole file that the agent writes.
	maxQuestion = 16 << 20
	// smallQuestion is the size in bytes from which on a question is large.
	smallQuestion = 64 << 10
	// maxSilence limits the time between two questions on a connection. A shell that waits for a program asks again
	// later.
	maxSilence = 24 * time.Hour
	// largeLimit limits the time in which the rest of a large question arrives. Others wait meanwhile.
	largeLimit = 10 * time.Second
)

// questions reads the questions of one connection. Each is a line.
type questions struct {
	connection net.Conn
	buffered   *bufio.Reader
	// large is shared by the connections of a session. A connection with a large question holds it.
	large chan struct{}
	holds bool
}

// next returns the text of the next question.
func (q *questions) next(ctx context.Context) (text []byte, err error) {
	if err := q.connection.SetReadDeadline(time.Now().Add(maxSilence)); err != nil {
		return nil, err
	}
	for {
		part, err := q.buffered.ReadSlice('\n')
		if len(text)+len(part) > maxQuestion {
			return nil, errors.New("the question is too long")
		}
		text = append(text, part...)
		switch {
		case err == nil:
			return text, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(text) > smallQuestion && !q.holds:
			if err := q.hold(ctx); err != nil {
				return nil, err
			}
		}
	}
}

// hold waits until no other connection has a large question.
func (q *questions) hold(ctx context.Context) error {
	select {
	case q.large <- struct{}{}:
		q.holds = true
		return q.connection.SetReadDeadline(time.Now().Add(largeLimit))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// done is called when a question is answered, or the connection has failed.
func (q *questions) done() {
	if q.holds {
		<-q.large
		q.holds = false
	}
}
