package cell_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/door"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// site holds the directories in which the CLI runs, and stand-ins for programs, which log their command lines.
type site struct {
	t                          *testing.T
	work, home, temp, bin, log string
	ledger                     *books
	// rules lists permission rules as arguments of the CLI.
	rules []string
	// standIn selects the stand-in for the CLI instead of the real CLI.
	standIn bool

	mutex   sync.Mutex
	entries []cell.Entry
}

func newSite(t *testing.T, programs ...string) *site {
	t.Helper()
	root := t.TempDir()
	s := &site{
		t: t, work: root + "/repo", home: root + "/agent", temp: root + "/session", bin: root + "/bin", log: root + "/called",
		ledger: newBooks(),
	}
	for _, dir := range []string{s.work, s.home, s.temp, s.bin} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	for _, name := range programs {
		script := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' \"%s $*\" >> %s\n", name, s.log)
		require.NoError(t, os.WriteFile(filepath.Join(s.bin, name), []byte(script), 0o700))
	}
	return s
}

// called returns the command lines of the stand-ins, one per line.
func (s *site) called() string {
	text, err := os.ReadFile(s.log)
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(s.t, err)
	return string(text)
}

// guard returns a guard with the embedded policy, which accepts the stand-ins as system programs.
func (s *site) guard() *guard.Guard {
	policy, err := guard.ParsePolicy(bytes.Replace(deploy.Policy, []byte("directories: ["), []byte("directories: ["+s.bin+", "), 1))
	require.NoError(s.t, err)
	return guard.New(policy, guard.Host{})
}

// open starts a Post for a session of the tier.
func (s *site) open(tier int) *cell.Post {
	session := cell.PostSession{ID: "session-1", Tier: tier, Place: s.place(), Narrowed: slices.Contains(s.rules, "--allowedTools")}
	post, err := cell.OpenPost(s.t.TempDir(), s.guard(), session, s.ledger, s.record)
	require.NoError(s.t, err)
	return post
}

func (s *site) place() guard.Place {
	return guard.Place{
		Work: []string{s.work}, Home: s.home, Temp: s.temp, Path: []string{s.bin, "/usr/bin", "/bin"},
		Own: []string{s.home + "/.local/state"}, Doors: []guard.Door{{Host: "127.0.0.1", Port: 7233}, {Host: "127.0.0.1", Port: 8233}}, Confined: true,
	}
}

func (s *site) record(entry cell.Entry) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.entries = append(s.entries, entry)
}

// calls returns the decisions on calls, without those on their acts.
func (s *site) calls() []cell.Entry {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.DeleteFunc(slices.Clone(s.entries), func(entry cell.Entry) bool { return strings.Contains(entry.Call, "#") })
}

// refused reports whether an act of a call was refused.
func (s *site) refused(call string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.ContainsFunc(s.entries, func(entry cell.Entry) bool {
		return strings.HasPrefix(entry.Call, call+"#") && !entry.Decision.Allowed
	})
}

// cli returns the path of a CLI that plays the scenario, and the URL of its API. It is the stand-in or the real CLI.
func (s *site) cli(version claudesim.Version, scenario claudesim.Scenario) (path, url string) {
	s.t.Helper()
	if s.standIn {
		return simtest.InstallAs(s.t, scenario, version), "http://127.0.0.1:9"
	}
	return simtest.RealCLI(s.t, version), simtest.StartAPI(s.t, scenario).URL()
}

