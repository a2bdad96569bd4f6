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
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/cli/daily"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
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

// The words of people and agents in the chain of TestTraceOfAChain.
const (
	wordsOfAgent  = "words-of-the-agent"
	wordsOfReport = "words-of-a-report"
	wordsOfPrompt = "words-of-a-person"
	wordsOfAnswer = "words-of-an-answer"
	tracedService = "jellyfin"
)

// tracedAgents play a chain that waits at a gate after Tier 2. The answer lets Tier 2 run again.
func tracedAgents() claudesim.Scenario {
	verdict := func(status escalation.VerdictStatus, tier escalation.Tier) claudesim.Reply {
		return claudesim.Conclude(escalation.Verdict{
			Status: status, Summary: wordsOfReport, Services: []string{tracedService}, RecommendedTier: tier,
		})
	}
	return claudesim.Play(
		claudesim.On(claudesim.Match{Model: "haiku"},
			claudesim.Bash("echo "+wordsOfAgent), claudesim.Bash("false"), verdict(escalation.VerdictEscalate, 2)),
		claudesim.On(claudesim.Match{Model: "sonnet", Prompt: wordsOfAnswer}, verdict(escalation.VerdictResolved, 0)),
		claudesim.On(claudesim.Match{Model: "sonnet"}, verdict(escalation.VerdictNeedsHuman, 0)))
}

// TestTraceOfAChain runs a chain with `claudeops run` and `claudeops up`, and answers its gate with `claudeops gate`,
// in three processes. What Temporal stores is encrypted. An OTLP receiver gets one trace, from the command to each tool
// call, and another one of the answer. Neither the receiver nor Temporal's database gets the words of people and
// agents.
func TestTraceOfAChain(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	r := &traceReceiver{spans: map[string]*spans.Span{}, services: map[string]string{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	claude, err := claudesim.Install(t.TempDir(), tracedAgents())
	require.NoError(t, err)
	keys, _ := clitest.EncryptionKeys(t)
	untraced := clitest.Environment(t, "CLAUDEOPS_CLAUDE="+claude, "PATH="+os.Getenv("PATH"), "CLAUDEOPS_POLICY_FILE="+simtest.OpenPolicy(t),
		"CLAUDEOPS_PASS_ENV=OTEL_*=claude", "CLAUDEOPS_LOG_FORMAT=json", "CLAUDEOPS_GATE_TIMEOUT=1h", keys)
	traced := append(slices.Clone(untraced),
		"OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, "OTEL_EXPORTER_OTLP_HEADERS=x-key=key-4711-of-the-receiver")

	up := startUp(t, traced)
	untraced, traced = append(untraced, "TEMPORAL_ADDRESS="+up.Temporal), append(traced, "TEMPORAL_ADDRESS="+up.Temporal)
	running := startProcess(t, traced, "run", "--wait", "--id", "traced-chain", "--prompt", wordsOfPrompt, "--output", "json")
	require.Eventually(t, func() bool {
		return starter(t, untraced, "gate", "traced-chain", "--output", "json").Code == program.ExitOK
	}, clitest.Timeout, clitest.Look, "the gate does not open")
	startProcess(t, traced, "gate", "traced-chain", "--action", "fix", "--guidance", wordsOfAnswer).finish(t)
	var view daily.Chain
	require.NoError(t, json.Unmarshal(running.finish(t), &view))
	require.Equal(t, escalation.OutcomeResolved, view.Outcome, view.Reason)
	require.Len(t, view.Sessions, 3)
	up.interrupt(t) // sends the last spans

	trace := requireTraces(t, r)
	stored := storedBy(t, up.StateDir)
	require.True(t, bytes.Contains(stored, []byte("traced-chain")), "the chain is in the database")
	for _, words := range []string{wordsOfAgent, wordsOfReport, wordsOfPrompt, wordsOfAnswer, tracedService} {
		require.NotContains(t, r.text.String(), words, "traces have no text of people and agents")
		require.False(t, bytes.Contains(stored, []byte(words)), "%s is in the database of Temporal", words)
	}
	require.NotContains(t, r.text.String(), "key-4711-of-the-receiver")
	for _, launch := range simtest.Launches(t, claude) {
		require.NotContains(t, launch.Env, "OTEL_EXPORTER_OTLP_HEADERS")
	}
	requireLogged(t, up.said.String(), view.Sessions[1], trace)
}

// starterProcess is a command of claudeops in a process of its own.
type starterProcess struct {
	command        *exec.Cmd
	stdout, stderr bytes.Buffer
}

func startProcess(t *testing.T, environ []string, args ...string) *starterProcess {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &starterProcess{command: exec.CommandContext(t.Context(), self, args...)}
	p.command.Env = append(slices.Clone(environ), asStarter+"=1")
	p.command.Stdout, p.command.Stderr = &p.stdout, &p.stderr
	require.NoError(t, p.command.Start())
	return p
}

// finish waits for the process, which must succeed and send its traces. It returns what the process has printed.
func (p *starterProcess) finish(t *testing.T) []byte {
	t.Helper()
	require.NoError(t, p.command.Wait(), p.stderr.String())
	require.NotContains(t, p.stderr.String(), "traces")
	return p.stdout.Bytes()
}

// requireTraces checks the spans of a chain with three sessions and two calls of tools, and of the answer at its gate.
// It returns the ID of the chain's trace.
func requireTraces(t *testing.T, r *traceReceiver) (trace string) {
	t.Helper()
	const session = "claudeops StartWorkflow:EscalationChain > worker RunWorkflow:EscalationChain > worker StartActivity:RunTier > " +
		"worker RunActivity:RunTier > worker claude"
	const answer = "claudeops UpdateWorkflow:resolve-gate > worker HandleUpdate:resolve-gate"
	paths, traces := map[string]int{}, map[string]bool{}
	for _, span := range r.spans {
		path := r.path(span)
		paths[path]++
		if strings.HasPrefix(path, "claudeops StartWorkflow") {
			trace = string(span.GetTraceId())
			traces[trace] = true
		}
	}
	require.Equal(t, 3, paths[session], paths)
	require.GreaterOrEqual(t, paths[session+" > worker tool"], 2, paths)
	require.Positive(t, paths[answer], paths)
	require.Len(t, traces, 1, "all of the chain is one trace, also after the gate")
	return trace
}

// storedBy returns all that a Temporal server which has ended has written to its database.
func storedBy(t *testing.T, stateDir string) (all []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(stateDir, "temporal.db*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		all = append(all, content...)
	}
	return all
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
