//go:build soak

package deploy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

const (
	// processChains is the number of chains that run when a host is lost. processLosses is the number of losses.
	processChains = 40
	processLosses = 2
	// processLimit limits every wait.
	processLimit = 10 * time.Minute
)

// TestSoakComposeAsProcesses follows docs/compose.md without containers: PostgreSQL, Temporal on PostgreSQL, and two
// workers with separate state directories. The chain of the page must be resolved. Then the test starts many chains,
// and several times destroys a host with its state directory and starts the host again.
func TestSoakComposeAsProcesses(t *testing.T) {
	steps := processSteps(t)
	host := newProcessHost(t)
	host.run("temporal-server validate-dynamic-config deploy/compose/temporal-dynamicconfig.yaml")
	for _, step := range steps[:len(steps)-1] {
		host.run(step)
	}
	require.Contains(t, host.said(), "resolved")

	began := time.Now()
	c, err := client.DialContext(t.Context(), client.Options{HostPort: host.ports["7233"], Namespace: "claudeops"})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	var runs []client.WorkflowRun
	for i := range processChains {
		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: fmt.Sprintf("chain-%d", i), TaskQueue: "claudeops"},
			workflows.ChainWorkflow, map[string]any{"services": []string{fmt.Sprintf("service-%d", i)}})
		require.NoError(t, err)
		runs = append(runs, run)
	}
	job := 2 // the shell's number of the worker on host 1
	for loss := range processLosses {
		host.awaitAgents(loss + 1)
		host.run(fmt.Sprintf(`kill -KILL %%%d; wait %%%d || true; until rm -rf "$DATA/host-1" 2>/dev/null; do sleep 0.1; done; : >"$EFFECTS/host-1"`, job, job))
		job = loss + 4
		host.run(`CLAUDEOPS_STATE_DIR="$DATA/host-1" CLAUDEOPS_METRICS_ADDRESS=127.0.0.1:9464 worker >>"$DATA/worker-1.log" 2>&1 &`)
	}
	again := 0
	ctx, cancel := context.WithTimeout(t.Context(), processLimit)
	defer cancel()
	for i, run := range runs {
		var chain escalation.Chain
		require.NoError(t, run.Get(ctx, &chain))
		require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s: %s", run.GetID(), chain.Reason)
		acted, err := os.ReadFile(filepath.Join(host.effects, fmt.Sprintf("chain-%d", i)))
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(acted), "\n"), "%s must act exactly once", run.GetID())
		for s := range chain.Sessions {
			again += chain.Sessions[s].Attempts - 1
		}
	}
	require.Positive(t, again, "the lost host must have had sessions")
	host.requireNoOpenRecords()
	host.run(strings.ReplaceAll(steps[len(steps)-1], "%2", fmt.Sprintf("%%%d", job)))
	t.Logf("soak: compose as processes: chains=%d chains_lost=0 acted_twice=0 hosts_lost=%d repeated_attempts=%d took=%s",
		processChains, processLosses, again, time.Since(began).Round(time.Second))
}

// processSteps returns the shell blocks of the page's section.
func processSteps(t *testing.T) (steps []string) {
	t.Helper()
	_, section, found := strings.Cut(read(t, "../docs/compose.md"), "\n## Without containers\n")
	require.True(t, found)
	for _, block := range regexp.MustCompile("(?s)\n```sh\n(.*?)\n```\n").FindAllStringSubmatch(section, -1) {
		steps = append(steps, block[1])
	}
	require.Len(t, steps, 6)
	return steps
}

// processHost is a shell in which the steps run, as a user who is not root.
type processHost struct {
	t       *testing.T
	home    string
	effects string
	// ports maps the ports in the page to free addresses on this machine.
	ports map[string]string
	// port is the last port that was tried.
	port   int
	input  io.Writer
	output *bufio.Scanner
	kill   func()
	lines  []string
	count  int
}

func newProcessHost(t *testing.T) *processHost {
	t.Helper()
	home, err := os.MkdirTemp("", "claudeops-processes-") //nolint:usetesting // below t.TempDir another user sees nothing
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(home)) })
	h := &processHost{
		t: t, home: home, effects: filepath.Join(home, "effects"), ports: map[string]string{}, port: 12_000 + os.Getpid()%10_000,
	}
	require.NoError(t, os.Mkdir(h.effects, 0o700))
	for _, port := range []string{"5432", "7233", "9464", "9465"} {
		h.ports[port] = h.freeAddress()
	}
	h.installPrograms()
	h.start()
	return h
}

// freeAddress returns a loopback address with a free port. Each call returns another port. Temporal's PostgreSQL schema
// stores ports as numbers below 32768.
func (h *processHost) freeAddress() string {
	h.t.Helper()
	for {
		h.port++
		address := fmt.Sprintf("127.0.0.1:%d", h.port)
		if listener, err := net.Listen("tcp", address); err == nil {
			require.NoError(h.t, listener.Close())
			return address
		}
	}
}

