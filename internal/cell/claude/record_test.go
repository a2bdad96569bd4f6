package claude

import (
	"bytes"
	"flag"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

var record = flag.Bool("record", false, "record testdata/streams anew with the real CLIs; -update then writes the golden files")

// take describes how to record one stream below testdata/streams.
type take struct {
	scenario claudesim.Scenario
	change   func(*Invocation) // nil changes nothing
	prompt   string            // empty means the recording's name
	// signal is sent 4 seconds after the model was asked for the second time.
	signal syscall.Signal
	// stalls makes the API stop sending in the middle of its second answer.
	stalls bool
	// refuses makes the API unreachable.
	refuses bool
	// family lists the recordings that continue this recording's conversation, in the same directories.
	family []string
}

// takes returns the takes of all recordings.
func takes() map[string]take {
	usage := claudesim.Usage{Input: 100, Output: 42, CacheRead: 1000, CacheCreation: 50}
	says := func(replies ...claudesim.Reply) claudesim.Scenario {
		for i := range replies {
			if replies[i].Usage == nil {
				replies[i] = replies[i].Using(usage)
			}
		}
		return claudesim.Play(claudesim.Always(replies...))
	}
	bash := func(command string) claudesim.Reply {
		return claudesim.Call("Bash", map[string]any{"command": command})
	}
	fails := func(status int, message string) take { return take{scenario: says(claudesim.Fail(status, message))} }
	schema := func(replies ...claudesim.Reply) take {
		return take{scenario: says(replies...), change: func(i *Invocation) {
			i.Schema = `{"type":"object","properties":{"status":{"type":"string"}},"required":["status"],"additionalProperties":false}`
		}}
	}
	climb := claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "parent"}, bash("echo hi").Using(usage), claudesim.Say("esc").Using(usage)),
		claudesim.On(claudesim.Match{Prompt: "fork"}, claudesim.Say("child").Using(usage)),
		claudesim.On(claudesim.Match{Prompt: "resume"}, claudesim.Say("again").Using(usage)))
	delegates := claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "the subagent's task"}, bash("echo sub").Saying("sub").Using(usage), claudesim.Say("subdone").Using(usage)),
		claudesim.Always(claudesim.Call("Agent", map[string]any{
			"description": "d", "prompt": "the subagent's task", "subagent_type": "general-purpose",
		}).Using(usage), claudesim.Say("all done").Using(usage)))
	return map[string]take{
		"fresh":     {scenario: says(bash("echo hi").Saying("looking"), claudesim.Say("fine"))},
		"parent":    {scenario: climb, family: []string{"fork", "resume"}},
		"fork":      {scenario: climb, change: func(i *Invocation) { i.Resume, i.SessionID, i.Model = i.SessionID, uuid.NewString(), "sonnet" }},
		"resume":    {scenario: climb, change: func(i *Invocation) { i.Resume = i.SessionID }},
		"long_tool": {scenario: says(bash("./mid.sh"), claudesim.Say("x"))},
		"background": {scenario: says(claudesim.Call("Bash", map[string]any{"command": "sleep 3", "run_in_background": true}),
			claudesim.Say("started"), claudesim.Say("woke"))},
		"subagent":                  {scenario: delegates, change: func(i *Invocation) { i.Tools = []string{"Task", "Bash"} }},
		"denied":                    {scenario: says(bash("touch /srv/denied"), claudesim.Say("was denied"))},
		"slash_command":             {scenario: says(claudesim.Say("never asked")), prompt: "/help"},
		"schema":                    schema(claudesim.Conclude(map[string]string{"status": "ok"})),
		"schema_ignored":            schema(claudesim.Say("end")),
		"schema_not_met":            schema(claudesim.Conclude(map[string]string{"bad": "ok"})),
		"unauthorized":              fails(http.StatusUnauthorized, "invalid x-api-key"),
		"overloaded":                fails(529, "Overloaded"),
		"connection_refused":        {scenario: says(claudesim.Say("never asked")), refuses: true},
		"prompt_too_long":           fails(http.StatusBadRequest, "prompt is too long: 250000 tokens > 200000 maximum"),
		"bad_request":               fails(http.StatusBadRequest, "nope"),
		"max_turns":                 {scenario: says(bash("echo hi"), bash("echo hi"), claudesim.Say("never asked")), change: func(i *Invocation) { i.MaxTurns = 2 }},
		"budget":                    {scenario: expensive(bash("echo hi"), usage), change: func(i *Invocation) { i.MaxBudgetUSD = 0.05 }},
		"unknown_session":           {scenario: climb, change: func(i *Invocation) { i.Resume = uuid.NewString() }},
		"interrupted_in_tool":       {scenario: says(bash("echo hi").Saying("one"), bash("./slow.sh"), claudesim.Say("never asked")), signal: syscall.SIGINT},
		"interrupted_in_answer":     {scenario: says(bash("echo hi"), claudesim.Say("never ends")), signal: syscall.SIGINT, stalls: true},
		"interrupted_before_answer": {scenario: says(bash("echo hi"), claudesim.Say("never comes").After(time.Minute)), signal: syscall.SIGINT},
		"killed_in_tool":            {scenario: says(bash("echo hi").Saying("one"), bash("./slow.sh"), claudesim.Say("never asked")), signal: syscall.SIGKILL},
	}
}

// expensive returns a scenario whose first reply costs more than any budget, so that the second reply is never
// requested.
func expensive(reply claudesim.Reply, usage claudesim.Usage) claudesim.Scenario {
	usage.Input = 1_000_000
	return claudesim.Play(claudesim.Always(reply.Using(usage), claudesim.Say("never asked")))
}