// run runs the CLI with a simulated model that makes the calls one after another. It returns the result of each call.
func (s *site) run(version claudesim.Version, environ map[string]string, calls ...claudesim.Reply) []simtest.ToolResult {
	s.t.Helper()
	cli, url := s.cli(version, claudesim.Play(claudesim.Always(append(calls, claudesim.Say("done"))...)))
	settings, err := json.Marshal(cell.HookSettings(environ["CLAUDE_CODE_SHELL_PREFIX"]))
	require.NoError(s.t, err)
	command := exec.CommandContext(s.t.Context(), cli, "-p", "--output-format", "stream-json", "--verbose",
		"--setting-sources", "", "--strict-mcp-config", "--permission-mode", "dontAsk", "--tools", "Bash,Read,Edit,Write,Grep,Glob",
		"--settings", string(settings), "--model", "haiku", "--session-id", uuid.NewString())
	command.Args = append(command.Args, s.rules...)
	command.Dir, command.Stdin = s.work, strings.NewReader("look")
	variables := simtest.RealEnv(s.home, url)
	variables["PATH"], variables["TMPDIR"] = s.bin+":"+variables["PATH"], s.temp
	maps.Copy(variables, environ)
	for name, value := range variables {
		command.Env = append(command.Env, name+"="+value)
	}
	output, err := command.Output()
	require.NoError(s.t, err, string(output))
	results := simtest.ToolResults(output)
	require.Len(s.t, results, len(calls), string(output))
	return results
}

// environment returns the environment of a CLI that asks the post.
func (s *site) environment(post *cell.Post) map[string]string {
	executable, err := os.Executable()
	require.NoError(s.t, err)
	shell, err := cell.InstallShell(s.t.TempDir(), executable)
	require.NoError(s.t, err)
	return post.Environment(executable, shell)
}

func TestRealCLI(t *testing.T) {
	t.Parallel()
	for _, version := range simtest.Versions(t) {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "docker", "systemctl")
			post := s.open(1)
			results := s.run(version, s.environment(post),
				claudesim.Bash("docker ps --format '{{.Names}}' | grep -v x; for s in a b; do systemctl is-active \"$s\"; done"),
				claudesim.Bash("docker restart jellyfin"),
				claudesim.Bash("touch here"),
				claudesim.Bash("cat /etc/hostname"),
				claudesim.Call("Write", map[string]string{"file_path": s.work + "/here", "content": "x"}),
				claudesim.Call("Read", map[string]string{"file_path": "/etc/shadow"}),
			)
			require.NoError(t, post.Close())
			require.Equal(t, "docker ps --format {{.Names}}\nsystemctl is-active a\nsystemctl is-active b\n", s.called())
			require.NoFileExists(t, s.work+"/here")
			for i, denied := range []string{"", "docker restart is granted to Tier 2 only", "outside", "", "outside", "may hold secrets"} {
				require.Equal(t, denied != "", results[i].IsError, "%d: %v", i, results[i].Content)
				require.Contains(t, fmt.Sprint(results[i].Content), denied)
				require.Equal(t, denied == "", s.calls()[i].Decision.Allowed)
			}
		})
	}
}

// TestRealCLINarrowed checks that permission rules of the CLI narrow the policy's grants and never widen them.
func TestRealCLINarrowed(t *testing.T) {
	t.Parallel()
	commands := []string{"docker ps", "docker restart web", "docker rm -f web", "docker logs web"}
	for _, version := range simtest.Versions(t) {
		for name, tt := range map[string]struct{ rules, refused []string }{
			"rules that grant":  {[]string{"--allowedTools", "Bash(docker ps:*)", "Bash(docker rm:*)"}, []string{"docker restart web", "docker rm -f web"}},
			"rules that deny":   {[]string{"--disallowedTools", "Bash(docker restart:*)"}, []string{"docker restart web", "docker rm -f web"}},
			"both":              {[]string{"--allowedTools", "Bash(docker:*)", "--disallowedTools", "Bash(docker ps:*)"}, []string{"docker ps", "docker rm -f web"}},
			"a rule for it all": {[]string{"--allowedTools", "Bash"}, []string{"docker rm -f web"}},
		} {
			t.Run(string(version)+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := newSite(t, "docker")
				s.rules = tt.rules
				post := s.open(2)
				var calls []claudesim.Reply
				for _, command := range commands {
					calls = append(calls, claudesim.Bash(command))
				}
				results := s.run(version, s.environment(post), calls...)
				require.NoError(t, post.Close())
				var ran string
				for i, command := range commands {
					refused := slices.Contains(tt.refused, command)
					require.Equal(t, refused, results[i].IsError, "%s: %v", command, results[i].Content)
					if !refused {
						ran += command + "\n"
					}
				}
				require.Equal(t, ran, s.called())
			})
		}
	}
}