// portOf returns the port of an address.
func portOf(address string) string { return address[strings.LastIndex(address, ":")+1:] }

// installPrograms creates the directory of programs: worker, claudeops, Temporal's programs, and the stand-in for
// claude.
func (h *processHost) installPrograms() {
	h.t.Helper()
	programs := filepath.Join(h.home, "programs")
	stand, err := claudesim.Install(programs, claudesim.Play(repairingServices()...))
	require.NoError(h.t, err)
	self, err := os.Readlink(stand)
	require.NoError(h.t, err)
	require.NoError(h.t, os.Remove(stand))
	copied := map[string]string{"claude": self}
	for _, name := range []string{"temporal", "temporal-server", "temporal-sql-tool"} {
		copied[name] = filepath.Join("../bin/clients", name)
	}
	for name, path := range copied {
		program, err := os.ReadFile(path)
		require.NoError(h.t, err, "make soak builds it")
		require.NoError(h.t, os.WriteFile(filepath.Join(programs, name), program, 0o700))
	}
	for name, main := range map[string]string{"worker": "../worker", "claudeops": "../starter"} {
		said, err := exec.CommandContext(h.t.Context(), "go", "build", "-o", filepath.Join(programs, name), main).CombinedOutput()
		require.NoError(h.t, err, "%s", said)
	}
	require.NoError(h.t, os.WriteFile(filepath.Join(h.home, "policy.yaml"),
		[]byte("version: 1\ntiers: {1: {anything: true}, 2: {anything: true}, 3: {anything: true}}\n"), 0o600))
}

// repairingServices returns the script of agents. Tier 1 asks for Tier 2, which acts once, by writing to a file of the
// chain. After an interruption Tier 2 first checks whether it has acted. It also records its host, which it derives
// from its directory.
func repairingServices() []claudesim.Turn {
	file := `"$EFFECTS/$CLAUDEOPS_CHAIN_ID"`
	act := `case "$CLAUDEOPS_CHAIN_DIR" in */host-1/*) echo >> "$EFFECTS/host-1";; *) echo >> "$EFFECTS/host-2";; esac; sleep 2; echo "$CLAUDEOPS_SESSION_ID" >> ` + file + `; sleep 2`
	done := claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictResolved, Summary: "restarted it"})
	turns := []claudesim.Turn{
		claudesim.On(claudesim.Match{Model: "sonnet", Prompt: "ended before its work was done"},
			claudesim.Bash("test -s "+file+" || { "+act+"; }"), done),
		claudesim.On(claudesim.Match{Model: "sonnet"}, claudesim.Bash(act), done),
	}
	asks := escalation.Verdict{Status: escalation.VerdictEscalate, Summary: "it answers 502", RecommendedTier: 2}
	for i := range processChains { // each chain has its own service, so that no chain waits for another
		own := asks
		own.Services = []string{fmt.Sprintf("service-%d", i)}
		turns = append(turns, claudesim.On(claudesim.Match{Model: "haiku", First: "`" + own.Services[0] + "`"}, claudesim.Conclude(own)))
	}
	asks.Services = []string{"shop"}
	return append(turns, claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Conclude(asks)))
}

// environ returns the environment of the shell: the variables of a reader of the page, and the variables of the test.
func (h *processHost) environ() []string {
	postgres, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	require.NoError(h.t, err)
	environ := []string{
		"PATH=" + strings.Join(append([]string{filepath.Join(h.home, "programs")}, append(postgres, os.Getenv("PATH"))...), ":"),
		"HOME=" + h.home, simtest.WorkersUser, "LC_ALL=C", "EFFECTS=" + h.effects, "ANTHROPIC_API_KEY=not-a-key",
		"CLAUDEOPS_SANDBOX=off", "CLAUDEOPS_POLICY_FILE=" + filepath.Join(h.home, "policy.yaml"), "CLAUDEOPS_PASS_ENV=EFFECTS=claude",
		"CLAUDEOPS_TIER1_TOOLS=Bash", "CLAUDEOPS_TIER2_TOOLS=Bash", "CLAUDEOPS_GATE_TIMEOUT=0s", "CLAUDEOPS_DAY_BUDGET_USD=0", "CLAUDEOPS_MAX_CONCURRENT_AGENTS=4",
		"CLAUDEOPS_ESCALATION_LIMIT=none", "CLAUDEOPS_RETURNS=none",
		"FRONTEND_GRPC_PORT=" + portOf(h.ports["7233"]), "LOG_LEVEL=warn",
	}
	for _, name := range []string{
		"FRONTEND_HTTP_PORT", "FRONTEND_MEMBERSHIP_PORT", "MATCHING_GRPC_PORT", "MATCHING_MEMBERSHIP_PORT", "HISTORY_GRPC_PORT",
		"HISTORY_MEMBERSHIP_PORT", "WORKER_GRPC_PORT", "WORKER_MEMBERSHIP_PORT",
	} {
		environ = append(environ, name+"="+portOf(h.freeAddress()))
	}
	return environ
}

