package supervisor_test

import (
	"bytes"
	"log/slog"
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
	book := &logBook{}
	s := startLoggedSite(t, c, environ, slog.New(slog.NewTextHandler(book, nil)))
	require.Eventually(t, func() bool { return book.count("msg=working") > 0 }, testTimeout, 5*time.Millisecond)
	return s, book
}
