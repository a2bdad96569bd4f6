package embedded

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// fatalError is the text of a line that the server logged with Fatal or Panic.
type fatalError string

// Error implements error.
func (e fatalError) Error() string { return string(e) }

// expectedWarnings lists the beginnings of warnings that require no action by an operator.
var expectedWarnings = []string{
	// This package disables the HTTP API. The API would give access without the Web UI's protection against pages of
	// other sites.
	"HTTP API port has not been set",
	// The Web UI and the CLI sometimes ask for more events than the server returns at once. They then get the remaining
	// events with the next page.
	"GetHistory page size is larger than threshold",
}

// serverLogger passes the server's log to slog. It implements the server's Logger and WithLogger.
type serverLogger struct {
	logger *slog.Logger
	level  slog.Leveler
	// stopping is true after the call of quiet. All derived loggers share it.
	stopping *atomic.Bool
}

var (
	_ log.Logger     = (*serverLogger)(nil)
	_ log.WithLogger = (*serverLogger)(nil)
)

// newServerLogger returns a logger that passes on the lines whose level is not below the given level.
func newServerLogger(logger *slog.Logger, level slog.Leveler) *serverLogger {
	return &serverLogger{
		logger:   logger.With("component", "temporal"),
		level:    level,
		stopping: new(atomic.Bool),
	}
}

// quiet suppresses all later lines except fatal lines.
func (l *serverLogger) quiet() { l.stopping.Store(true) }

// With implements log.WithLogger.
func (l *serverLogger) With(tags ...tag.Tag) log.Logger {
	derived := *l
	derived.logger = slog.New(l.logger.Handler().WithAttrs(attributes(tags)))
	return &derived
}

// Debug implements log.Logger.
func (l *serverLogger) Debug(msg string, tags ...tag.Tag) { l.log(slog.LevelDebug, msg, tags) }

// Info implements log.Logger.
func (l *serverLogger) Info(msg string, tags ...tag.Tag) { l.log(slog.LevelInfo, msg, tags) }

// Warn implements log.Logger.
func (l *serverLogger) Warn(msg string, tags ...tag.Tag) {
	expected := func(beginning string) bool { return strings.HasPrefix(msg, beginning) }
	if !slices.ContainsFunc(expectedWarnings, expected) {
		l.log(slog.LevelWarn, msg, tags)
	}
}

// Error implements log.Logger.
func (l *serverLogger) Error(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }

// DPanic implements log.Logger. The server calls DPanic for faults that should stop a developer's build, but no other
// build.
func (l *serverLogger) DPanic(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }

// Panic implements log.Logger.
func (l *serverLogger) Panic(msg string, tags ...tag.Tag) { l.Fatal(msg, tags...) }

// Fatal implements log.Logger. The server expects that Fatal does not return. During Start, Fatal ends the start with
// an error. In a goroutine of a running server, Fatal ends the process, as the server intends.
func (l *serverLogger) Fatal(msg string, tags ...tag.Tag) {
	for _, attribute := range attributes(tags) {
		msg += " " + attribute.String()
	}
	panic(fatalError(msg))
}

func (l *serverLogger) log(level slog.Level, msg string, tags []tag.Tag) {
	if level < l.level.Level() || l.stopping.Load() {
		return
	}
	ctx := context.Background()
	if !l.logger.Enabled(ctx, level) {
		return
	}
	l.logger.LogAttrs(ctx, level, msg, attributes(tags)...)
}

// attributes converts tags in order.
func attributes(tags []tag.Tag) []slog.Attr {
	attributes := make([]slog.Attr, 0, len(tags))
	for _, t := range tags {
		attributes = append(attributes, slog.Any(t.Key(), t.Value()))
	}
	return attributes
}
