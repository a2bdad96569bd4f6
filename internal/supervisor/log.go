package supervisor

import (
	"io"
	"log/slog"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/redact"
)

// NewLogger returns a logger with the configured level and format. It masks secrets in its output.
func NewLogger(w io.Writer, settings config.Log, mask *redact.Redactor) *slog.Logger {
	options := &slog.HandlerOptions{Level: settings.Level.Slog(), ReplaceAttr: mask.Attr}
	if settings.Format == config.LogJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
