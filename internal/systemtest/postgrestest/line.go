package postgrestest

import (
	"context"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Line is a TCP proxy between a client and a database server. A test can interrupt the connections that pass through
// it.
type Line struct {
	listener net.Listener
	// database is the URL of the database behind the line.
	database *url.URL

	mu     sync.Mutex
	closed bool
	silent bool
	ends   map[net.Conn]bool
}

// StartLine starts a proxy for the server of the database URL. The proxy ends with the test.
func StartLine(t testing.TB, database string) *Line {
	t.Helper()
	parsed, err := url.Parse(database)
	require.NoError(t, err)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &Line{listener: listener, database: parsed, ends: map[net.Conn]bool{}}
	go l.serve()
	t.Cleanup(func() {
		_ = listener.Close()
		l.Cut()
	})
	return l
}

// URL returns the URL of the database through the line.
func (l *Line) URL() string {
	through := *l.database
	through.Host = l.listener.Addr().String()
	values := through.Query()
	values.Del("host")
	values.Set("sslmode", "disable")
	through.RawQuery = values.Encode()
	return through.String()
}

// Redirect lets new connections lead to another server, and closes those that are open, as when a name moves to another
// host.
func (l *Line) Redirect(t testing.TB, database string) {
	t.Helper()
	parsed, err := url.Parse(database)
	require.NoError(t, err)
	l.Cut()
	l.mu.Lock()
	l.database = parsed
	l.mu.Unlock()
	l.Mend()
}

// Cut closes all connections. Until a call of Mend, the line also closes every new connection at once.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for end := range l.ends {
		_ = end.Close()
	}
	clear(l.ends)
}

// Silence keeps all connections open, but drops their bytes until a call of Mend. Mend closes these connections,
// because the dropped bytes are lost.
func (l *Line) Silence() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = true
}

// Mend lets new connections through again.
func (l *Line) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silent {
		for end := range l.ends {
			_ = end.Close()
		}
		clear(l.ends)
	}
	l.closed, l.silent = false, false
}

func (l *Line) serve() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		far, err := l.dial()
		if err != nil {
			_ = near.Close()
			continue
		}
		if l.add(near, far) {
			go l.pass(near, far)
			go l.pass(far, near)
		}
	}
}

// dial connects to the server.
func (l *Line) dial() (net.Conn, error) {
	if socket := l.database.Query().Get("host"); socket != "" {
		return new(net.Dialer).DialContext(context.Background(), "unix", socket+"/.s.PGSQL.5432")
	}
	return new(net.Dialer).DialContext(context.Background(), "tcp", l.database.Host)
}

// add records both ends of a connection, so that Cut and Mend can close them. If the line is cut, add closes both ends
// and returns false.
func (l *Line) add(ends ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, end := range ends {
		if l.closed {
			_ = end.Close()
			continue
		}
		l.ends[end] = true
	}
	return !l.closed
}

// pass copies bytes until an end is closed.
func (l *Line) pass(from, to net.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !l.drops() {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *Line) drops() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.silent
}
