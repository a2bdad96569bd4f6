package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/claudeops/claudeops/internal/plant/telemetry"
)

// receiver is an OTLP receiver for both protocols.
type receiver struct {
	collector.UnimplementedTraceServiceServer

	mutex sync.Mutex
	spans map[string]*spans.Span
	// service is the service.name of the last spans. header is the header "x-key" of the last request.
	service, header string
}

func (r *receiver) take(request *collector.ExportTraceServiceRequest, header string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.header = header
	for _, group := range request.GetResourceSpans() {
		for _, attr := range group.GetResource().GetAttributes() {
			if attr.GetKey() == "service.name" {
				r.service = attr.GetValue().GetStringValue()
			}
		}
		for _, scope := range group.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				r.spans[span.GetName()+attribute(span, "claudeops.call")] = span
			}
		}
	}
}

// attribute returns an attribute of a span as text; "" if it is missing.
func attribute(span *spans.Span, key string) string {
	for _, attr := range span.GetAttributes() {
		if attr.GetKey() == key {
			return strings.TrimSpace(attr.GetValue().String()[strings.Index(attr.GetValue().String(), ":")+1:])
		}
	}
	return ""
}

// Export implements collector.TraceServiceServer.
func (r *receiver) Export(ctx context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	given, _ := metadata.FromIncomingContext(ctx)
	r.take(request, strings.Join(given.Get("x-key"), ""))
	return &collector.ExportTraceServiceResponse{}, nil
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	var message collector.ExportTraceServiceRequest
	if err != nil || request.URL.Path != "/v1/traces" || proto.Unmarshal(body, &message) != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	r.take(&message, request.Header.Get("X-Key"))
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// TestTraces sends the spans of a session to a real receiver by both protocols. It does not run in parallel, because it
// changes the environment of the process, from which OpenTelemetry reads.
func TestTraces(t *testing.T) {
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			r := &receiver{spans: map[string]*spans.Span{}}
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=abc")
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", serveTraces(t, r, protocol))
			var logged bytes.Buffer
			traced, err := telemetry.Start(t.Context(), telemetry.Options{
				Environ: os.Environ(), Service: "claudeops-worker", Version: "v1", Logger: slog.New(slog.NewTextHandler(&logged, nil)),
			})
			require.NoError(t, err)
			ctx, session := traced.TraceSession(t.Context(), telemetry.Session{ChainID: "chain-1", SessionID: "s-1", Tier: 2}, "sonnet")
			slog.New(telemetry.NewLogHandler(slog.NewTextHandler(&logged, nil))).InfoContext(ctx, "hello")
			session.Call(1, "Bash", true, false)
			session.Call(2, strings.Repeat("x", 1000), true, false)
			session.Call(1, "Bash", false, true)
			session.Call(1, "Bash", true, false) // ended calls are reported again
			session.End(telemetry.SessionEnd{Status: "failed", CostUSD: 0.5, Turns: 3, Err: errors.New("its text is not for traces")})
			require.NoError(t, traced.Close())

			require.Len(t, r.spans, 3)
			require.Equal(t, "abc", r.header)
			require.Equal(t, "claudeops-worker", r.service)
			run, first, second := r.spans["claude"], r.spans["tool1"], r.spans["tool2"]
			require.Equal(t, `"sonnet"`, attribute(run, "claudeops.model"))
			require.Equal(t, `"failed"`, attribute(run, "claudeops.status"))
			require.Equal(t, spans.Status_STATUS_CODE_ERROR, run.GetStatus().GetCode())
			for _, call := range []*spans.Span{first, second} {
				require.Equal(t, run.GetSpanId(), call.GetParentSpanId())
				require.Equal(t, run.GetTraceId(), call.GetTraceId())
				require.Equal(t, spans.Status_STATUS_CODE_ERROR, call.GetStatus().GetCode())
			}
			require.Equal(t, `"Bash"`, attribute(first, "claudeops.tool"))
			require.Len(t, attribute(second, "claudeops.tool"), 42, "a name that the model invents is cut")
			require.Equal(t, "true", attribute(second, "claudeops.interrupted"))
			require.NotContains(t, run.String(), "its text")
			require.Contains(t, logged.String(), "trace_id=")
		})
	}
}

// serveTraces serves a receiver and returns its address.
func serveTraces(t *testing.T, r *receiver, protocol string) string {
	t.Helper()
	if protocol != "grpc" {
		server := httptest.NewServer(r)
		t.Cleanup(server.Close)
		return server.URL
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return "http://" + listener.Addr().String()
}

func TestTracesAreOff(t *testing.T) {
	t.Parallel()
	for name, environ := range map[string][]string{
		"nothing set": nil,
		"no endpoint": {"OTEL_SERVICE_NAME=x"},
		"disabled":    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_SDK_DISABLED=true"},
		"no exporter": {"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_TRACES_EXPORTER=none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			off, err := telemetry.Start(t.Context(), telemetry.Options{Environ: environ, Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			ctx, session := off.TraceSession(t.Context(), telemetry.Session{}, "haiku")
			require.Nil(t, session)
			require.Equal(t, t.Context(), ctx)
			session.Call(1, "Bash", true, false)
			session.End(telemetry.SessionEnd{})
			require.NoError(t, off.Close())
		})
	}
	_, err := telemetry.Start(t.Context(), telemetry.Options{
		Environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL=http/json"},
		Logger:  slog.New(slog.DiscardHandler),
	})
	require.ErrorIs(t, err, telemetry.ErrTracing)
	require.ErrorContains(t, err, `OTEL_EXPORTER_OTLP_PROTOCOL is "http/json"; it must be http/protobuf or grpc`)
}