// TestEveryRecordingCanBeMade checks that recordings and takes have the same names.
func TestEveryRecordingCanBeMade(t *testing.T) {
	t.Parallel()
	require.ElementsMatch(t, slices.Collect(maps.Keys(recordings())), slices.Collect(maps.Keys(takes())))
}

// TestRecord records the streams anew with the real CLI of each version, if -record is set.
func TestRecord(t *testing.T) {
	t.Parallel()
	if !*record {
		t.Skip("records only with -record")
	}
	all := takes()
	for _, version := range simtest.Versions(t) {
		t.Run(simtest.Number(t, version), func(t *testing.T) {
			t.Parallel()
			for name, first := range all {
				if slices.Contains(all["parent"].family, name) {
					continue
				}
				t.Run(name, func(t *testing.T) { // not parallel, because some runs depend on time
					s := newStudio(t, version, first)
					id := uuid.NewString()
					for _, name := range append([]string{name}, first.family...) {
						s.record(t, filepath.Join("testdata", "streams", simtest.Number(t, version), name+".jsonl"), name, id)
					}
				})
			}
		})
	}
}

// studio is a real CLI with its own scripted API and its own directories.
type studio struct {
	cli       *CLI
	dir       string // working directory
	configDir string
	api       *claudesim.API
	url       string
}

func newStudio(t *testing.T, version claudesim.Version, first take) studio {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	s := studio{dir: filepath.Join(root, "work"), configDir: filepath.Join(root, "config"), api: simtest.StartAPI(t, first.scenario)}
	s.url = s.api.URL()
	switch {
	case first.stalls:
		s.url = stalling(t, s.url)
	case first.refuses:
		s.url = "http://127.0.0.1:1"
	}
	require.NoError(t, os.Mkdir(s.dir, 0o700))
	for name, seconds := range map[string]string{"mid.sh": "3", "slow.sh": "60"} {
		script := "#!/bin/sh\nsleep " + seconds + "\necho finished\n"
		require.NoError(t, process.WriteProgram(filepath.Join(s.dir, name), []byte(script)))
	}
	s.cli, err = Locate(t.Context(), Options{
		Path: simtest.RealCLI(t, version), ConfigDir: s.configDir, MaxRetries: 1,
		Environ: []string{"PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=not-a-key", "ANTHROPIC_BASE_URL=" + s.url},
	})
	require.NoError(t, err)
	return s
}

// record runs the CLI once for the take name and writes its output to path. The conversation is id, unless the take
// changes it.
func (s studio) record(t *testing.T, path, name, id string) {
	t.Helper()
	how := takes()[name]
	invocation := Invocation{
		SessionID: id, Prompt: name, Model: "haiku", Tools: []string{"Bash", "Read"}, Dir: s.dir,
		AllowedTools: []string{"Bash(echo:*)", "Bash(./mid.sh)", "Bash(./slow.sh)", "Bash(sleep:*)"},
	}
	if how.change != nil {
		how.change(&invocation)
	}
	if how.prompt != "" {
		invocation.Prompt = how.prompt
	}
	args, err := s.cli.arguments(invocation)
	require.NoError(t, err)
	require.NoError(t, s.cli.makeDirs(Invocation{}))
	var stdout bytes.Buffer
	command := exec.CommandContext(t.Context(), s.cli.path, args...)
	command.Dir, command.Env = s.dir, s.cli.environment(invocation)
	command.Stdin, command.Stdout = strings.NewReader(invocation.Prompt), &stdout
	command.WaitDelay = 5 * time.Second
	require.NoError(t, command.Start())
	if how.signal != 0 {
		require.Eventually(t, func() bool { return len(s.api.Requests()) == 2 }, time.Minute, 10*time.Millisecond)
		time.Sleep(4 * time.Second)
		require.NoError(t, command.Process.Signal(how.signal))
	}
	_ = command.Wait() // many of these runs must fail
	_, err = EndSession(invocation.SessionID)
	require.NoError(t, err)
	require.NotEmpty(t, stdout.String())
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(s.anonymous(stdout.String())), 0o600))
}

var (
	notAlphanumeric = regexp.MustCompile(`[^A-Za-z0-9]`)
	tasksDir        = regexp.MustCompile(`[^" ]*/claude-\d+/`)
)

// anonymous replaces the paths and addresses of this machine in a stream.
func (s studio) anonymous(stream string) string {
	address := strings.TrimPrefix(s.url, "http://")
	host, _, _ := strings.Cut(address, ":")
	stream = strings.NewReplacer(
		s.dir, "/srv/work", notAlphanumeric.ReplaceAllString(s.dir, "-"), "-srv-work",
		s.configDir, "/var/lib/agent/claude", address, "api.example", host, "api.example",
	).Replace(stream)
	return tasksDir.ReplaceAllString(stream, "/var/lib/agent/tasks/")
}

// stalling returns the URL of a proxy for the API at target. Of the second answer the proxy sends only the beginning,
// and then stalls.
func stalling(t *testing.T, target string) string {
	t.Helper()
	api, err := url.Parse(target)
	require.NoError(t, err)
	pass := httputil.NewSingleHostReverseProxy(api)
	var answers atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/messages" || answers.Add(1) != 2 {
			pass.ServeHTTP(w, r)
			return
		}
		whole := httptest.NewRecorder()
		pass.ServeHTTP(whole, r)
		beginning, _, _ := strings.Cut(whole.Body.String(), "event: content_block_start")
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(beginning))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL
}
