package cli

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/claudesim/simtest"
	"github.com/claudeops/claudeops/internal/cli/chains"
	"github.com/claudeops/claudeops/internal/escalation"
)

// traceReceiver is an OTLP receiver. It keeps the spans by their ids, and the service of each.
type traceReceiver struct {
	mutex    sync.Mutex
	spans    map[string]*spans.Span
	services map[string]string
	text     strings.Builder
}

// ServeHTTP implements http.Handler.
func (r *traceReceiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	var message collector.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(body, &message) != nil || request.Header.Get("X-Key") != "key-4711-of-the-receiver" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.text.WriteString(message.String())
	for _, group := range message.GetResourceSpans() {
		for _, scope := range group.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				r.spans[string(span.GetSpanId())] = span
				for _, attr := range group.GetResource().GetAttributes() {
					if attr.GetKey() == "service.name" {
						r.services[string(span.GetSpanId())] = attr.GetValue().GetStringValue()
					}
				}
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// path returns the names of a span and its ancestors, the oldest first, each with its service.
func (r *traceReceiver) path(span *spans.Span) string {
	var names []string
	for ; span != nil; span = r.spans[string(span.GetParentSpanId())] {
		names = append([]string{strings.TrimPrefix(r.services[string(span.GetSpanId())], "claudeops-") + " " + span.GetName()}, names...)
	}
	return strings.Join(names, " > ")
}

// TestTraceOfAChain runs a chain with `starter run` and `starter up`, in two processes. An OTLP receiver gets one trace, from
// the command to each tool call.
func TestTraceOfAChain(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	r := &traceReceiver{spans: map[string]*spans.Span{}, services: map[string]string{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	claude, err := claudesim.Install(t.TempDir(), claudesim.Play(
		claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Bash("echo words-of-the-agent"), claudesim.Bash("false"), claudesim.Conclude(escalation.Verdict{
			Status: escalation.VerdictEscalate, Summary: "jellyfin answers 502", Services: []string{"jellyfin"}, RecommendedTier: 2,
		})),
		claudesim.On(claudesim.Match{Model: "sonnet"}, claudesim.Conclude(escalation.Verdict{
			Status: escalation.VerdictResolved, Summary: "all is well", Services: []string{"jellyfin"},
		}))))
	require.NoError(t, err)
	environ := bareEnvironment(t, "CLAUDEOPS_CLAUDE="+claude, "PATH="+os.Getenv("PATH"), "CLAUDEOPS_POLICY_FILE="+simtest.OpenPolicy(t),
		"OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, "OTEL_EXPORTER_OTLP_HEADERS=x-key=key-4711-of-the-receiver", "CLAUDEOPS_PASS_ENV=OTEL_*",
		"CLAUDEOPS_LOG_FORMAT=json")

	up := startUp(t, environ)
	self, err := os.Executable()
	require.NoError(t, err)
	run := exec.CommandContext(t.Context(), self, "run", "--wait", "--prompt", "words-of-a-person", "--output", "json")
	run.Env = append(slices.Clone(environ), asStarter+"=1", "TEMPORAL_ADDRESS="+up.Temporal)
	var failure bytes.Buffer
	run.Stderr = &failure
	output, err := run.Output()
	require.NoError(t, err, failure.String())
	require.NotContains(t, failure.String(), "traces")
	var view chains.View
	require.NoError(t, json.Unmarshal(output, &view))
	require.Len(t, view.Sessions, 2)
	up.interrupt(t) // sends the last spans

	const session = "starter StartWorkflow:EscalationChain > worker RunWorkflow:EscalationChain > worker StartActivity:RunTier > " +
		"worker RunActivity:RunTier > worker claude"
	paths, traces := map[string]int{}, map[string]bool{}
	var trace string
	for _, span := range r.spans {
		path := r.path(span)
		paths[path]++
		if strings.HasPrefix(path, "starter ") {
			traces[string(span.GetTraceId())] = true
		}
		if path == session {
			trace = string(span.GetTraceId())
		}
	}
	require.Equal(t, 2, paths[session], paths)
	require.GreaterOrEqual(t, paths[session+" > worker tool"], 2, paths)
	require.Len(t, traces, 1, "all of the chain is one trace")
	for _, secret := range []string{"words-of-the-agent", "words-of-a-person", "key-4711-of-the-receiver", "jellyfin"} {
		require.NotContains(t, r.text.String(), secret, "traces have no text of people and agents, and no secrets")
	}
	for _, launch := range simtest.Launches(t, claude) {
		require.NotContains(t, launch.Env, "OTEL_EXPORTER_OTLP_HEADERS")
	}
	requireLogged(t, up.said.String(), view.Sessions[1], trace)
}

// requireLogged checks that a JSON log line reports the end of an agent, with its chain, session, tier and trace.
func requireLogged(t *testing.T, log string, session escalation.Session, trace string) {
	t.Helper()
	for line := range strings.Lines(log) {
		var got struct {
			Message   string          `json:"msg"`
			ChainID   string          `json:"chain_id"`
			SessionID string          `json:"session_id"`
			Tier      escalation.Tier `json:"tier"`
			TraceID   string          `json:"trace_id"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &got), line)
		if got.Message == "an agent has ended" && got.SessionID == session.SessionID {
			require.Equal(t, session.ChainID, got.ChainID)
			require.Equal(t, session.Tier, got.Tier)
			require.Equal(t, hex.EncodeToString([]byte(trace)), got.TraceID)
			return
		}
	}
	require.Fail(t, "the end of the agent is not logged", log)
}
