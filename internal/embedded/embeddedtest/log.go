// Package embeddedtest helps tests to read what an embedded Temporal server logs.
package embeddedtest

import "strings"

// WithoutStalls returns a log in slog's text format without what a server says of steps that it did not
// get done in time, because the machine was busy, and does again. Temporal's own test of a quiet server
// leaves them out, too: errorLogDetector in its temporal/server_test.go.
func WithoutStalls(log string) string {
	var kept strings.Builder
	for line := range strings.Lines(log) {
		if !strings.Contains(line, " component=temporal ") || !strings.Contains(line, "context deadline exceeded") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
