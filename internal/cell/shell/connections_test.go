//go:build linux

package shell_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/cell/process"
)

// TestScriptsDoNotReachForbiddenAddresses runs curl in the sandbox of its tier. The guard does not know that these
// addresses are forbidden; the kernel recognizes them in each notation, and what it refuses is recorded.
func TestScriptsDoNotReachForbiddenAddresses(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "here") }))
	t.Cleanup(server.Close)
	allowed := httptest.NewServer(server.Config.Handler)
	t.Cleanup(allowed.Close)
	port := server.Listener.Addr().(*net.TCPAddr).Port
	s.addresses = []process.Address{
		{Here: true, Port: port, Reason: "it is the supervisor's"},
		{IP: [16]byte{10: 0xff, 11: 0xff, 12: 169, 13: 254}, Bits: 96 + 16, Reason: "clouds give out credentials there"},
	}
	for script, address := range map[string]string{
		fmt.Sprintf("curl -sS http://localhost:%d/", port):                   "127.0.0.1",
		fmt.Sprintf("curl -sS http://0x7f.1:%d/", port):                      "127.0.0.1",
		fmt.Sprintf("curl -sS 'http://[::ffff:0.0.0.0]:%d/'", port):          "127.0.0.1",
		fmt.Sprintf("echo http://127.0.0.3:%d/ | xargs curl -sS", port):      "127.0.0.3",
		fmt.Sprintf("for p in %d; do curl -sS http://127.1:$p/; done", port): "127.0.0.1",
		"curl -sS -m 20 http://2852039166/latest/meta-data/":                 "169.254.169.254:80",
		"curl -sS -m 20 'http://[::ffff:169.254.170.2]/v2/credentials'":      "169.254.170.2:80",
		"curl -sS -m 20 http://169.254.169.254/latest/user-data":             "169.254.169.254:80",
	} {
		printed, entries, started := s.confined(t, 1, script+"; curl -sS "+allowed.URL)
		require.True(t, started, "%s: %v", script, entries)
		require.Equal(t, 1, strings.Count(printed, "here"), "%s: %s", script, printed)
		require.Contains(t, printed, "connect", script)
		require.True(t, slices.ContainsFunc(entries, func(e cell.Entry) bool {
			return e.Decision.Rule == cell.RuleConnections && strings.Contains(e.Decision.Reason, address) && strings.Contains(string(e.Input), "curl -\\u003e "+address)
		}), "%s: nothing is recorded: %v", script, entries)
	}
}

// TestCurlSpeaksOnlyHTTP starts the real curl with the words that the door gives it, and options that make it follow
// redirects. No name of a host, no redirect and no file of settings makes it talk to a server of another protocol.
func TestCurlSpeaksOnlyHTTP(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		require.Empty(t, os.Getenv("CI"), err)
		t.Skip(err)
	}
	redis, said := listenAsRedis(t)
	redirect := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusFound)
	}))
	t.Cleanup(redirect.Close)
	policy, err := guard.ParsePolicy(deploy.Policy)
	require.NoError(t, err)
	home := t.TempDir()
	for _, url := range []string{
		"dict.localhost:%d/CONFIG:SET:dir:x", redirect.URL + "/?to=dict://localhost:%d/FLUSHALL", redirect.URL + "/?to=gopher://localhost:%d/_FLUSHALL",
		redirect.URL + "/?to=ftp://localhost:%d/x", "ftp.localhost:%d/x", "imap.localhost:%d/x", "smtp.localhost:%d/x", "pop3.localhost:%d/x", "ldap.localhost:%d/x",
	} {
		url = fmt.Sprintf(url, redis)
		require.NoError(t, os.WriteFile(home+"/.curlrc", fmt.Appendf(nil, "url = dict://localhost:%d/FLUSHALL\nnext\n", redis), 0o600))
		for _, words := range [][]string{{"curl", "-sS", url}, {"/usr/bin/curl", "-s", "--max-time", "5", url}} {
			start := guard.New(policy, guard.Host{}).Start(guard.Act{Tier: 1, Words: words, Place: guard.Place{Path: []string{"/usr/bin"}, Dir: home}})
			require.True(t, start.Allowed, start.Reason)
			require.Equal(t, words[len(words)-1], start.Words[len(start.Words)-1])
			command := exec.CommandContext(t.Context(), curl, append(start.Words[1:], "-L", "--connect-timeout", "5", "-m", "10")...)
			command.Env = []string{"HOME=" + home, "NO_PROXY=*"}
			_, _ = command.CombinedOutput()
		}
	}
	require.Empty(t, said())
}