// TestRealCLIFailsClosed checks that no call runs if a part that is needed for a decision is missing. It removes one
// part at a time.
func TestRealCLIFailsClosed(t *testing.T) {
	t.Parallel()
	for _, version := range simtest.Versions(t) {
		for name, spoil := range map[string]func(t *testing.T, s *site, post *cell.Post) map[string]string{
			"nobody answers": func(t *testing.T, s *site, post *cell.Post) map[string]string {
				t.Helper()
				require.NoError(t, post.Close())
				return s.environment(post)
			},
			"the program is missing": func(_ *testing.T, s *site, post *cell.Post) map[string]string {
				return post.Environment(s.bin+"/no-such-program", s.bin+"/no-such-shell")
			},
			"the program crashes": func(t *testing.T, s *site, post *cell.Post) map[string]string {
				t.Helper()
				crash := s.temp + "/crash"
				require.NoError(t, os.WriteFile(crash, []byte("#!/bin/sh\nkill -SEGV $$\n"), 0o700))
				return post.Environment(crash, crash)
			},
			"no program is named": func(_ *testing.T, s *site, post *cell.Post) map[string]string {
				environ := s.environment(post)
				delete(environ, "CLAUDE_CODE_SHELL_PREFIX")
				return environ
			},
		} {
			t.Run(string(version)+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := newSite(t, "docker")
				environ := spoil(t, s, s.open(2))
				results := s.run(version, environ,
					claudesim.Bash("docker ps"), claudesim.Bash("ls"), claudesim.Bash("cat /etc/hostname"), claudesim.Bash("echo x > "+s.work+"/here"),
					claudesim.Call("Read", map[string]string{"file_path": "/etc/hostname"}),
					claudesim.Call("Write", map[string]string{"file_path": s.work + "/here", "content": "x"}),
				)
				for i, one := range results {
					require.True(t, one.IsError, "%d: %v", i, one.Content)
				}
				require.Empty(t, s.called())
				require.NoFileExists(t, s.work+"/here")
			})
		}
	}
}

// TestRealCLICharges checks that the third restart of a service is refused in every spelling.
func TestRealCLICharges(t *testing.T) {
	t.Parallel()
	for _, version := range simtest.Versions(t) {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "docker", "systemctl")
			s.ledger.limit = 2
			post := s.open(2)
			results := s.run(version, s.environment(post),
				claudesim.Bash("docker restart web"), claudesim.Bash("timeout 60 bash -c 'systemctl restart web.service'"),
				claudesim.Bash("docker container restart -t 5 web"),
			)
			require.NoError(t, post.Close())
			require.Equal(t, "docker restart web\nsystemctl restart web.service\n", s.called())
			require.True(t, results[2].IsError)
			require.Contains(t, fmt.Sprint(results[2].Content), "the third restart of web")
		})
	}
}

