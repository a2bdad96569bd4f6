package supervisor

import (
	"io"
	"log/slog"

	"github.com/claudeops/claudeops/internal/config"
)

// NewLogger returns the logger that the settings ask for.
func NewLogger(w io.Writer, settings config.Log) *slog.Logger {
	options := &slog.HandlerOptions{Level: settings.Level.Slog()}
	if settings.Format == config.LogJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
