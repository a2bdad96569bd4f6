package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/embedded"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// quickCLI is the format of a script that replaces claude. Its values are the version, the seconds to wait, and the
// verdicts escalate and resolved. The script prints the output of the real CLI, and takes some milliseconds instead
// of hundreds. The verdict depends on the model: haiku and sonnet escalate, opus has resolved the problem.
const quickCLI = `#!/bin/sh
while [ $# -gt 0 ]; do
	case $1 in
	--version) echo '%[1]s (Claude Code)'; exit ;;
	--session-id) id=$2; shift ;;
	--model) model=$2; shift ;;
	esac
	shift
done
cat >/dev/null
[ %[2]d = 0 ] || sleep %[2]d
verdict='%[3]s'
[ "$model" = opus ] && verdict='%[4]s'
verdict="{\"services_affected\":[\"web-$id\"],${verdict#?}" # of its own: no chain waits for another one
usage='"usage":{"input_tokens":100,"cache_creation_input_tokens":50,"cache_read_input_tokens":1000,"output_tokens":42}'
echo '{"type":"system","subtype":"init","session_id":"'$id'","tools":["Bash","StructuredOutput"],"model":"'$model'","permissionMode":"dontAsk","claude_code_version":"%[1]s"}'
echo '{"type":"assistant","message":{"id":"msg_1","type":"message","role":"assistant","model":"'$model'","content":[{"type":"text","text":"done"}],'$usage'},"session_id":"'$id'"}'
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":2,"duration_api_ms":5,"session_id":"'$id'","total_cost_usd":0.01,'$usage',"modelUsage":{"'$model'":{"inputTokens":100,"outputTokens":42,"cacheReadInputTokens":1000,"cacheCreationInputTokens":50,"costUSD":0.01,"contextWindow":200000}},"permission_denials":[],"terminal_reason":"completed","result":"done","structured_output":'"$verdict"'}'
`

const (
	// tiers is the number of sessions of a chain.
	tiers = 3
	// manyChains is the number of chains that run at the same time.
	manyChains = 200
)

// plant holds a worker process, and a client of the Temporal server that the benchmark itself runs. The field cli is
// the program of the agents.
type plant struct {
	b      *testing.B
	client client.Client
	worker *exec.Cmd
	cli    string
	// records are the worker's, opened again.
	records *store.Store
}

// startPlant builds and starts the worker. Each run of its CLI takes the given number of seconds.
func startPlant(b *testing.B, seconds int, environ ...string) *plant {
	b.Helper()
	dir := b.TempDir()
	program, cli := filepath.Join(dir, "worker"), filepath.Join(dir, "claude")
	build := exec.CommandContext(b.Context(), "go", "build", "-ldflags", "-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released
	output, err := build.CombinedOutput()
	require.NoError(b, err, string(output))
	encoded := func(status escalation.VerdictStatus) string {
		verdict, err := json.Marshal(escalation.Verdict{Status: status, Summary: "the web server does not answer"})
		require.NoError(b, err)
		return string(verdict)
	}
	script := fmt.Sprintf(quickCLI, claudesim.VersionNew, seconds, encoded(escalation.VerdictEscalate), encoded(escalation.VerdictResolved))
	require.NoError(b, process.WriteProgram(cli, []byte(script)))
	logger := slog.New(slog.DiscardHandler)
	server, err := embedded.Start(b.Context(), embedded.Options{NoUI: true, Logger: logger})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, server.Stop()) })
	c, err := client.DialContext(b.Context(), client.Options{HostPort: server.Address(), Logger: log.NewStructuredLogger(logger)})
	require.NoError(b, err)
	b.Cleanup(c.Close)
	p := &plant{b: b, client: c, worker: exec.CommandContext(context.WithoutCancel(b.Context()), program), cli: cli} // b.Context ends before the cleanup
	p.worker.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, simtest.WorkersUser, "CLAUDEOPS_STATE_DIR=" + filepath.Join(dir, "state"),
		"CLAUDEOPS_CLAUDE=" + cli, "TEMPORAL_ADDRESS=" + server.Address(), "CLAUDEOPS_POLICY_FILE=" + simtest.OpenPolicy(b),
		"CLAUDEOPS_LOG_LEVEL=warn", "CLAUDEOPS_ESCALATION_LIMIT=none", "CLAUDEOPS_MAX_CONCURRENT_AGENTS=" + strconv.Itoa(manyChains),
	}, environ...)
	p.worker.Stderr = b.Output()
	require.NoError(b, p.worker.Start())
	b.Cleanup(func() {
		require.NoError(b, p.worker.Process.Signal(os.Interrupt))
		require.NoError(b, p.worker.Wait())
	})
	p.chain() // afterwards the worker polls, and all programs are in memory
	cfg, err := config.Load(p.worker.Env)
	require.NoError(b, err)
	p.records, err = supervisor.OpenStore(b.Context(), cfg)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, p.records.Close()) })
	return p
}

