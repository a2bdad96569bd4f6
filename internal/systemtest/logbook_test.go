package systemtest

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
)

// logBook collects the log of a worker.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// openLogBook returns an empty log book. It prints the end of the log if the test fails.
func openLogBook(t *testing.T) *logBook {
	t.Helper()
	book := &logBook{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("a worker logged:\n%s", book.last(8<<10))
		}
	})
	return book
}

// last returns the end of the log, at most n bytes.
func (b *logBook) last(n int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := b.text.Bytes()
	return string(text[max(0, len(text)-n):])
}

// Write implements io.Writer.
func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// count returns how often the log contains what.
func (b *logBook) count(what string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.text.String(), what)
}

// startWorkingSite starts a worker like startLoggedSite, and waits until it is working.
func startWorkingSite(t *testing.T, c client.Client, environ []string) (*site, *logBook) {
	t.Helper()
	s, book := startLoggedSite(t, c, environ)
	require.Eventually(t, func() bool { return book.count("msg=working") > 0 }, testTimeout, 5*time.Millisecond)
	return s, book
}