// listenAsRedis accepts connections, and returns its port and a function that returns what clients have said.
func listenAsRedis(t *testing.T) (port int, said func() string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	var mutex sync.Mutex
	heard := ""
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			buffer := make([]byte, 1000)
			_ = conn.SetDeadline(time.Now().Add(200 * time.Millisecond)) // some clients only read
			n, _ := conn.Read(buffer)
			mutex.Lock()
			heard += "connected " + string(buffer[:n])
			mutex.Unlock()
			_, _ = conn.Write([]byte("+OK\r\n"))
			_ = conn.Close()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port, func() string {
		mutex.Lock()
		defer mutex.Unlock()
		return heard
	}
}

// TestTextsOpenNoSockets counts the filters of the system calls of a program: one of texts has one more, which lets it
// open no sockets.
func TestTextsOpenNoSockets(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, program := range []string{"awk '/^Seccomp_filters/'", "sed -n '/^Seccomp_filters/p'", "timeout 20 awk '/^Seccomp_filters/'"} {
		printed, entries, started := s.confined(t, 1, "grep ^Seccomp_filters /proc/self/status; "+program+" /proc/self/status")
		require.True(t, started, entries)
		var plain, texts int
		_, err := fmt.Sscanf(strings.ReplaceAll(printed, "Seccomp_filters:", ""), "%d\n%d\n", &plain, &texts)
		require.NoError(t, err, printed)
		require.Equal(t, plain+1, texts, program)
	}
}

// TestTextsWriteWhereTheTierMay runs programs that write what no argument names. The kernel lets them change files
// where their tier may only, and not in other directories that the sandbox leaves writable, such as the home and the
// CLI's own.
func TestTextsWriteWhereTheTierMay(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for script, want := range map[string]int{
		`awk 'BEGIN{print "x" > (ENVIRON["HOME"] "/.kube/kuberc")}'`:                       0,
		"sed -n 'w /home/agent/projects.jsonl' app.log":                                    0,
		"timeout 20 sed -n 'w /home/agent/projects.jsonl' app.log":                         0,
		"find app.log -exec sed -n 'w /home/agent/projects.jsonl' {} ';'":                  0,
		`awk 'BEGIN{print "x" > (ENVIRON["TMPDIR"] "/made"); print "" > "/dev/null"}'`:     1,
		`awk '{print > "made"}' app.log`:                                                   2,
		"sed -i s/x/y/ notes && sed -i s/nothing/made/ notes && ls notes && mv notes made": 2,
	} {
		for _, tier := range []int{1, 2} {
			if strings.Contains(script, "-i") && tier == 1 {
				continue
			}
			printed, entries, started := s.confined(t, tier, s.here.Replace(script))
			require.True(t, started, "%s: %v", script, entries)
			made, changed := s.effects(t)
			require.Empty(t, made)
			_, err := os.Stat(s.place.Temp + "/made")
			allowed := want > 0 && tier >= want
			require.Equal(t, allowed, err == nil || len(changed) > 0, "tier %d: %s: %s %v", tier, script, printed, changed)
			require.Equal(t, !allowed, slices.ContainsFunc(entries, func(e cell.Entry) bool { return e.Decision.Rule == cell.RuleFiles }), script)
		}
	}
}

// TestTextsReadWhatTheTierMay runs programs that read what no argument names. The kernel lets them read where their
// tier may only.
func TestTextsReadWhatTheTierMay(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	outside := t.TempDir()
	require.NoError(t, os.Chmod(outside, 0o755)) //nolint:gosec // the agent's user must be able to read there
	require.NoError(t, os.WriteFile(outside+"/a.json", []byte("{\"a\":\"of others\"}\n"), 0o644))
	require.NoError(t, os.WriteFile(s.place.Work[0]+"/format", []byte("of nobody"), 0o644))
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	for _, script := range []string{
		`awk 'BEGIN{while((getline l < "` + outside + `/a.json") > 0) print l}'`,
		"sed 'r " + outside + "/a.json' app.log",
		"find app.log -exec sed 'r " + outside + "/a.json' {} ';'",
		`jq -n 'import "a" as $a {search: "` + outside + `"}; $a'`,
		"curl -s -w @" + outside + "/a.json " + server.URL,
	} {
		printed, entries, started := s.confined(t, 1, script+"; curl -s -w @format "+server.URL)
		require.True(t, started, "%s: %v", script, entries)
		require.NotContains(t, printed, "of others", script)
		require.Contains(t, printed, "of nobody", script)
		require.True(t, slices.ContainsFunc(entries, func(e cell.Entry) bool { return strings.Contains(e.Decision.Reason, outside) }), script)
	}
}

