package workflows_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/proxy"
	"google.golang.org/protobuf/proto"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/encryption"
)

// updateCost makes TestCostOfTemporal write the figures into docs/sizing.md.
var updateCost = flag.Bool("update", false, "write the figures of docs/sizing.md")

// The figures of docs/sizing.md are between these lines.
const (
	countedFrom = "<!-- counted: go test ./workflows -run TestCostOfTemporal -update -->\n"
	countedTo   = "<!-- end of what is counted -->"
)

// usage counts the usage of Temporal by one or more workflow runs.
type usage struct {
	events, actions, payloads, bytes, encryptedBytes float64
	// agents is the number of agents' sessions of each tier.
	agents map[escalation.Tier]float64
}

// plus returns the sum of u and times as much of other.
func (u usage) plus(times float64, other usage) usage {
	sum := usage{
		events:         u.events + times*other.events,
		actions:        u.actions + times*other.actions,
		payloads:       u.payloads + times*other.payloads,
		bytes:          u.bytes + times*other.bytes,
		encryptedBytes: u.encryptedBytes + times*other.encryptedBytes,
		agents:         map[escalation.Tier]float64{},
	}
	for _, tier := range escalation.Tiers() {
		sum.agents[tier] = u.agents[tier] + times*other.agents[tier]
	}
	return sum
}

// heartbeats returns the number of heartbeats of the agents, if one comes at every interval. The first one comes at
// once.
func (u usage) heartbeats(interval time.Duration) float64 {
	var sum float64
	for tier, sessions := range u.agents {
		sum += sessions * (1 + float64(assumedDuration[tier]/interval))
	}
	return sum
}

// assumedDuration is the assumed duration of a session of each tier. docs/sizing.md states these durations.
var assumedDuration = map[escalation.Tier]time.Duration{1: 2 * time.Minute, 2: 5 * time.Minute, 3: 15 * time.Minute}

// count returns the usage of Temporal by the run of a history. It uses Temporal Cloud's definition of actions
// (https://docs.temporal.io/cloud/actions). Heartbeats and queries are not in histories.
func count(t *testing.T, history *historypb.History, keys *encryption.Keys) usage {
	t.Helper()
	used := usage{events: float64(len(history.GetEvents())), bytes: float64(proto.Size(history)), agents: map[escalation.Tier]float64{}}
	tiers := map[int64]escalation.Tier{}
	markers := map[int64]bool{}
	for _, event := range history.GetEvents() {
		switch event.GetEventType() { // the others are no actions
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, enumspb.EVENT_TYPE_TIMER_STARTED,
			enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
			enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED, enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
			used.actions++ // the start of a child counts in the child's own history, too
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled.GetActivityType().GetName() == "RunTier" {
				var input struct {
					Tier escalation.Tier `json:"tier"`
				}
				require.NoError(t, json.Unmarshal(scheduled.GetInput().GetPayloads()[0].GetData(), &input))
				tiers[event.GetEventId()] = input.Tier
			}
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
			started := event.GetActivityTaskStartedEventAttributes()
			used.actions += float64(started.GetAttempt())
			if tier, is := tiers[started.GetScheduledEventId()]; is {
				used.agents[tier]++
			}
		case enumspb.EVENT_TYPE_MARKER_RECORDED: // all of a workflow task are one action
			if task := event.GetMarkerRecordedEventAttributes().GetWorkflowTaskCompletedEventId(); !markers[task] {
				markers[task] = true
				used.actions++
			}
		}
	}
	encrypted := proto.CloneOf(history)
	for _, event := range encrypted.GetEvents() {
		require.NoError(t, proxy.VisitPayloads(t.Context(), event, proxy.VisitPayloadsOptions{
			SkipSearchAttributes: true,
			Visitor: func(_ *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
				used.payloads += float64(len(payloads))
				return encryption.NewCodec(keys).Encode(payloads)
			},
		}))
	}
	used.encryptedBytes = float64(proto.Size(encrypted))
	return used
}

// TestCostOfTemporal computes the usage of Temporal by chains, from histories that a real server has recorded.
func TestCostOfTemporal(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(file, []byte("2026-11 "+strings.Repeat("A", 43)+"=\n"), 0o600))
	keys, err := encryption.ReadKeys(file)
	require.NoError(t, err)
	of := func(branch string) usage {
		return count(t, readHistory(t, filepath.Join("testdata", branch+".json")), keys)
	}

	// A schedule's execution is two actions, and the start of its workflow is in the cycle's history.
	cycle := usage{actions: 2}.plus(1, of("cycle"))
	healthy, two, three, gate := of("healthy"), of("notified"), of("three_tiers"), of("gate_fixed")
	perCycle := cycle.plus(0.95, healthy).plus(0.03, two).plus(0.01, three).plus(0.01, gate)

	text := &strings.Builder{}
	write := func(format string, args ...any) { _, _ = fmt.Fprintf(text, format, args...) }
	const cloud, embedded = 10 * time.Second, time.Second
	row := func(what string, u usage) {
		write("| %s | %.0f | %.1f | %.1f | %.0f | %.0f | %.0f | **%.0f** |\n", what, u.events, u.bytes/1024, u.encryptedBytes/1024,
			u.payloads, u.actions, u.heartbeats(cloud), u.actions+u.heartbeats(cloud))
	}
	write("\n| workflow | events | KB | KB encrypted | payloads | actions | heartbeats | actions in all |\n|---|---|---|---|---|---|---|---|\n")
	row("a cycle of a schedule, without its chain", cycle)
	row("chain: healthy", healthy)
	row("chain: Tier 2 repairs, people are notified", two)
	row("chain: three tiers", three)
	row("chain: a person answers at a gate, and the tier runs again", gate)
	write("\n| cycles a day | events a day | MB a day | actions a day | of these heartbeats | actions in 30 days | the same with a heartbeat each second |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, cycles := range []float64{10, 100, 1_000} {
		day := usage{}.plus(cycles, perCycle)
		beats := day.heartbeats(cloud)
		write("| %.0f | %.0f | %.1f | %.0f | %.0f | **%.0f** | %.0f |\n", cycles, day.events, day.bytes/(1<<20), day.actions+beats, beats,
			30*(day.actions+beats), 30*(day.actions+day.heartbeats(embedded)))
	}
	write("\n")

	page := filepath.Join("..", "docs", "sizing.md")
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(content), countedFrom)
	require.True(t, found)
	_, after, found := strings.Cut(rest, countedTo)
	require.True(t, found)
	want := before + countedFrom + text.String() + countedTo + after
	if *updateCost {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(content), "run this test with -update")
}