// chain runs a chain to its end and returns its workflow run.
func (p *plant) chain() client.WorkflowRun {
	p.b.Helper()
	run, err := p.client.ExecuteWorkflow(p.b.Context(), client.StartWorkflowOptions{TaskQueue: "claudeops"}, workflows.ChainWorkflow)
	require.NoError(p.b, err)
	var chain workflows.ChainResult
	require.NoError(p.b, run.Get(p.b.Context(), &chain))
	require.Equal(p.b, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
	require.Len(p.b, chain.Sessions, tiers)
	return run
}

// loop runs the CLI three times, with the models of a chain.
func (p *plant) loop() error {
	for _, model := range []string{"haiku", "sonnet", "opus"} {
		command := exec.CommandContext(p.b.Context(), p.cli, "-p", "--output-format", "stream-json", "--verbose",
			"--model", model, "--session-id", uuid.NewString())
		command.Stdin, command.Stdout = strings.NewReader("look"), io.Discard
		if err := command.Run(); err != nil {
			return err
		}
	}
	return nil
}

// cpu returns the CPU time of the worker and of the child processes that it has waited for.
func (p *plant) cpu() time.Duration {
	p.b.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.worker.Process.Pid))
	require.NoError(p.b, err)
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	var ticks int
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		count, err := strconv.Atoi(string(field))
		require.NoError(p.b, err)
		ticks += count
	}
	return time.Duration(ticks) * time.Second / 100 // USER_HZ of the kernel is 100
}

// watched returns settings with which a worker serves metrics, and sends traces to a receiver that discards them.
func watched(b *testing.B) []string {
	b.Helper()
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	b.Cleanup(receiver.Close)
	listener, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	require.NoError(b, err)
	require.NoError(b, listener.Close())
	return []string{"CLAUDEOPS_METRICS_ADDRESS=" + listener.Addr().String(), "OTEL_EXPORTER_OTLP_ENDPOINT=" + receiver.URL}
}

// BenchmarkTier compares chains with the same CLI runs in a loop. The CLI takes no time, or one second. A watched
// worker has metrics and traces.
func BenchmarkTier(b *testing.B) {
	for _, variant := range []struct {
		name     string
		seconds  int
		settings func(*testing.B) []string
	}{
		{name: "0s"}, {name: "1s", seconds: 1}, {name: "0s_watched", settings: watched},
	} {
		b.Run(variant.name, func(b *testing.B) {
			var settings []string
			if variant.settings != nil {
				settings = variant.settings(b)
			}
			p := startPlant(b, variant.seconds, settings...)
			var chains, loops, work time.Duration
			var run client.WorkflowRun
			for b.Loop() {
				began := time.Now()
				require.NoError(b, p.loop())
				loops += time.Since(began)
				before := p.cpu()
				began = time.Now()
				run = p.chain()
				chains += time.Since(began)
				work += p.cpu() - before
			}
			n := float64(b.N)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric((chains-loops).Seconds()*1000/n/tiers, "ms-over-the-cli/tier")
			b.ReportMetric(chains.Seconds()/loops.Seconds(), "chain/loop")
			b.ReportMetric(work.Seconds()*1000/n/tiers, "ms-cpu/tier")
			described, err := p.client.DescribeWorkflowExecution(b.Context(), run.GetID(), run.GetRunID())
			require.NoError(b, err)
			info := described.GetWorkflowExecutionInfo()
			b.ReportMetric(float64(info.GetHistoryLength()), "events/chain")
			b.ReportMetric(float64(info.GetHistorySizeBytes())/1024, "KB/chain")
		})
	}
}