// TestTextsReadTheirStreams runs texts that read what the shell gives them: files, pipes, here-documents and
// substitutions.
func TestTextsReadTheirStreams(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for script, want := range map[string]string{
		`awk '{print "a", $1}' <(echo one) - < app.log`:                     "a one\na x\n",
		`sed 's/^/b /' /dev/stdin <<< two`:                                  "b two\n",
		`echo three | jq -R '"c " + .' | sed -n p /dev/fd/0`:                "\"c three\"\n",
		"jq -r .a <<E\n{\"a\": \"d\"}\nE":                                   "d\n",
		`awk 'BEGIN{print "e" > "/dev/stderr"; print "f" > "/dev/stdout"}'`: "e\nf\n",
		`sed -n 's/x/h/w /dev/stdout' app.log`:                              "h\n",
		`awk '/^Name/' /proc/self/status | cut -c1-5`:                       "Name:\n",
		`sed -n 1p app.log > "$TMPDIR/x"; sed -n p "$TMPDIR/x"`:             "x\n",
	} {
		printed, entries, started := s.confined(t, 1, script)
		require.True(t, started, entries)
		require.Equal(t, want, printed, script)
	}
}

// TestGawkIsConfined runs texts by which gawk connects, starts commands and loads code: once without a limit, where
// each has its effect, and as awk of Tier 1, where the guard or the kernel refuses it.
func TestGawkIsConfined(t *testing.T) {
	t.Parallel()
	gawk, err := exec.LookPath("gawk")
	if err != nil {
		require.Empty(t, os.Getenv("CI"), err)
		t.Skip(err)
	}
	s := newStage(t)
	s.programs = []string{t.TempDir()}
	require.NoError(t, os.Chmod(s.programs[0], 0o755)) //nolint:gosec // the agent's user must be able to run them
	require.NoError(t, os.Symlink(gawk, s.programs[0]+"/awk"))
	port, said := listenAsRedis(t)
	made := s.place.Temp + "/made"
	ran := func() bool { return os.Remove(made) == nil }
	for text, guarded := range map[string]bool{
		fmt.Sprintf(`BEGIN{s="/inet/tcp/0/127.0.0.1/%d"; print "FLUSHALL" |& s; s |& getline}`, port):             false,
		fmt.Sprintf(`BEGIN{s="/in" "et4/tcp/0/127.0.0.1/%d"; print "FLUSHALL" |& s; s |& getline}`, port):         false,
		fmt.Sprintf(`BEGIN{s=substr("x/inet/tcp/0/127.0.0.1/%d", 2); while ((getline l < s) > 0) print l}`, port): false,
		fmt.Sprintf(`BEGIN{ARGV[1]="/inet/tcp/0/127.0.0.1/%d"; ARGC=2} {print}`, port):                            false,
		`BEGIN{system("touch ` + made + `")}`:                                           false,
		`BEGIN{"touch ` + made + `" | getline}`:                                         false,
		`BEGIN{print "touch ` + made + `" | "sh"}`:                                      false,
		`BEGIN{print "touch ` + made + `" |& "sh"; close("sh", "to"); "sh" |& getline}`: false,
		`BEGIN{f="system"; @f("touch ` + made + `")}`:                                   false,
		"@load \"filefuncs\"\nBEGIN{f=\"" + made + "\"; chdir(\"/\"); print > f}":       true,
		"@ \\\nload \"filefuncs\"\nBEGIN{chdir(\"/\"); print > \"" + made + "\"}":       true,
	} {
		require.NoError(t, os.RemoveAll(made))
		before := said()
		_ = exec.CommandContext(t.Context(), gawk, text).Run()
		require.Eventually(t, func() bool { return ran() || said() != before }, time.Minute, time.Millisecond, "without effect: %s", text)
		before = said()
		printed, entries, started := s.confined(t, 1, `awk 'BEGIN{print "version " (PROCINFO["version"] > 0)}'; awk `+quote(text))
		require.Equal(t, !guarded, started, "%s: %v", text, entries)
		require.Equal(t, started, strings.Contains(printed, "version 1"), printed)
		require.False(t, ran(), "%s: %s", text, printed)
		require.Equal(t, before, said(), "%s: %s", text, printed)
	}
}
