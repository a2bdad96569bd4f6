package supervisor_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/claudesim/simtest"
	"github.com/claudeops/claudeops/internal/escalation"
)

// recipient is a service that people are notified by. It may be away for a while.
type recipient struct {
	host string
	mu   sync.Mutex
	// refuses is how many of the next messages it refuses; less than 0 is all.
	refuses int
	refused int
	got     []string
}

func startRecipient(t *testing.T, refuses int) *recipient {
	t.Helper()
	r := &recipient{refuses: refuses}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.host = strings.TrimPrefix(server.URL, "http://")
	return r
}

func (r *recipient) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuses == 0 {
		r.got = append(r.got, string(body))
		return
	}
	r.refuses--
	r.refused++
	w.WriteHeader(http.StatusBadGateway)
}

// leave has it refuse every message until comeBack.
func (r *recipient) leave() { r.refuse(-1) }

func (r *recipient) comeBack() { r.refuse(0) }

func (r *recipient) refuse(messages int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuses = messages
}

// received returns the messages that it has taken.
func (r *recipient) received() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.got...)
}

func (r *recipient) refusals() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// lockedBuffer is a buffer for several writers.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// TestChainNotifies: of two services one is away for a while and one is well. Both
// get the message once, and no secret of theirs gets anywhere.
func TestChainNotifies(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	logged := &lockedBuffer{}
	logging, err := client.NewClientFromExisting(temporalServer, client.Options{
		Logger: log.NewStructuredLogger(slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))),
	})
	require.NoError(t, err)
	flaky, well := startRecipient(t, 2), startRecipient(t, 0)
	claude := simtest.Install(t, claudesim.Play(concluding("haiku", asksFor(2)), concluding("sonnet", escalation.Verdict{
		Status: escalation.VerdictNeedsHuman, Summary: "a disk is dying", Services: []string{"nas"},
	})))
	s := startSite(t, logging, environment(t, claude,
		"CLAUDEOPS_NOTIFY_URLS=generic://u:hunter2pass@"+flaky.host+"/hooks/hunter2token?disabletls=yes,apprise://ops:hunter2pass@"+well.host+"/hunter2key",
		"CLAUDEOPS_UI_URL=https://temporal.example.org/ui"))
	run := s.start(nil)
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeNeedsHuman, chain.Outcome)

	require.Equal(t, 2, flaky.refusals())
	require.Len(t, flaky.received(), 1)
	require.Len(t, well.received(), 1, "it got none of the repeated attempts")
	var sent map[string]string
	require.NoError(t, json.Unmarshal([]byte(well.received()[0]), &sent))
	require.Equal(t, "warning", sent["type"])
	require.Equal(t, "Claude Ops: a person is needed (nas)", sent["title"])
	require.Equal(t, sent["title"]+"\n\n"+sent["body"], flaky.received()[0])
	require.Contains(t, sent["body"], "tier 2 (sonnet): completed, $")
	require.Contains(t, sent["body"], "verdict needs_human: “a disk is dying”")
	require.Contains(t, sent["body"], "starter chain "+chain.ID)
	require.Contains(t, sent["body"], "https://temporal.example.org/ui/namespaces/default/workflows/"+chain.ID+"/"+run.GetRunID())
	t.Logf("notified: a service that refused 2 attempts got %d requests, the other one %d\n%s\n%s",
		flaky.refusals()+len(flaky.received()), len(well.received()), sent["title"], sent["body"])

	delivered, err := s.records().Delivered(t.Context(), run.GetRunID()+"/notification/1")
	require.NoError(t, err)
	require.Len(t, delivered, 2)
	require.NoError(t, s.stop())
	require.Contains(t, logged.String(), "502 Bad Gateway", "attempts that fail are logged")
	for place, text := range map[string]string{
		"log": logged.String(), "history": historyOf(t, s, run), "records": strings.Join(delivered, " "), "message": sent["body"],
	} {
		require.NotContains(t, text, "hunter2", place)
	}
	recordHistory(t, s, run, "notified")
}

// historyOf is all that Temporal keeps of a run, as text.
func historyOf(t *testing.T, s *site, run client.WorkflowRun) string {
	t.Helper()
	var all strings.Builder
	events := s.client.GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		all.WriteString(protojson.Format(event))
		for _, payload := range event.GetActivityTaskScheduledEventAttributes().GetInput().GetPayloads() {
			all.Write(payload.GetData())
		}
	}
	return all.String()
}