// TestRealCLICorpus has the real CLI make calls of the guard's corpus. No denied call may run, and no allowed call
// may be refused.
func TestRealCLICorpus(t *testing.T) {
	t.Parallel()
	const each = 26
	for _, version := range simtest.NewestVersions(t) {
		for _, tier := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s/tier %d", version, tier), func(t *testing.T) {
				t.Parallel()
				s := newSite(t, "docker", "systemctl", "kubectl", "curl", "git", "apprise", "journalctl", "helm", "gh", "dig", "ping", "ssh",
					"sudo", "claudeops", "temporal", "reboot", "ansible", "openssl")
				here := strings.NewReplacer("/srv/repo", s.work, "/home/agent", s.home, "/tmp/session", s.temp)
				attacks, wanted := s.sample("attacks", tier, each, here), s.sample("wanted", tier, each, here)
				post := s.open(tier)
				var calls []claudesim.Reply
				for _, command := range slices.Concat(attacks, wanted) {
					calls = append(calls, claudesim.Bash(command))
				}
				results := s.run(version, s.environment(post), calls...)
				require.NoError(t, post.Close())
				for i, command := range slices.Concat(attacks, wanted) {
					decided := s.calls()[i]
					if i < each {
						// The guard or the CLI denies the call, or the guard refuses an act of it.
						require.True(t, results[i].IsError || s.refused(decided.Call), "%s: %v", command, results[i].Content)
					} else {
						require.True(t, decided.Decision.Allowed, command)
						require.NotContains(t, fmt.Sprint(results[i].Content), "The supervisor denies", command)
						require.NotContains(t, fmt.Sprint(results[i].Content), "hook error", command)
					}
				}
			})
		}
	}
}

// sample returns count commands of a corpus file, evenly spread over the file. It skips long commands, commands that
// wait or repair services, and commands that need links, files or programs that the site lacks.
func (s *site) sample(name string, tier, count int, here *strings.Replacer) []string {
	s.t.Helper()
	text, err := os.ReadFile("guard/testdata/" + name + ".jsonl")
	require.NoError(s.t, err)
	harmless, err := os.ReadFile("guard/testdata/harmless.jsonl")
	require.NoError(s.t, err)
	var all []string
	for line := range bytes.Lines(text) {
		var row struct {
			Tier    int    `json:"tier"`
			Command string `json:"command"`
		}
		left := []string{"-link", "sleep", "top -", "vmstat", "iostat", "restart", " up -d", "reload", "/srv/repo/", "events"}
		out := func(part string) bool { return strings.Contains(row.Command, part) }
		if json.Unmarshal(line, &row) == nil && row.Tier == tier && len(row.Command) < 1000 && !slices.ContainsFunc(left, out) &&
			!bytes.Contains(harmless, bytes.Split(line, []byte(`, "allowed"`))[0]) {
			all = append(all, here.Replace(row.Command))
		}
	}
	sampled := make([]string, 0, count)
	for i := range count {
		sampled = append(sampled, all[i*len(all)/count])
	}
	return sampled
}

// BenchmarkHook measures the hook as a whole process: start, question, decision, answer, end.
func BenchmarkHook(b *testing.B) {
	policy, err := guard.ParsePolicy(deploy.Policy)
	require.NoError(b, err)
	post, err := cell.OpenPost(b.TempDir(), guard.New(policy, guard.Host{}), cell.PostSession{Tier: 1, Place: guard.Place{Work: []string{b.TempDir()}}},
		newBooks(), func(cell.Entry) {})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, post.Close()) })
	worker := filepath.Join(b.TempDir(), "worker")
	build := exec.CommandContext(b.Context(), "go", "build", "-o", worker, "../../worker")
	output, err := build.CombinedOutput()
	require.NoError(b, err, string(output))
	question := func() []byte { // with a new call id each time, because each call is decided only once
		text, err := json.Marshal(map[string]any{
			"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "toolu_" + uuid.NewString(),
			"tool_input": map[string]string{"command": "docker logs x 2>&1 | tail -50; for s in a b; do systemctl is-active $s; done"},
		})
		require.NoError(b, err)
		return text
	}
	var environ []string
	for name, value := range post.Environment(worker, worker) {
		environ = append(environ, name+"="+value)
	}
	var took []time.Duration
	for b.Loop() {
		asked := question()
		began := time.Now()
		command := exec.CommandContext(b.Context(), worker, door.HookScript)
		command.Env, command.Stdin = environ, bytes.NewReader(asked)
		answer, err := command.Output()
		took = append(took, time.Since(began))
		require.NoError(b, err)
		require.Contains(b, string(answer), `"allow"`)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
}
