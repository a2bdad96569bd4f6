package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/claudeops/claudeops/internal/plant/telemetry"
)

func TestLogLinesNameTheirSession(t *testing.T) {
	t.Parallel()
	ctx := telemetry.WithSession(t.Context(), telemetry.Session{ChainID: "chain-1", SessionID: "session-1", Tier: 2})
	traced := trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2},
	}))
	for name, tt := range map[string]struct {
		ctx  context.Context
		args []any
		want map[string]any
	}{
		"no session": {ctx: t.Context(), want: map[string]any{}},
		"session":    {ctx: ctx, want: map[string]any{"chain_id": "chain-1", "session_id": "session-1", "tier": 2.0}},
		"trace": {ctx: traced, want: map[string]any{
			"chain_id": "chain-1", "session_id": "session-1", "tier": 2.0, "trace_id": "01000000000000000000000000000000",
		}},
		"own attribute": {ctx: ctx, args: []any{"session_id", "another"}, want: map[string]any{
			"chain_id": "chain-1", "session_id": "another", "tier": 2.0,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var line bytes.Buffer
			slog.New(telemetry.NewLogHandler(slog.NewJSONHandler(&line, nil))).InfoContext(tt.ctx, "done", tt.args...)
			var got map[string]any
			require.NoError(t, json.Unmarshal(line.Bytes(), &got))
			for _, name := range []string{"time", "level", "msg"} {
				delete(got, name)
			}
			require.Equal(t, tt.want, got)
		})
	}
}
