package systemtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// TestFaultConversationWorkerKilled holds a conversation of ten turns, and kills the worker during each of them: five
// times in a tool call, and five times at points around the activities. No message is lost, each is answered once and
// in order, and no answer is paid for twice.
func TestFaultConversationWorkerKilled(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	marks := t.TempDir()
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "ended before it was done"}, claudesim.Conclude(escalation.TalkReply{Reply: "gone on"})),
		claudesim.On(claudesim.Match{Prompt: "linger"}, claudesim.Bash(`touch "`+marks+`/$CLAUDEOPS_SESSION_ID"; sleep 600`)),
		saying("", "yes")))
	environ := environment(t, claude, "CLAUDEOPS_TIER1_TOOLS=Bash", "TEMPORAL_ADDRESS="+address)
	conversation := siteOf(t, c, environ).talk()
	points := []point{
		after("StoreMessage", 1), after("OpenSession", 1), before("RunTalk", 1), after("RunTalk", 1), after("EndTurn", 1),
	}
	for turn := 1; turn <= 2*len(points); turn++ {
		if turn%2 == 1 {
			p := points[turn/2]
			once := filepath.Join(t.TempDir(), "once")
			require.NoError(t, os.WriteFile(once, nil, 0o600))
			first := startRole(t, "worker", nil, append(environ, pointVariable+"="+p.String(), onceVariable+"="+once)...)
			died := make(chan error, 1)
			go func() { died <- first.Wait() }()
			var sent sync.WaitGroup
			sent.Go(func() { conversation.send(fmt.Sprint("m-", turn), "plain?") })
			require.Error(t, <-died, "it kills itself at %s", p)
			second := startWorker(t, environ, address)
			sent.Wait()
			require.Equal(t, escalation.TalkAnswered, conversation.await(turn).State, "%s", p)
			second.drain(t)
			continue
		}
		first := startWorker(t, environ, address)
		require.Equal(t, turn, conversation.send(fmt.Sprint("m-", turn), "linger"))
		require.Eventually(t, func() bool {
			files, err := os.ReadDir(marks)
			return err == nil && len(files) == turn/2
		}, testTimeout, 20*time.Millisecond)
		require.Eventually(t, func() bool { return len(conversation.heartbeat(conversation.id()).InFlight) > 0 },
			testTimeout, 20*time.Millisecond, "no heartbeat tells of the call")
		first.kill(t)
		second := startWorker(t, environ, address)
		ended := conversation.await(turn)
		require.Equal(t, "gone on", ended.Reply, ended.Failure)
		second.drain(t)
	}

	records := conversation.records()
	sessions := conversation.sessionsOf(records)
	require.Len(t, sessions, 2*len(points), "one session for each message")
	for i := range sessions {
		require.Equal(t, escalation.SessionCompleted, sessions[i].Status)
		if i > 0 {
			require.Equal(t, sessions[i-1].ID, sessions[i].ParentID, "each turn forks the one before")
		}
	}
	replies := 0
	for _, request := range simtest.Requests(t, claude) {
		if strings.Contains(request.Prompt(), "plain?") {
			replies++
		}
	}
	require.Equal(t, len(points), replies, "no answer is paid for twice")
	turns, err := records.TalkTurns(t.Context(), conversation.id(), 100)
	require.NoError(t, err)
	require.Len(t, turns, 2*len(points))
	var told int
	for _, launch := range simtest.Launches(t, claude) {
		if strings.Contains(launch.Stdin, "ended before it was done") && strings.Contains(launch.Stdin, "sleep 600") {
			told++
		}
	}
	require.Equal(t, len(points), told, "each turn that was killed in a call is told what was in flight")
}

// conversationWorker is a worker for conversations whose sessions are functions, so that a test can have hundreds of
// turns.
type conversationWorker struct {
	*store.Store
	// most is the largest number of sessions that ran at the same time.
	mu            sync.Mutex
	running, most int
	order         []int
}

// RunTalk replaces the activity of the agents.
func (w *conversationWorker) RunTalk(ctx context.Context, input activities.RunTalkInput) (activities.RunTalkResult, error) {
	w.mu.Lock()
	w.running++
	w.most = max(w.most, w.running)
	w.order = append(w.order, input.Turn)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.running--
	}()
	report := escalation.Report{Status: escalation.SessionCompleted, ReportedSessionID: input.SessionID, Cost: escalation.Cost{CostUSD: 0.01}, Attempts: 1}
	err := w.KeepReply(ctx, escalation.TalkSession{ConversationID: input.ConversationID, Turn: input.Turn, SessionID: input.SessionID},
		escalation.TalkReply{Reply: fmt.Sprint("reply ", input.Turn)}, report)
	return activities.RunTalkResult{Report: report, Replied: err == nil, EndedAt: time.Now()}, err
}