// talkingCLI replaces claude in conversations. It keeps a transcript, and replies with the times of its start and of
// its end, in nanoseconds.
const talkingCLI = `#!/bin/sh
now=$(date +%%s%%N)
while [ $# -gt 0 ]; do
	case $1 in
	--version) echo '%[1]s (Claude Code)'; exit ;;
	--session-id) id=$2; shift ;;
	--resume) parent=$2; shift ;;
	--model) model=$2; shift ;;
	esac
	shift
done
cat >/dev/null
dir=$CLAUDE_CONFIG_DIR/projects/$(printf %%s "$PWD" | sed 's/[^A-Za-z0-9]/-/g')
mkdir -p "$dir"
[ -z "$parent" ] || sed "s/\"sessionId\":\"$parent\"/\"sessionId\":\"$id\"/" "$dir/$parent.jsonl" >"$dir/$id.jsonl"
cat >>"$dir/$id.jsonl" <<END
{"type":"user","uuid":"u-$id","parentUuid":"${parent:+a-$parent}","sessionId":"$id","message":{"role":"user","content":"how is jellyfin?"}}
{"type":"assistant","uuid":"a-$id","parentUuid":"u-$id","sessionId":"$id","message":{"role":"assistant","content":"It answers."}}
END
usage='"usage":{"input_tokens":100,"cache_creation_input_tokens":50,"cache_read_input_tokens":1000,"output_tokens":42}'
echo '{"type":"system","subtype":"init","session_id":"'$id'","tools":["Bash","StructuredOutput"],"model":"'$model'","permissionMode":"dontAsk","claude_code_version":"%[1]s"}'
echo '{"type":"assistant","message":{"id":"msg_1","type":"message","role":"assistant","model":"'$model'","content":[{"type":"text","text":"done"}],'$usage'},"session_id":"'$id'"}'
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":2,"duration_api_ms":5,"session_id":"'$id'","total_cost_usd":0.01,'$usage',"modelUsage":{"'$model'":{"inputTokens":100,"outputTokens":42,"cacheReadInputTokens":1000,"cacheCreationInputTokens":50,"costUSD":0.01,"contextWindow":200000}},"permission_denials":[],"terminal_reason":"completed","result":"done","structured_output":{"reply":"'$now $(date +%%s%%N)'"}}'
`

const (
	// talkTurns is the number of turns of the long conversation.
	talkTurns = 500
	// latePairs is the number of its last turns that are compared with as many of its first ones, and of a new
	// conversation.
	latePairs = 40
	// firstTurns is the number of turns that do not count, at the beginning of a conversation.
	firstTurns = 5
)

// BenchmarkConversation measures the time from sending a message to the start of the CLI. It compares the last turns of
// a long conversation with the first ones, and with those of a new conversation. Turns of the two alternate, so that
// only the length of the conversation differs: not the age of the installation, nor what else the machine does.
func BenchmarkConversation(b *testing.B) {
	p := startPlant(b, 0, "CLAUDEOPS_DAY_BUDGET_USD=0")
	require.NoError(b, process.WriteProgram(p.cli, fmt.Appendf(nil, talkingCLI, claudesim.VersionNew)))
	long, young := talk{plant: p, id: workflows.ConversationWorkflowID("long")}, talk{plant: p, id: workflows.ConversationWorkflowID("young")}
	var largest int64
	for b.Loop() {
		for number := 1; number <= talkTurns; number++ {
			long.say(number)
			if late := number - (talkTurns - latePairs); late > 0 {
				young.say(late)
			}
			if number%10 == 0 {
				described, err := p.client.DescribeWorkflowExecution(b.Context(), long.id, "")
				require.NoError(b, err)
				largest = max(largest, described.GetWorkflowExecutionInfo().GetHistorySizeBytes())
			}
		}
		for _, id := range []string{long.id, young.id} {
			require.NoError(b, p.client.TerminateWorkflow(b.Context(), id, "", "the next one begins anew"))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(largest)/1024, "KB-history")
	b.ReportMetric(medianMS(long.turns[firstTurns:], talkTurn.toTheCLI), "ms-to-the-cli")
	for name, turns := range map[string][]talkTurn{
		"early": long.turns[firstTurns:latePairs], "late": long.turns[len(long.turns)-latePairs+firstTurns:],
		"young": young.turns[len(young.turns)-latePairs+firstTurns:],
	} {
		b.ReportMetric(medianMS(turns, talkTurn.all), "ms/"+name)
		b.ReportMetric(medianMS(turns, talkTurn.ours), "ms-ours/"+name)
		b.ReportMetric(medianMS(turns, talkTurn.toTheCLI), "ms-to-the-cli/"+name)
		b.ReportMetric(meanCPU(turns), "ms-cpu/"+name)
	}
}

// talk is a conversation with its turns so far.
type talk struct {
	*plant

	id    string
	turns []talkTurn
}

// talkTurn holds the times of a turn: of the message, of the CLI's start and end, and of the answer. The field cpu is
// the CPU time of the worker and of the CLI.
type talkTurn struct {
	sent, started, ended, answered time.Time

	cpu time.Duration
}

func (t talkTurn) all() time.Duration      { return t.answered.Sub(t.sent) }
func (t talkTurn) ours() time.Duration     { return t.all() - t.ended.Sub(t.started) }
func (t talkTurn) toTheCLI() time.Duration { return t.started.Sub(t.sent) }

// medianMS returns the median of a time over turns, in milliseconds.
func medianMS(turns []talkTurn, of func(talkTurn) time.Duration) float64 {
	var all []time.Duration
	for _, turn := range turns {
		all = append(all, of(turn))
	}
	slices.Sort(all)
	return all[len(all)/2].Seconds() * 1000
}

// meanCPU returns the mean CPU time of turns, in milliseconds. A single turn is shorter than what the kernel can tell.
func meanCPU(turns []talkTurn) float64 {
	var all time.Duration
	for _, turn := range turns {
		all += turn.cpu
	}
	return all.Seconds() * 1000 / float64(len(turns))
}

// say sends a message, and waits for the end of its turn.
func (t *talk) say(number int) {
	t.b.Helper()
	before, sent := t.cpu(), time.Now()
	turn := t.plant.say(t.id, number)
	answered, after := time.Now(), t.cpu()
	var started, ended int64
	_, err := fmt.Sscan(turn.Reply, &started, &ended)
	require.NoError(t.b, err, "%s%s", turn.Reply, turn.Failure)
	require.Empty(t.b, turn.Note)
	t.turns = append(t.turns, talkTurn{sent, time.Unix(0, started), time.Unix(0, ended), answered, after - before})
}

// say sends a message, and waits for the end of its turn.
func (p *plant) say(id string, number int) (turn escalation.TalkTurn) {
	p.b.Helper()
	ctx := p.b.Context()
	begin := p.client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: id, TaskQueue: "claudeops", WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, workflows.ConversationWorkflow, workflows.ConversationInput{})
	update, err := p.client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: begin,
		UpdateOptions: client.UpdateWorkflowOptions{
			WorkflowID: id, UpdateName: workflows.SendMessage, WaitForStage: client.WorkflowUpdateStageCompleted,
			Args: []any{escalation.TalkMessage{MessageID: fmt.Sprint("m-", number), Text: "how is jellyfin?", Actor: "ada"}},
		},
	})
	require.NoError(p.b, err)
	var sent workflows.Sent
	require.NoError(p.b, update.Get(ctx, &sent))
	for !turn.State.Final() {
		time.Sleep(time.Millisecond)
		turn, err = p.records.TalkTurn(ctx, id, sent.Turn)
		require.NoError(p.b, err)
	}
	return turn
}

