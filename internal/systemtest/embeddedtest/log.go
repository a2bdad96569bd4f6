// Package embeddedtest helps tests to check the log of an embedded Temporal server.
package embeddedtest

import "strings"

// WithoutStalls returns a log in slog's text format without the lines that only show that the host is busy. These lines
// report steps that were slow, or that timed out and are repeated. Temporal's own test of a quiet server ignores the
// same lines: see errorLogDetector in its temporal/server_test.go.
func WithoutStalls(log string) string {
	var kept strings.Builder
	for line := range strings.Lines(log) {
		slow := strings.Contains(line, "context deadline exceeded") || strings.Contains(line, `msg="Slow gRPC call"`)
		if !slow || !strings.Contains(line, " component=temporal ") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
