// Package embeddedtest helps tests to read what an embedded Temporal server logs.
package embeddedtest

import "strings"

// WithoutStalls returns a log in slog's text format without the lines about steps that a server did slowly, or
// did not get done in time and repeats, because the machine was busy. Temporal's own test of a quiet server
// leaves them out, too: errorLogDetector in its temporal/server_test.go.
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
