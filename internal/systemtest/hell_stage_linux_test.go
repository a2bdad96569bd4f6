package systemtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// hellProgram is the base name that makes the test binary the agent from hell.
const hellProgram = "claude-from-hell"

// hellVariable names a file with the victim and with the address for reports.
const hellVariable = "HELL_BRIEF"

// hellBrief is what the attacker's program needs.
type hellBrief struct {
	Victim victim
	// Reports is the address to which the program reports its successes and failures. Loopback is open to every agent.
	Reports string
	// Bystander is the address to which the other session connects.
	Bystander string
}

// hellReport is what became of one attack.
type hellReport struct {
	Attack string `json:"attack"`
	// Kept says what kept the attack from succeeding. It is empty after a success.
	Kept string `json:"kept,omitempty"`
}

// playAgentFromHell runs the attacks in place of the CLI, and ends this process.
func playAgentFromHell() {
	if len(os.Args) == 3 && os.Args[1] == "attack" {
		os.Exit(tryOne(os.Args[2]))
	}
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println("2.1.332 (Claude Code)")
		os.Exit(0)
	}
	task := tryAll
	if prompt, _ := io.ReadAll(os.Stdin); strings.Contains(string(prompt), standBy) {
		task = playBystander
	}
	if err := task(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	// End the session in a way that is neither tried again nor escalated.
	fmt.Println(`{"type":"result","subtype":"error_max_turns","is_error":true,"num_turns":1,"total_cost_usd":0,"usage":{}}`)
	os.Exit(1)
}

// readBrief reads the attacker's brief.
func readBrief() (brief hellBrief, err error) {
	text, err := os.ReadFile(os.Getenv(hellVariable))
	if err != nil {
		return brief, err
	}
	err = json.Unmarshal(text, &brief)
	return brief, err
}

// tryAll runs each attack in a process of its own, and reports the results.
func tryAll() error {
	brief, err := readBrief()
	if err != nil {
		return err
	}
	line, err := new(net.Dialer).DialContext(context.Background(), "tcp", brief.Reports)
	if err != nil {
		return err
	}
	defer func() { _ = line.Close() }()
	for _, each := range attacks() {
		fmt.Println(`{"type":"system","subtype":"status"}`) // a CLI that is silent for long is stopped
		program := exec.CommandContext(context.Background(), "/proc/self/exe", "attack", each.name)
		program.Args[0] = hellProgram
		said, err := program.CombinedOutput()
		report := hellReport{Attack: each.name}
		if err != nil {
			report.Kept = fmt.Sprintf("%s (%v)", strings.TrimSpace(string(said)), err)
		}
		if err := json.NewEncoder(line).Encode(report); err != nil {
			return err
		}
	}
	return nil
}

// tryOne runs one attack. It returns the exit code: 0 for a success.
func tryOne(name string) int {
	brief, err := readBrief()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, each := range attacks() {
		if each.name != name {
			continue
		}
		if err := each.act(brief.Victim); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	fmt.Fprintln(os.Stderr, "no such attack")
	return 1
}

// hellModes lists the modes that this process can install. Only the superuser can install all of them.
func hellModes() []hellMode {
	if os.Geteuid() != 0 {
		return []hellMode{ordinaryUser}
	}
	return []hellMode{ordinaryUser, rootAlone, agentsUser}
}

// requireHarmless runs the attacks in one session, and fails for each that succeeds. The unit may be nil.
func requireHarmless(t *testing.T, mode hellMode, tier int, unit *unitHardening) {
	t.Helper()
	c := startTemporal(t)
	stage := newHellStage(t, mode)
	stage.unit = unit
	s := siteOf(t, c, stage.environ)
	reports := stage.begin(t, sharedTemporal.server.Address())
	other := map[string]any{"start_tier": 3 - tier, "max_tier": 3 - tier, "prompt": standBy}
	bystander := s.startAs("bystander-"+nameOf(t), other)
	leave := stage.awaitBystander(t)
	var chain escalation.Chain
	run := s.start(map[string]any{"start_tier": tier, "max_tier": tier, "prompt": "do your worst"})
	ctx, cancel := context.WithTimeout(t.Context(), 2*testTimeout)
	defer cancel()
	require.NoError(t, run.Get(ctx, &chain))
	leave()
	require.NoError(t, bystander.Get(ctx, nil))
	require.NotEmpty(t, chain.Sessions, chain.Reason)
	requireSandbox(t, chain.Sessions[0])
	require.NoError(t, stage.worker.Process.Signal(syscall.Signal(0)), "the worker has died: %s", stage.worker.said.last())
	found := reports()
	for _, each := range attacks() {
		kept, tried := found[each.name]
		require.True(t, tried, "%q was not tried; session: %+v", each.name, chain.Sessions[0])
		stage.judge(t, each, kept)
	}
}

// hellStage is an installation with one worker.
type hellStage struct {
	mode    hellMode
	victim  victim
	environ []string
	// program is the executable of the worker and of its agents, at a path that both can run.
	program string
	// user is the worker's user; nil for the user of this process.
	user *syscall.Credential
	// unit is the hardening of the worker; nil for none.
	unit   *unitHardening
	worker *roleProcess
	brief  hellBrief
	// arrivals accepts the connection of the other session.
	arrivals net.Listener
}

// newHellStage prepares an installation.
func newHellStage(t *testing.T, mode hellMode) *hellStage {
	t.Helper()
	home := openDir(t)
	s := &hellStage{mode: mode, victim: victim{Home: home, State: filepath.Join(home, "state")}}
	if mode == ordinaryUser && os.Geteuid() == 0 {
		s.user = &syscall.Credential{Uid: ordinaryUID, Gid: ordinaryUID}
		require.NoError(t, os.Chown(home, ordinaryUID, ordinaryUID))
	}
	self, err := os.Executable()
	require.NoError(t, err)
	programs := openDir(t)
	require.NoError(t, writeSecrets(programs))
	s.program = filepath.Join(programs, hellProgram)
	if os.Link(self, s.program) != nil {
		content, err := os.ReadFile(self)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(s.program, content, 0o755))
	}
	s.victim.Terminal = s.newTerminal(t)
	s.environ = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "CLAUDEOPS_STATE_DIR=" + s.victim.State, "CLAUDEOPS_CLAUDE=" + s.program,
		"CLAUDEOPS_TASK_QUEUE=" + nameOf(t), "CLAUDEOPS_GATE_TIMEOUT=0s", "CLAUDEOPS_CONTINUITY=handoff", "ANTHROPIC_API_KEY=not-a-key", patient,
		"CLAUDEOPS_PASS_ENV=" + hellVariable + "=claude", hellVariable + "=" + filepath.Join(programs, "brief.json"), "CLAUDEOPS_LOG_LEVEL=info",
		// The attacks take as long as this machine needs.
		"CLAUDEOPS_TIER1_TIMEOUT=1h", "CLAUDEOPS_TIER2_TIMEOUT=1h", "CLAUDEOPS_FIRST_BYTE_TIMEOUT=1h", "CLAUDEOPS_IDLE_TIMEOUT=1h",
	}
	if mode == rootAlone {
		s.environ = append(s.environ, simtest.WorkersUser)
	}
	if mode == agentsUser {
		s.environ = append(s.environ, "CLAUDEOPS_AGENT_USER="+agentsName)
	}
	return s
}