func (w *conversationWorker) ContextWindow(context.Context, string) (int, error) { return 0, nil }

// startConversationWorker starts a worker whose conversations continue as new from the given length of the history.
func startConversationWorker(t *testing.T, s *site, limit int) *conversationWorker {
	t.Helper()
	w := &conversationWorker{Store: s.records()}
	policy := escalation.Policy{Tiers: []escalation.TierPolicy{{Model: "sonnet", Timeout: escalation.Duration(time.Minute)}}, ResumeThreshold: 0.8}
	chains := worker.New(s.client, s.cfg.Worker.TaskQueue, worker.Options{})
	chains.RegisterWorkflowWithOptions(workflows.NewConversation(limit), workflow.RegisterOptions{Name: workflows.ConversationWorkflow})
	chains.RegisterActivity(&activities.Settings{TalkPolicy: policy, Windows: w})
	chains.RegisterActivity(&activities.Records{Store: w.Store})
	agents := worker.New(s.client, workflows.TalksTaskQueue(s.cfg.Worker.TaskQueue), worker.Options{DisableWorkflowWorker: true})
	agents.RegisterActivityWithOptions(w.RunTalk, activity.RegisterOptions{Name: "RunTalk"})
	require.NoError(t, chains.Start())
	require.NoError(t, agents.Start())
	t.Cleanup(func() {
		agents.Stop()
		chains.Stop()
	})
	return w
}

// TestConversationContinuesAsNew continues as new at every turn, while four clients send, wait and send again what they
// have sent before.
func TestConversationContinuesAsNew(t *testing.T) {
	t.Parallel()
	s := siteOf(t, startTemporal(t), environment(t, "claude"))
	w := startConversationWorker(t, s, 12) // a run begins with 3 events, and a turn has more than 20
	c := s.talk()
	const clients, each = 4, 10
	var sending sync.WaitGroup
	for number := range clients {
		sending.Go(func() {
			for i := range each {
				id := fmt.Sprintf("client-%d-%d", number, i)
				turn := c.send(id, "message "+id)
				if turn != c.send(id, "message "+id) {
					t.Errorf("message %s was counted twice", id)
				}
				if i%3 == 0 {
					if found := c.await(turn); found.Reply != fmt.Sprint("reply ", turn) {
						t.Errorf("turn %d has the answer %q", turn, found.Reply)
					}
				}
			}
		})
	}
	sending.Wait()
	require.Equal(t, escalation.TalkAnswered, c.await(clients*each).State)
	require.Equal(t, 1, w.most, "one at a time")
	require.Len(t, w.order, clients*each, "each message is answered once")
	for i, turn := range w.order {
		require.Equal(t, i+1, turn, "in order")
	}
	sessions := c.sessionsOf(w.Store)
	for i := range sessions[1:] {
		require.Equal(t, sessions[i].ID, sessions[i+1].ParentID)
	}
	described, err := s.client.DescribeWorkflowExecution(t.Context(), c.id(), "")
	require.NoError(t, err)
	require.Less(t, described.GetWorkflowExecutionInfo().GetHistoryLength(), int64(150), "the last run is short")
	require.NotEqual(t, described.GetWorkflowExecutionInfo().GetExecution().GetRunId(), described.GetWorkflowExecutionInfo().GetFirstRunId())
	recordHistory(t, s, s.client.GetWorkflow(t.Context(), c.id(), described.GetWorkflowExecutionInfo().GetFirstRunId()), "conversation_continued")
	recordHistory(t, s, c.end(), "conversation_carried")
}

// TestConversationStaysSmall checks that the history of a long conversation stays small. The conversation continues as
// new about every 50 turns, so more turns would find nothing else.
func TestConversationStaysSmall(t *testing.T) {
	t.Parallel()
	s := siteOf(t, startTemporal(t), environment(t, "claude"))
	startConversationWorker(t, s, 1_500)
	c := s.talk()
	const turns = 120
	var tenth, last time.Duration
	var largest int64
	for turn := 1; turn <= turns; turn++ {
		began := time.Now()
		require.Equal(t, turn, c.send(fmt.Sprint("m-", turn), strings.Repeat("how is jellyfin? ", 10)))
		require.Equal(t, escalation.TalkAnswered, c.await(turn).State)
		if turn == 10 {
			tenth = time.Since(began)
		}
		last = time.Since(began)
		if turn%5 == 0 {
			described, err := s.client.DescribeWorkflowExecution(t.Context(), c.id(), "")
			require.NoError(t, err)
			largest = max(largest, described.GetWorkflowExecutionInfo().GetHistorySizeBytes())
		}
	}
	require.Less(t, largest, int64(1_000_000))
	t.Logf("conversation: %d turns, largest history %d bytes; turn 10 took %s, the last one %s", turns, largest, tenth, last)
	c.end()
}
