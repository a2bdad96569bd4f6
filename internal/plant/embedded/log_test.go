package embedded

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/server/common/log/tag"

	"github.com/claudeops/claudeops/internal/systemtest/embeddedtest"
)

// newRecorder returns a logger, and the buffer that receives its output without times.
func newRecorder() (*slog.Logger, *bytes.Buffer) {
	written := new(bytes.Buffer)
	handler := slog.NewTextHandler(written, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})
	return slog.New(handler), written
}

func TestLogGoesThroughSlog(t *testing.T) {
	t.Parallel()
	logger, written := newRecorder()
	server := newServerLogger(logger, slog.LevelWarn)
	shard := server.With(tag.ShardID(7))

	server.Debug("hidden")
	server.Info("hidden")
	for _, expected := range expectedWarnings {
		server.Warn(expected + ". To enable it, read on.")
	}
	shard.Warn("slow", tag.NewDurationTag("took", time.Second))
	shard.Error("failed", tag.Error(errors.New("disk full")))
	server.quiet()
	shard.Error("hidden: the server stops")

	require.Equal(t, `level=WARN msg=slow component=temporal shard-id=7 took=1s
level=ERROR msg=failed component=temporal shard-id=7 error="disk full"
`, written.String())
}

func TestFatalDoesNotReturn(t *testing.T) {
	t.Parallel()
	logger, _ := newRecorder()
	require.PanicsWithValue(t, fatalError("no listener error=taken"), func() {
		newServerLogger(logger, slog.LevelWarn).Fatal("no listener", tag.Error(errors.New("taken")))
	})
}

// TestServerIsQuiet checks that a healthy server logs nothing from its start to its end.
func TestServerIsQuiet(t *testing.T) {
	t.Parallel()
	skipShort(t)
	logger, written := newRecorder()
	server, err := Start(t.Context(), Options{Logger: logger})
	require.NoError(t, err)
	c := dial(t, server.Address())
	w := newWorker(c)
	require.NoError(t, w.Start())
	execute(t, c, nineActivities)
	w.Stop()

	require.NoError(t, server.Stop())
	require.Empty(t, embeddedtest.WithoutStalls(written.String()))
}
