package embedded

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// fatalError is what the server said before it would have ended the process.
type fatalError string

// Error implements error.
func (e fatalError) Error() string { return string(e) }

// expectedWarning begins a line that the server writes because this package gives it no HTTP API.
// That API would be one more way in, without the Web UI's protection against other sites' pages.
const expectedWarning = "HTTP API port has not been set"

// serverLogger passes the server's log on to slog. It implements the server's Logger and WithLogger.
type serverLogger struct {
	logger *slog.Logger
	level  slog.Leveler
	// stopping is shared by a logger and all that derive from it.
	stopping *atomic.Bool
}

var (
	_ log.Logger     = (*serverLogger)(nil)
	_ log.WithLogger = (*serverLogger)(nil)
)

// newServerLogger returns a logger that passes on what is at level or above.
func newServerLogger(logger *slog.Logger, level slog.Leveler) *serverLogger {
	return &serverLogger{
		logger:   logger.With("component", "temporal"),
		level:    level,
		stopping: new(atomic.Bool),
	}
}

// quiet passes on no more than fatal lines from now on.
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
	if !strings.HasPrefix(msg, expectedWarning) {
		l.log(slog.LevelWarn, msg, tags)
	}
}

// Error implements log.Logger.
func (l *serverLogger) Error(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }

// DPanic implements log.Logger. It marks a fault that only a developer's build should die of.
func (l *serverLogger) DPanic(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }

// Panic implements log.Logger.
func (l *serverLogger) Panic(msg string, tags ...tag.Tag) { l.Fatal(msg, tags...) }

// Fatal implements log.Logger. The server relies on it not to return. During Start it ends in an
// error; in a goroutine of a running server it ends the process, as the server means it to.
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

// attributes translates tags, in their order.
func attributes(tags []tag.Tag) []slog.Attr {
	attributes := make([]slog.Attr, 0, len(tags))
	for _, t := range tags {
		attributes = append(attributes, slog.Any(t.Key(), t.Value()))
	}
	return attributes
}