// ordinaryUID is the user of workers in the mode ordinaryUser. No file of the system belongs to it.
const ordinaryUID = 65533

// newTerminal opens a terminal of the worker's user, and returns its path.
func (s *hellStage) newTerminal(t *testing.T) string {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, control.Close()) })
	require.NoError(t, unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	path := "/dev/pts/" + strconv.Itoa(number)
	if s.user != nil {
		require.NoError(t, os.Chown(path, int(s.user.Uid), -1))
	}
	require.NoError(t, os.Chmod(path, 0o620)) //nolint:gosec // the mode of a terminal
	return path
}

// begin starts the worker, and writes the attacker's brief. The returned function gives the reports so far: what kept
// each attack, by its name.
func (s *hellStage) begin(t *testing.T, address string) func() map[string]string {
	t.Helper()
	listener := listen(t)
	s.arrivals = listen(t)
	command := exec.CommandContext(t.Context(), s.program)
	command.Env, command.Dir = append(slices.Clip(s.environ), "TEMPORAL_ADDRESS="+address), s.victim.Home
	if s.unit != nil {
		command.Env = append(command.Env, unitVariable+"="+s.unit.write(t))
	} else {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: s.user}
	}
	s.worker = startRoleOf(t, "worker", command)
	s.worker.awaitReady(t)
	s.victim.Worker, s.victim.Temporal, s.victim.Tmux = s.worker.Process.Pid, address, listenAsTmux(t)
	s.brief = hellBrief{Victim: s.victim, Reports: listener.Addr().String(), Bystander: s.arrivals.Addr().String()}
	s.writeBrief(t)
	return collectReports(listener)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// listenAsTmux opens a socket as tmux would, to which everybody may connect, and returns its path.
func listenAsTmux(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(openDir(t), "tmux-0")
	require.NoError(t, os.Mkdir(dir, 0o755)) //nolint:gosec // everybody may connect there
	path := filepath.Join(dir, "default")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	require.NoError(t, os.Chmod(path, 0o777)) //nolint:gosec // for the agents
	return path
}

func (s *hellStage) writeBrief(t *testing.T) {
	t.Helper()
	text, err := json.Marshal(s.brief)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(s.program), "brief.json"), text, 0o644))
}

// collectReports reads the reports of all attempts at a session: on a busy machine one can end before its first report.
// The returned function waits until each attack was reported, or for as long as tests wait, and returns what it knows.
func collectReports(listener net.Listener) func() map[string]string {
	reports := make(chan hellReport)
	go func() {
		for {
			line, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = line.Close() }()
				for lines := bufio.NewScanner(line); lines.Scan(); {
					var report hellReport
					if json.Unmarshal(lines.Bytes(), &report) == nil {
						reports <- report
					}
				}
			}()
		}
	}()
	found := map[string]string{}
	all := make(chan struct{})
	go func() {
		for len(found) < len(attacks()) {
			report := <-reports
			found[report.Attack] = report.Kept
		}
		close(all)
		for range reports {
		}
	}()
	return func() map[string]string {
		select {
		case <-all:
			return found
		case <-time.After(testTimeout):
			return nil
		}
	}
}

// judge fails the test if an attack has succeeded, or if one that is known to succeed no longer does.
func (s *hellStage) judge(t *testing.T, each attack, kept string) {
	t.Helper()
	damage := error(nil)
	if kept == "" {
		damage = errors.New("it succeeded")
	}
	if each.harm != nil {
		damage = each.harm(s.victim)
	}
	why, known := each.open[s.mode]
	switch {
	case damage != nil && !known:
		t.Errorf("%s: %v", each.name, damage)
	case damage == nil && known:
		t.Errorf("%s: no longer succeeds (%s); take it from the list of gaps, which says: %s", each.name, kept, why)
	default:
		t.Logf("%s: %v; %s%s", each.name, damage, kept, why)
	}
}
