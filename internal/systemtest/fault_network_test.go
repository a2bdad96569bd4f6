package systemtest

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lineState says what a line does with its connections.
type lineState int

const (
	lineOpen lineState = iota
	lineClosed
	lineSwallows // connections stay open, and all their bytes are dropped
)

// line is a TCP proxy in front of a server. A test can cut it.
type line struct {
	net.Listener
	target string

	mu    sync.Mutex
	state lineState
	ends  map[net.Conn]bool
}

// startLine starts a line to target.
func startLine(t *testing.T, target string) *line {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &line{Listener: listener, target: target, ends: map[net.Conn]bool{}}
	go l.serve()
	t.Cleanup(func() {
		_ = l.Close()
		l.set(lineClosed)
	})
	return l
}

func (l *line) serve() {
	for {
		near, err := l.Accept()
		if err != nil {
			return
		}
		far, err := new(net.Dialer).DialContext(context.Background(), "tcp", l.target)
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

// add registers the two ends of a connection. If the line is closed, it closes them and returns false.
func (l *line) add(ends ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, end := range ends {
		if l.state == lineClosed {
			_ = end.Close()
		} else {
			l.ends[end] = true
		}
	}
	return l.state != lineClosed
}

// pass copies bytes from one end to the other. While the line swallows, it drops them.
func (l *line) pass(from, to net.Conn) {
	defer l.drop(from, to)
	for buffer := make([]byte, 32<<10); ; {
		n, err := from.Read(buffer)
		if err != nil && (n == 0 || err != io.EOF) { //nolint:errorlint // a reader returns io.EOF itself
			return
		}
		if l.swallows() {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (l *line) drop(ends ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, end := range ends {
		_ = end.Close()
		delete(l.ends, end)
	}
}

func (l *line) swallows() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == lineSwallows
}

// set changes the state of the line. It closes all connections if the new state is lineClosed. It also closes them if
// the old state was lineSwallows, because they may have lost bytes.
func (l *line) set(state lineState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == lineSwallows || state == lineClosed {
		for end := range l.ends {
			_ = end.Close()
		}
		clear(l.ends)
	}
	l.state = state
}

// TestFaultNetworkCut cuts the line between Temporal and a worker whose agent has acted and is in a tool call. The
// worker must end the agent on its own. When the line is back, the chain must continue.
func TestFaultNetworkCut(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	for name, state := range map[string]lineState{"closed": lineClosed, "swallows": lineSwallows} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := startLine(t, address)
			f := newFaultSite(t, c, 1, "CLAUDEOPS_TASK_QUEUE=cut_"+name)
			startSite(t, connect(t, l.Addr().String()), f.environ)
			id := lingeringChain + name
			end := f.begin(t, id)
			require.Eventually(t, exists(filepath.Join(f.effects, id)), testTimeout, 5*time.Millisecond)
			l.set(state)
			requireGone(t, "CLAUDEOPS_CHAIN_ID="+id)
			l.set(lineOpen)
			chain := end()
			require.GreaterOrEqual(t, chain.Sessions[1].Attempts, 2)
			t.Logf("faults: network cut (%s): the worker ended its agent, %d attempts", name, chain.Sessions[1].Attempts)
		})
	}
}
