package supervisor_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
)

// logBook is what a worker has logged.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// openLogBook opens a book that is printed if the test fails.
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

// last returns the last bytes of it, at most n.
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

// count returns how many lines say that.
func (b *logBook) count(what string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.text.String(), what)
}

// startWorkingSite is startSite with a worker that is at work when it returns, and its log.
func startWorkingSite(t *testing.T, c client.Client, environ []string) (*site, *logBook) {
	t.Helper()
	s, book := startLoggedSite(t, c, environ)
	require.Eventually(t, func() bool { return book.count("msg=working") > 0 }, testTimeout, 5*time.Millisecond)
	return s, book
}