// start starts the shell. If this process runs as root, the shell runs as the user nobody, who also owns the files
// below home.
func (h *processHost) start() {
	h.t.Helper()
	shell := exec.CommandContext(h.t.Context(), "bash", "-eu", "-o", "pipefail")
	shell.Dir, shell.Env = "..", h.environ()
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		const nobody = 65534
		shell.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		require.NoError(h.t, exec.CommandContext(h.t.Context(), "chown", "-R", fmt.Sprintf("%d:%d", nobody, nobody), h.home).Run())
	}
	input, err := shell.StdinPipe()
	require.NoError(h.t, err)
	reader, writer, err := os.Pipe()
	require.NoError(h.t, err)
	shell.Stdout, shell.Stderr = writer, writer
	require.NoError(h.t, shell.Start())
	require.NoError(h.t, writer.Close())
	h.input, h.output = input, bufio.NewScanner(reader)
	h.kill = func() { _ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) } // what the steps have started is in its group
	h.t.Cleanup(func() {
		if h.t.Failed() {
			h.explain()
		}
		stop := exec.Command("pg_ctl", "--pgdata="+filepath.Join(h.home, "claudeops-team", "postgres"), "--mode=immediate", "stop")
		stop.Env, stop.SysProcAttr = shell.Env, &syscall.SysProcAttr{Credential: shell.SysProcAttr.Credential}
		_ = stop.Run() // it has ended, unless a step failed
		h.kill()
		_ = shell.Wait()
		_ = reader.Close()
	})
}

// run runs lines in the shell and waits until they have ended. A failed command ends the shell and fails the test.
func (h *processHost) run(step string) {
	h.t.Helper()
	for port, address := range h.ports {
		step = regexp.MustCompile(`\b`+port+`\b`).ReplaceAllString(step, portOf(address))
	}
	h.count++
	end := fmt.Sprintf("== step %d has ended", h.count)
	_, err := fmt.Fprintf(h.input, "{\n%s\n} </dev/null\necho '%s'\n", step, end)
	require.NoError(h.t, err)
	limit := time.AfterFunc(processLimit, h.kill)
	defer limit.Stop()
	for h.output.Scan() {
		h.lines = append(h.lines, h.output.Text())
		if h.output.Text() == end {
			return
		}
	}
	require.Fail(h.t, "a command has failed", "%s\n%s", step, h.said())
}

// said returns what the steps have printed.
func (h *processHost) said() string { return strings.Join(h.lines, "\n") }

// explain prints the ends of the logs.
func (h *processHost) explain() {
	logs, err := filepath.Glob(filepath.Join(h.home, "claudeops-team", "*.log"))
	require.NoError(h.t, err)
	for _, log := range logs {
		text, err := os.ReadFile(log)
		require.NoError(h.t, err)
		const most = 2_000
		h.t.Logf("%s:\n%s", filepath.Base(log), text[max(0, len(text)-most):])
	}
}

// awaitAgents waits until the given number of agents have begun to act on host 1 since its last loss, and one agent on
// host 2.
func (h *processHost) awaitAgents(count int) {
	h.t.Helper()
	require.Eventually(h.t, func() bool {
		first, second := h.agentsOf("host-1"), h.agentsOf("host-2")
		return first >= count && second > 0
	}, processLimit, 50*time.Millisecond)
}

// agentsOf returns the number of agents that have begun to act on a host.
func (h *processHost) agentsOf(host string) int {
	seen, err := os.ReadFile(filepath.Join(h.effects, host))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	require.NoError(h.t, err)
	return strings.Count(string(seen), "\n")
}

// requireNoOpenRecords checks that every session in the records has ended.
func (h *processHost) requireNoOpenRecords() {
	h.t.Helper()
	data := filepath.Join(h.home, "claudeops-team")
	password, err := os.ReadFile(filepath.Join(data, "secrets", "db_password"))
	require.NoError(h.t, err)
	cfg, err := config.Load([]string{
		"HOME=" + h.t.TempDir(), fmt.Sprintf("CLAUDEOPS_DATABASE_URL=postgres://claudeops:%s@%s/claudeops?sslmode=disable", password, h.ports["5432"]),
	})
	require.NoError(h.t, err)
	records, err := supervisor.OpenStore(h.t.Context(), cfg)
	require.NoError(h.t, err)
	defer func() { require.NoError(h.t, records.Close()) }()
	open, err := records.Running(h.t.Context())
	require.NoError(h.t, err)
	require.Empty(h.t, open)
}
