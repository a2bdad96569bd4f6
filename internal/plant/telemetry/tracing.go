package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
)

// flushTimeout limits the time in which an ending process sends its last spans.
const flushTimeout = 3 * time.Second

// tracing sends spans to an OTLP receiver.
type tracing struct {
	provider    *sdktrace.TracerProvider
	tracer      trace.Tracer
	interceptor interceptor.Interceptor
}

// ErrTracing means that a variable of OpenTelemetry has an invalid value.
var ErrTracing = errors.New("the tracing settings of OpenTelemetry")

// wantsTraces reports whether the variables in environ (NAME=value) turn traces on. Without an endpoint in environ,
// this program sends no traces. This differs from OpenTelemetry's specification, by which it would send them to a
// receiver on localhost.
func wantsTraces(environ []string) bool {
	if strings.EqualFold(variable(environ, "OTEL_SDK_DISABLED"), "true") ||
		variable(environ, "OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return variable(environ, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "" ||
		variable(environ, "OTEL_EXPORTER_OTLP_ENDPOINT") != ""
}

// variable returns the value of a variable in environ; "" if environ does not have the variable. If environ has the
// variable more than once, the last value counts.
func variable(environ []string, name string) string {
	for _, entry := range slices.Backward(environ) {
		if value, found := strings.CutPrefix(entry, name+"="); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// startTracing starts to send spans. The exporter and the SDK read further OpenTelemetry variables from the environment
// of the process: headers, certificates, timeouts, sampler and attributes.
func startTracing(ctx context.Context, options Options) (*tracing, error) {
	exporter, err := newExporter(ctx, options.Environ)
	if err != nil {
		return nil, err
	}
	described, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", options.Service), attribute.String("service.version", options.Version),
	), resource.WithHost(), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("%w: %w", ErrTracing, err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(described))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		options.Logger.Warn("traces could not be sent", "error", err)
	}))
	tracer := provider.Tracer("github.com/claudeops/claudeops")
	calls, err := opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{
		Tracer: tracer, SpanStarter: startDiscreet,
		DisableQueryTracing:     true, // claudeops queries running chains often
		DisableBaggage:          true,
		AllowInvalidParentSpans: true, // a client with another tracing library must not make a chain fail
	})
	if err != nil {
		return nil, fmt.Errorf("trace the calls of Temporal: %w", err)
	}
	return &tracing{provider, tracer, calls}, nil
}

// newExporter returns the exporter for the configured protocol.
func newExporter(ctx context.Context, environ []string) (*otlptrace.Exporter, error) {
	const name = "OTEL_EXPORTER_OTLP_PROTOCOL"
	protocol := cmp.Or(variable(environ, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), variable(environ, name),
		"http/protobuf")
	var client otlptrace.Client
	switch protocol {
	case "http/protobuf":
		client = otlptracehttp.NewClient()
	case "grpc":
		client = otlptracegrpc.NewClient()
	default:
		return nil, fmt.Errorf("%w: %s is %q; it must be http/protobuf or grpc", ErrTracing, name, protocol)
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTracing, err)
	}
	return exporter, nil
}

// close sends the remaining spans.
func (t *tracing) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// startDiscreet starts a span that does not record the texts of errors.
func startDiscreet(ctx context.Context, tracer trace.Tracer, name string, options ...trace.SpanStartOption) trace.Span {
	_, span := tracer.Start(ctx, name, options...)
	return discreetSpan{span}
}

// discreetSpan records the type of an error, but not its text. The text can contain words that an agent has written or
// read.
type discreetSpan struct{ trace.Span }

// RecordError implements trace.Span.
func (s discreetSpan) RecordError(err error, _ ...trace.EventOption) {
	if err != nil {
		s.SetAttributes(attribute.String("error.type", errorType(err)))
	}
}

// SetStatus implements trace.Span.
func (s discreetSpan) SetStatus(code codes.Code, _ string) { s.Span.SetStatus(code, "") }

// errorType returns the type of an error. The result contains no part of the error's text.
func errorType(err error) string {
	if application, ok := errors.AsType[*temporal.ApplicationError](err); ok && application.Type() != "" {
		return application.Type()
	}
	return fmt.Sprintf("%T", err)
}

// SessionTrace traces one run of the CLI. A nil *SessionTrace traces nothing.
type SessionTrace struct {
	tracer trace.Tracer
	// ctx contains the span of the run. The spans of tool calls are children of this span.
	ctx  context.Context
	span trace.Span
	// calls maps the numbers of running tool calls to their spans. ended contains the numbers of ended tool calls.
	calls map[int]trace.Span
	ended map[int]bool
}

// TraceSession starts a span for a run of the CLI, as a child of the span in ctx. If traces are off, the *SessionTrace
// is nil. Use the returned context for the run, and call End after the run. A SessionTrace is not safe for concurrent
// use.
func (t *Telemetry) TraceSession(ctx context.Context, session Session, model string) (context.Context, *SessionTrace) {
	if t == nil || t.tracing == nil {
		return ctx, nil
	}
	ctx, span := t.tracing.tracer.Start(ctx, "claude", trace.WithAttributes(
		attribute.String("claudeops.chain_id", session.ChainID),
		attribute.String("claudeops.session_id", session.SessionID),
		attribute.Int("claudeops.tier", int(session.Tier)),
		attribute.String("claudeops.model", model),
	))
	return ctx, &SessionTrace{
		tracer: t.tracing.tracer, ctx: ctx, span: span, calls: map[int]trace.Span{},
		ended: map[int]bool{},
	}
}

// maxToolName limits the name of a tool in a span, in bytes. The model can invent names of any length.
const maxToolName = 40

// Call reports the state of the tool call with this number. The first report of a call starts a span, and the first
// report with running = false ends the span. The span does not contain the input of the call.
func (s *SessionTrace) Call(number int, tool string, running, failed bool) {
	if s == nil || s.ended[number] {
		return
	}
	span, begun := s.calls[number]
	if !begun {
		tool = tool[:min(len(tool), maxToolName)]
		_, span = s.tracer.Start(s.ctx, "tool", trace.WithAttributes(
			attribute.String("claudeops.tool", strings.ToValidUTF8(tool, "")), attribute.Int("claudeops.call", number)))
		s.calls[number] = span
	}
	if running {
		return
	}
	if failed {
		span.SetStatus(codes.Error, "")
	}
	span.End()
	s.ended[number] = true
	delete(s.calls, number)
}

// SessionEnd is the result of a run of the CLI.
type SessionEnd struct {
	Status  string
	CostUSD float64
	Turns   int
	Err     error
}

// End ends the span of the run. It also ends the spans of tool calls without a result, and marks these spans as errors.
func (s *SessionTrace) End(end SessionEnd) {
	if s == nil {
		return
	}
	for _, call := range s.calls {
		call.SetStatus(codes.Error, "")
		call.SetAttributes(attribute.Bool("claudeops.interrupted", true))
		call.End()
	}
	s.span.SetAttributes(
		attribute.String("claudeops.status", end.Status),
		attribute.Float64("claudeops.cost_usd", end.CostUSD),
		attribute.Int("claudeops.turns", end.Turns),
	)
	if end.Err != nil {
		s.span.SetAttributes(attribute.String("error.type", errorType(end.Err)))
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}
