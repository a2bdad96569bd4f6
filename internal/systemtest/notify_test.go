package systemtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/notifytest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// lockedBuffer is a buffer that several goroutines may write to.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.String()
}

// TestChainNotifies notifies two targets, one of which refuses the first two attempts. Both must get the message
// once. The secrets in their URLs must not occur in the log, the history, the records or the message.
func TestChainNotifies(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	logged := &lockedBuffer{}
	logging, err := client.NewClientFromExisting(temporalServer, client.Options{
		Logger: log.NewStructuredLogger(slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))),
	})
	require.NoError(t, err)
	flaky, well := notifytest.Start(t), notifytest.Start(t)
	flaky.Refuse(2)
	claude := simtest.Install(t, claudesim.Play(concluding("haiku", asksFor(2)), concluding("sonnet", escalation.Verdict{
		Status: escalation.VerdictNeedsHuman, Summary: "a disk is dying", Services: []string{"nas"},
	})))
	s := startSite(t, logging, environment(t, claude,
		"CLAUDEOPS_NOTIFY_URLS="+flaky.Generic()+","+well.Apprise(),
		"CLAUDEOPS_UI_URL=https://temporal.example.org/ui"))
	run := s.start(nil)
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeNeedsHuman, chain.Outcome)

	require.Equal(t, 2, flaky.Refusals())
	require.Len(t, flaky.Received(), 1)
	require.Len(t, well.Received(), 1, "it got none of the repeated attempts")
	var sent map[string]string
	require.NoError(t, json.Unmarshal([]byte(well.Received()[0]), &sent))
	require.Equal(t, "warning", sent["type"])
	require.Equal(t, "Claude Ops: a person is needed (nas)", sent["title"])
	require.Equal(t, sent["title"]+"\n\n"+sent["body"], flaky.Received()[0])
	require.Contains(t, sent["body"], "tier 2 (sonnet), $")
	require.Contains(t, sent["body"], ": needs a person, found “a disk is dying”")
	require.Contains(t, sent["body"], "claudeops chain "+chain.ID)
	require.Contains(t, sent["body"], "https://temporal.example.org/ui/namespaces/default/workflows/"+chain.ID+"/"+run.GetRunID())
	t.Logf("notified: a service that refused 2 attempts got %d requests, the other one %d\n%s\n%s",
		flaky.Refusals()+len(flaky.Received()), len(well.Received()), sent["title"], sent["body"])

	delivered, err := s.records().Delivered(t.Context(), run.GetRunID()+"/notification/1")
	require.NoError(t, err)
	require.Len(t, delivered, 2)
	requireToldOfItsSnooze(t, s)
	require.NoError(t, s.stop())
	require.Contains(t, logged.String(), "502 Bad Gateway", "attempts that fail are logged")
	for place, text := range map[string]string{
		"log": logged.String(), "history": historyOf(t, s, run), "records": strings.Join(delivered, " "), "message": sent["body"],
	} {
		require.NotContains(t, text, notifytest.Secret, place)
	}
	recordHistory(t, s, run, "notified")
}

// requireToldOfItsSnooze lets the snooze of the first incident end, and waits until people are told.
func requireToldOfItsSnooze(t *testing.T, s *site) {
	t.Helper()
	until := time.Now().UTC().Truncate(time.Millisecond)
	_, err := s.records().Acknowledge(t.Context(), "incident-1", &escalation.Acknowledgement{Actor: "ada", At: until, Until: until})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		incident, err := s.records().Incident(t.Context(), "incident-1")
		require.NoError(t, err)
		return incident.Acknowledged == nil
	}, testTimeout, 100*time.Millisecond)
	delivery := fmt.Sprintf("incident-1/snooze/%d", until.UnixMilli())
	described, err := s.client.DescribeWorkflowExecution(t.Context(), delivery, "")
	require.NoError(t, err)
	require.Equal(t, workflows.DeliveryWorkflow, described.GetWorkflowExecutionInfo().GetType().GetName())
	require.NoError(t, s.client.TerminateWorkflow(t.Context(), delivery, "", "seen"))
}

// TestADeadAddressKeepsNoChainOpen resolves a fault while one of two notification targets has no server. The chain
// ends, and its records name the host that does not answer and the setting that names it. The message stays on its way.
func TestADeadAddressKeepsNoChainOpen(t *testing.T) {
	t.Parallel()
	well := notifytest.Start(t)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	claude := simtest.Install(t, claudesim.Play(concluding("haiku", asksFor(2)), concluding("sonnet", resolved())))
	s := startSite(t, startTemporal(t), environment(t, claude,
		"CLAUDEOPS_NOTIFY_URLS=generic://"+gone.Addr().String()+"/hook?disabletls=yes,"+well.Apprise()))
	run := s.start(nil)
	chain, err := s.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
	require.Len(t, well.Received(), 1)
	untold := slices.DeleteFunc(chain.Events, func(event escalation.Event) bool { return event.Kind != escalation.EventNotNotified })
	require.Len(t, untold, 1)
	require.Contains(t, untold[0].Message, gone.Addr().String())
	require.Contains(t, untold[0].Message, "CLAUDEOPS_NOTIFY_URLS")
	delivery := chain.ID + "/delivery/" + run.GetRunID() + "/notification/1"
	described, err := s.client.DescribeWorkflowExecution(t.Context(), delivery, "")
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, described.GetWorkflowExecutionInfo().GetStatus(), "it is tried again")
	require.NoError(t, s.client.TerminateWorkflow(t.Context(), delivery, "", "seen"))
}

// historyOf returns everything that Temporal stores about a run, as text.
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
