package telemetry

import (
	"context"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/trace"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Session identifies a session in log lines and traces.
type Session struct {
	ChainID   string
	SessionID string
	Tier      escalation.Tier
}

// sessionKey is the key of a Session in a context.
type sessionKey struct{}

// WithSession returns a context that contains the session. A logger with a handler from NewLogHandler adds the session
// to each line that is logged with this context.
func WithSession(ctx context.Context, session Session) context.Context {
	return context.WithValue(ctx, sessionKey{}, session)
}

// logHandler adds attributes from the context to log lines.
type logHandler struct{ slog.Handler }

// NewLogHandler returns a handler that adds attributes to log lines and passes the lines to next. It adds chain_id,
// session_id, tier and trace_id if the context of the line has these values. It does not add an attribute that the line
// already has.
func NewLogHandler(next slog.Handler) slog.Handler { return logHandler{next} }

// Handle implements slog.Handler.
func (h logHandler) Handle(ctx context.Context, record slog.Record) error {
	session, known := ctx.Value(sessionKey{}).(Session)
	span := trace.SpanContextFromContext(ctx)
	if !known && !span.IsValid() {
		return h.Handler.Handle(ctx, record)
	}
	has := map[string]bool{}
	record.Attrs(func(attr slog.Attr) bool {
		has[attr.Key] = true
		return true
	})
	record = record.Clone()
	add := func(attr slog.Attr) {
		if !has[attr.Key] {
			record.AddAttrs(attr)
		}
	}
	if known {
		add(slog.String("chain_id", session.ChainID))
		add(slog.String("session_id", session.SessionID))
		add(slog.Int("tier", int(session.Tier)))
	}
	if span.IsValid() {
		add(slog.String("trace_id", span.TraceID().String()))
	}
	return h.Handler.Handle(ctx, record)
}

// sdkNames maps names of attributes in log lines of the Temporal SDK to the names that this program uses.
var sdkNames = map[string]string{"TraceID": "trace_id", "SpanID": "span_id"}

// WithAttrs implements slog.Handler.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	renamed := slices.Clone(attrs)
	for i := range renamed {
		if name, known := sdkNames[renamed[i].Key]; known {
			renamed[i].Key = name
		}
	}
	return logHandler{h.Handler.WithAttrs(renamed)}
}

// WithGroup implements slog.Handler.
func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }
