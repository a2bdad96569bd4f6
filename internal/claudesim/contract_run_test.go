package claudesim_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/proxy"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// The conversation ids of the contract cases. The cases can share them, because each subject has its own home.
const (
	idA       = "aaaaaaaa-0000-4000-8000-000000000001"
	idB       = "bbbbbbbb-0000-4000-8000-000000000002"
	idC       = "cccccccc-0000-4000-8000-000000000003"
	idMissing = "dddddddd-0000-4000-8000-000000000004"
)

// launchTimeout bounds one run of a CLI. patience bounds waits that are normally short, but may take long on a busy
// machine.
const (
	launchTimeout = 4 * time.Minute
	patience      = 2 * time.Minute
)

// throughProxy puts a worker's proxy between the real CLIs and the API for the contract tests.
var throughProxy = flag.Bool("through-proxy", false, "put a worker's proxy between the real CLIs and the API")

// realSlots limits the real CLIs that run at the same time. Each takes one core and 300 MB.
var realSlots = make(chan struct{}, 2)

// launch is one run of a CLI in a contract case.
type launch struct {
	args   []string
	prompt string
	// raw omits the flags that this project adds to every run.
	raw bool
	// elsewhere runs the CLI in another working directory.
	elsewhere bool
	// signal is sent to the CLI in a tool call. The tool writes its process id to the file "started" in the working
	// directory. The signal waits until the CLI has also printed the call and saved it in the transcript of idA.
	signal syscall.Signal
	// signalWhenAsked sends the signal after a request to the model. The tool is not needed then.
	signalWhenAsked bool
	// env returns additional variables.
	env func(p place) map[string]string
	// before prepares the place before the run.
	before func(t *testing.T, p place)
}

// place holds the directories of a subject: its home and two working directories.
type place struct{ home, dir, otherDir string }

func (p place) transcript(id string) string {
	return simtest.TranscriptPath(filepath.Join(p.home, ".claude"), p.dir, id)
}

// baseArgs returns the flags that this project adds to every run.
func baseArgs() []string {
	return []string{
		"-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "dontAsk",
		"--setting-sources", "", "--strict-mcp-config", "--disable-slash-commands",
	}
}

// subject is a CLI under test. path is its program, and requests returns its model calls.
type subject struct {
	path     string
	url      string
	key      string // "" means any key
	requests func() []claudesim.Request
	slots    chan struct{} // nil means no limit
}

func standIn(t *testing.T, s claudesim.Scenario, v claudesim.Version) subject {
	t.Helper()
	path := simtest.InstallAs(t, s, v)
	return subject{path: path, url: "http://127.0.0.1:9", requests: func() []claudesim.Request { return simtest.Requests(t, path) }}
}

func realCLI(t *testing.T, s claudesim.Scenario, v claudesim.Version) subject {
	t.Helper()
	path := simtest.RealCLI(t, v)
	api := simtest.StartAPI(t, s)
	made := subject{path: path, url: api.URL(), requests: api.Requests, slots: realSlots}
	if *throughProxy {
		made.url, made.key = startProxy(t, api.URL())
	}
	return made
}

// startProxy starts a worker's proxy in front of the API at upstream. It returns the proxy's address and a key.
func startProxy(t *testing.T, upstream string) (address, key string) {
	t.Helper()
	target, err := url.Parse(upstream)
	require.NoError(t, err)
	started, err := proxy.Start(t.Context(), proxy.Options{Upstream: target, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, started.Close()) })
	lease := started.Open(proxy.Session{
		Permits: func(string) bool { return true },
		Price:   func(string, proxy.Usage) float64 { return 0 },
	})
	return started.URL(), lease.Key()
}

// observe runs the launches one after another and returns an observation of each.
func (s subject) observe(t *testing.T, launches []launch) []observation {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	p := place{home: filepath.Join(root, "home"), dir: filepath.Join(root, "dir"), otherDir: filepath.Join(root, "other")}
	for _, dir := range []string{p.home, p.dir, p.otherDir} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	var observations []observation
	for _, l := range launches {
		if l.before != nil {
			l.before(t, p)
		}
		before, asked := readTranscripts(t, p), len(s.requests())
		out := s.launch(t, p, l)
		o := newObservation(t, out)
		o.Transcripts = before.changes(readTranscripts(t, p))
		o.Asked = viewRequests(s.requests()[asked:])
		o.Questions, o.Scripts = readQuestions(t, p), readScripts(t, p)
		observations = append(observations, o)
	}
	return observations
}

// output is the output of one run, with the exit code.
type output struct {
	exit           int
	stdout, stderr string
	toolSurvives   bool
}

// printed is the output of a running CLI.
type printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *printed) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(data)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func (s subject) launch(t *testing.T, p place, l launch) output {
	t.Helper()
	if s.slots != nil {
		s.slots <- struct{}{}
		defer func() { <-s.slots }()
	}
	ctx, cancel := context.WithTimeout(t.Context(), launchTimeout)
	defer cancel()
	args := l.args
	if !l.raw {
		args = append(baseArgs(), l.args...)
	}
	var stdout, stderr printed
	command := exec.CommandContext(ctx, s.path, args...)
	command.Dir = p.dir
	if l.elsewhere {
		command.Dir = p.otherDir
	}
	for name, value := range simtest.RealEnv(p.home, s.url) {
		command.Env = append(command.Env, name+"="+value)
	}
	if l.env != nil {
		for name, value := range l.env(p) {
			command.Env = append(command.Env, name+"="+value) // the last value counts
		}
	}
	if s.key != "" {
		command.Env = append(command.Env, "ANTHROPIC_API_KEY="+s.key)
	}
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(l.prompt), &stdout, &stderr
	command.WaitDelay = 10 * time.Second
	asked := 0
	if l.signalWhenAsked {
		asked = len(s.requests())
	}
	require.NoError(t, command.Start())
	tool := 0
	if l.signal != 0 {
		tool = s.awaitSignalTime(t, p, l, &stdout, asked)
		require.NoError(t, command.Process.Signal(l.signal))
	}
	_ = command.Wait() // the exit code is part of the observation
	require.NoError(t, ctx.Err(), "the run did not end; stdout:\n%s", &stdout)
	out := output{exit: command.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
	if tool != 0 {
		for began := time.Now(); lives(tool) && time.Since(began) < 3*time.Second; { // a tool that the CLI stops exits within this time
			time.Sleep(20 * time.Millisecond)
		}
		out.toolSurvives = lives(tool)
	}
	return out
}

// lives reports whether a process has not exited. A zombie has exited.
func lives(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // the result is empty on systems without /proc
	return syscall.Kill(pid, 0) == nil && !bytes.Contains(stat, []byte(") Z "))
}

// awaitSignalTime waits until it is time to send the launch's signal. It returns the process id of the running tool,
// or 0. asked is the number of earlier requests to the model.
func (s subject) awaitSignalTime(t *testing.T, p place, l launch, stdout *printed, asked int) int {
	t.Helper()
	if l.signalWhenAsked {
		require.Eventually(t, func() bool { return len(s.requests()) > asked }, patience, 10*time.Millisecond)
		return 0
	}
	tool := awaitPID(t, filepath.Join(p.dir, "started"))
	t.Cleanup(func() { _ = syscall.Kill(-tool, syscall.SIGKILL) }) // it may survive the CLI
	require.Eventually(t, func() bool {
		const call = `"tool_use"`
		return strings.Contains(stdout.String(), call) && strings.Contains(readTranscripts(t, p)[idA], call)
	}, patience, 10*time.Millisecond, "the call was not printed or not saved")
	return tool
}

// awaitPID returns the process id that a tool writes to path.
func awaitPID(t *testing.T, path string) int {
	t.Helper()
	pid := 0
	require.Eventually(t, func() bool {
		data, _ := os.ReadFile(path)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return pid > 1 && strings.HasSuffix(string(data), "\n")
	}, patience, 10*time.Millisecond, "the tool never started")
	return pid
}
