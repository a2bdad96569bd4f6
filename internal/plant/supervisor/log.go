package supervisor

import (
	"io"
	"log/slog"

	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/telemetry"
	"github.com/claudeops/claudeops/internal/redact"
)

// NewLogger returns a logger with the configured level and format. The logger masks secrets in its output. To lines
// about a session, it adds the chain, session, tier and trace (see telemetry.WithSession).
func NewLogger(w io.Writer, settings config.Log, mask *redact.Redactor) *slog.Logger {
	options := &slog.HandlerOptions{Level: settings.Level.Slog(), ReplaceAttr: mask.Attr}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if settings.Format == config.LogJSON {
		handler = slog.NewJSONHandler(w, options)
	}
	return slog.New(telemetry.NewLogHandler(handler))
}