const (
	// parkedFirst is the number of parked chains at the first measurement of memory. parkedMore is the number of chains
	// that are parked after it.
	parkedFirst, parkedMore = 200, 1000
)

// BenchmarkParked measures the worker's memory for each chain that waits at a gate.
func BenchmarkParked(b *testing.B) {
	var grown float64
	for b.Loop() {
		p := startPlant(b, 0, "CLAUDEOPS_MAX_CONCURRENT_AGENTS=4", "CLAUDEOPS_GATE_TIMEOUT=72h")
		p.park(parkedFirst)
		before := p.residentKB()
		p.park(parkedFirst + parkedMore)
		grown += p.residentKB() - before
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(grown/parkedMore/float64(b.N), "KB/chain")
}

// park starts chains that end at a gate, until the given number is parked. Tier 1 asks for a tier that the chain does
// not allow.
func (p *plant) park(chains int) {
	p.b.Helper()
	ctx := p.b.Context()
	parked := func() int {
		count, err := p.client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Query: fmt.Sprintf("%s = 'open'", workflows.GateAttribute.GetName()),
		})
		require.NoError(p.b, err)
		return int(count.GetCount())
	}
	for range chains - parked() {
		_, err := p.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: "claudeops"}, workflows.ChainWorkflow,
			workflows.ChainInput{MaxTier: escalation.TierObserve, Force: true}) // all have the same fault
		require.NoError(p.b, err)
	}
	for before := -1; before < chains; { // a busy machine needs long, but it gets on
		require.Eventually(p.b, func() bool { return parked() > before }, 5*time.Minute, 100*time.Millisecond)
		before = parked()
	}
}

// residentKB returns the memory of the worker process, in KB.
func (p *plant) residentKB() float64 {
	p.b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.worker.Process.Pid))
	require.NoError(p.b, err)
	resident := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(p.b, resident)
	kilobytes, err := strconv.ParseFloat(string(resident[1]), 64)
	require.NoError(p.b, err)
	return kilobytes
}

// BenchmarkManyChains runs many chains at once on one worker. For comparison it also runs the same number of loops at
// once. Each tier takes 2 s.
func BenchmarkManyChains(b *testing.B) {
	p := startPlant(b, 2)
	atOnce := func(run func() error) time.Duration {
		began := time.Now()
		var all errgroup.Group
		for range manyChains {
			all.Go(run)
		}
		require.NoError(b, all.Wait())
		return time.Since(began)
	}
	var chains, loops time.Duration
	for b.Loop() {
		loops += atOnce(p.loop)
		chains += atOnce(func() error { p.chain(); return nil })
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(loops.Seconds()/float64(b.N), "s-loops")
	b.ReportMetric(chains.Seconds()/float64(b.N), "s-chains")
	b.ReportMetric(chains.Seconds()/loops.Seconds(), "chains/loops")
}
