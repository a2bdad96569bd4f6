//go:build linux

package shell_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/door"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/cell/process"
	_ "github.com/claudeops/claudeops/internal/cell/shell" // the test binary is also the shell
)

// row is one call of the guard's corpus.
type row struct {
	Tier    int    `json:"tier"`
	Command string `json:"command"`
	Allowed bool   `json:"allowed"`
	Note    string `json:"note"`
}

func corpus(t testing.TB, names ...string) (all []row) {
	t.Helper()
	for _, name := range names {
		file, err := os.Open("../guard/testdata/" + name + ".jsonl")
		require.NoError(t, err)
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if line := lines.Text(); strings.HasPrefix(line, "{") {
				var r row
				require.NoError(t, json.Unmarshal([]byte(line), &r), line)
				all = append(all, r)
			}
		}
		require.NoError(t, errors.Join(lines.Err(), file.Close()))
	}
	return all
}

const (
	// scriptLimit bounds the running time of a script. A script that exceeds it is stopped, and its effects until then
	// are checked.
	scriptLimit = 2 * time.Second
	// nobody is the id of the user that runs the scripts.
	nobody = 65534
	// key is the value of a variable that no script may show.
	key = "LEAKED-KEY"
	// private is the content of each secret file.
	private = "PASSWORD=x\n"
)

// genuine lists the programs that are not replaced by stand-ins: those that run other programs.
var genuine = []string{
	"xargs", "env", "timeout", "nice", "ionice", "nohup", "stdbuf", "find", "sort", "head", "tail", "uniq",
	"grep", "wc", "cat", "rev", "tr", "mkdir", "touch", "tee", "cp", "mv", "rm", "rmdir", "truncate", "chmod",
	"ls", "stat", "readlink", "realpath", "cut", "sed", "awk", "seq", "base64", "basename", "dirname", "mktemp",
	"sleep", "echo", "printf", "ln",
}

// strangers lists programs that the policy does not name.
var strangers = []string{"ln", "python3", "perl", "id", "cc", "make", "dd", "ln", "kill", "reboot", "rsync", "tar", "scp", "node", "a", "foo", "bash", "sh", "dash"}

// standIn is the script of a stand-in. It logs its words and its directory.
const standIn = `#!/bin/sh
printf '%%s\0' CALL "$PWD" "$#" %s "$@" >> %s
%s
`

// hostile is the part of most stand-ins that prints hostile output.
const hostile = `case $(($# % 4)) in
0) echo -v;;
1) echo 'a[$(id)]';;
2) echo '. -delete';;
*) printf '%s\n' -rf '*' 'a b' '$(id)' /proc/self/environ '{a,b}' '~root' ';id' "'" '"' '\' '-o x' 1;;
esac`

// stage holds the directories that the corpus mentions, with stand-ins for the programs.
type stage struct {
	place guard.Place
	guard *guard.Guard
	here  *strings.Replacer
	// root contains the agent's directories. self is a copy of the test binary, and log the log of the stand-ins.
	root, bin, self, sockets, log string
	before                        map[string]string
	// harmless lists the attacks that may run.
	harmless []row
	// addresses lists the addresses to which confined lets no program connect.
	addresses []process.Address
	// programs lists directories in which confined looks for programs first.
	programs []string

	mutex   sync.Mutex
	entries []cell.Entry
}

// newStage creates the directories. The scripts run as another user, so it must run as root.
func newStage(t *testing.T) *stage {
	t.Helper()
	if testing.Short() {
		t.Skip("the scripts really run: not with -short")
	}
	if os.Getuid() != 0 {
		t.Skip("scripts run as another user: root is needed")
	}
	root := t.TempDir()
	s := &stage{root: root, bin: root + "/bin", self: root + "/self", sockets: t.TempDir(), log: root + "/log", harmless: corpus(t, "harmless")}
	repository, home, temp := root+"/repo", root+"/agent", root+"/session"
	state := home + "/.local/state/claudeops"
	for _, dir := range []string{repository + "/.git", repository + "/config", repository + "/infra", repository + "/sub", repository + "/d", repository + "/inventory", state, temp} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	for path, content := range map[string]string{
		repository + "/.git/config":       "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@git.lan:ops/repo.git\n",
		repository + "/compose.yaml":      "services:\n  jellyfin: {image: jellyfin}\n  sonarr: {image: sonarr}\n",
		repository + "/.env":              private,
		repository + "/config/nginx.conf": "events {}\n",
		repository + "/vms.yaml":          "vms: []\n",
		repository + "/infra/vms.yaml":    "vms: []\n",
		repository + "/sub/README":        "",
		repository + "/inventory/ie.yaml": "ie: []\n",
		repository + "/urls.txt":          "-o/srv/repo/pwn http://x.lan/\n",
		repository + "/options.txt":       "-o /srv/repo/pwn\n",
		repository + "/dir.txt":           "/etc\n",
		repository + "/list":              "-delete\n",
		repository + "/env.sh":            "docker stop web\n",
		repository + "/fix.sh":            "docker stop web\n",
		repository + "/fix-all.sh":        "docker stop web\n",
		repository + "/app.log":           "x\n",
		repository + "/notes":             "nothing\n",
		repository + "/id_rsa":            private,
		repository + "/secrets/db.txt":    private,
		home + "/.kube/config":            private,
		home + "/.ssh/id_ed25519":         private,
		state + "/claudeops.db":           private,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	for link, target := range map[string]string{
		"shadow-link": "/etc/shadow", "env-link": "/proc/self/environ", "etc-link": "/etc", "home-link": home, "volumes-link": "/volumes",
		"d/authorized_keys": home + "/.ssh/authorized_keys", "lnk": ".", "state-link": state,
	} {
		require.NoError(t, os.Symlink(target, repository+"/"+link))
	}
	s.place = guard.Place{
		Work: []string{repository}, Home: home, Temp: temp, Path: []string{s.bin},
		Own:   []string{state, state + "-transcripts"},
		Doors: []guard.Door{{Host: "127.0.0.1", Port: 7233}, {Host: "127.0.0.1", Port: 8233}}, Confined: true,
	}
	s.here = strings.NewReplacer("/srv/repo", repository, "/home/agent", home, "/tmp/session", temp)
	s.install(t)
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody)) //nolint:gosec // only the test writes there
	}))
	for _, dir := range []string{root, filepath.Dir(root)} {
		require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // the other user must be able to enter it
	}
	s.before = s.snapshot(t)
	return s
}

// install writes the stand-ins, and copies the test binary.
func (s *stage) install(t *testing.T) {
	t.Helper()
	require.NoError(t, os.Mkdir(s.bin, 0o755)) //nolint:gosec // the other user must be able to run them
	policy, err := guard.ParsePolicy(withDirectories(s.bin))
	require.NoError(t, err)
	s.guard = guard.New(policy, guard.Host{})
	for _, name := range slices.Concat(slices.Collect(maps.Keys(policy.Programs)), strangers) {
		prints := hostile
		switch {
		case slices.Contains(genuine, name):
			path, err := exec.LookPath(name)
			if err != nil {
				continue
			}
			prints = `exec ` + path + ` "$@"`
		case slices.Contains([]string{"docker", "podman", "docker-compose", "kubectl"}, name):
			prints = "echo web-1; echo db"
		case slices.Contains([]string{"nproc", "date", "stat"}, name):
			prints = "echo 4"
		}
		require.NoError(t, os.WriteFile(filepath.Join(s.bin, name), fmt.Appendf(nil, standIn, name, s.log, prints), 0o755))
	}
	self, err := os.Executable()
	require.NoError(t, err)
	content, err := os.ReadFile(self)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(s.self, content, 0o755))
}

// withDirectories returns the built-in policy with more directories of programs.
func withDirectories(dirs ...string) []byte {
	policy := deploy.Policy
	for _, dir := range dirs {
		policy = bytes.Replace(policy, []byte("directories: ["), []byte("directories: ["+dir+", "), 1)
	}
	return policy
}

// snapshot returns the files below the agent's directories, except those that every tier may write.
func (s *stage) snapshot(t testing.TB) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(s.root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == s.place.Temp || path == s.bin:
			return fs.SkipDir
		case path == s.log || path == s.self:
			return nil
		case entry.IsDir():
			files[path] = "directory"
			return nil
		case entry.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			files[path] = "link " + target
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // no other process writes there any more
		files[path] = "file " + string(content)
		return err
	}))
	return files
}

// restore resets the files to their initial state.
func (s *stage) restore(t testing.TB) {
	t.Helper()
	for path := range s.snapshot(t) {
		if s.before[path] != "directory" {
			require.NoError(t, os.RemoveAll(path))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(s.before)) {
		content := s.before[path]
		if target, is := strings.CutPrefix(content, "link "); is {
			require.NoError(t, os.Symlink(target, path))
		} else if text, is := strings.CutPrefix(content, "file "); is {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		} else {
			require.NoError(t, os.MkdirAll(path, 0o700))
		}
		require.NoError(t, os.Lchown(path, nobody, nobody))
	}
}

// outcome holds the effects of a call of the tool Bash.
type outcome struct {
	// denied reports that the hook denied the call, and refused that the door refused an act of it.
	denied, refused bool
	reasons         []string
	// ran lists the commands that really ran, and changed the files that have changed.
	ran, changed []string
	output       string
	code         int
}

// unlimited is a ledger that refuses nothing.
type unlimited struct{}

func (unlimited) Charge(context.Context, string, []guard.Action) (string, error) { return "", nil }
func (unlimited) Return(context.Context, string) error                           { return nil }

// call makes a call of the tool Bash as the CLI does: it asks the hook and, if the hook allows the call, starts the
// shell.
func (s *stage) call(t *testing.T, tier int, script string) outcome {
	t.Helper()
	s.reset(t)
	s.entries = nil
	post, err := cell.OpenPost(s.sockets, s.guard, cell.PostSession{ID: "session", Tier: tier, Place: s.place}, unlimited{}, s.record)
	require.NoError(t, err)
	defer func() { require.NoError(t, post.Close()) }()
	if denied := post.Try(script); denied != "" {
		return outcome{denied: true, reasons: []string{denied}}
	}
	result := s.run(t, post, script)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, entry := range s.entries {
		if !entry.Decision.Allowed {
			result.refused = true
			result.reasons = append(result.reasons, entry.Decision.Reason)
		}
	}
	return result
}

func (s *stage) record(entry cell.Entry) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.entries = append(s.entries, entry)
}

// reset empties the directory for temporary files and the log.
func (s *stage) reset(t *testing.T) {
	t.Helper()
	require.NoError(t, os.RemoveAll(s.place.Temp))
	require.NoError(t, os.Mkdir(s.place.Temp, 0o700))
	require.NoError(t, os.Chown(s.place.Temp, nobody, nobody))
	evil := s.place.Temp + "/evil/.git"          // a repository of the agent's own
	require.NoError(t, os.MkdirAll(evil, 0o755)) //nolint:gosec // readable
	require.NoError(t, os.WriteFile(evil+"/config", []byte("[core]\n\tfsmonitor = rm -rf /srv/repo\n"), 0o644))
	require.NoError(t, os.WriteFile(s.place.Temp+"/list", []byte("-delete\n"), 0o644))
	require.NoError(t, os.WriteFile(s.log, nil, 0o600))
	require.NoError(t, os.Chown(s.log, nobody, nobody))
}

// run runs a script in the shell, as another user and in namespaces of its own.
func (s *stage) run(t *testing.T, post *cell.Post, script string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scriptLimit)
	defer cancel()
	command := exec.CommandContext(ctx, s.self, "eval "+quote(script))
	command.Dir = s.place.Work[0]
	command.Env = []string{
		"PATH=" + s.bin, "HOME=" + s.place.Home, "TMPDIR=" + s.place.Temp, "TERM=dumb", "ANTHROPIC_API_KEY=" + key, "GIT_CONFIG_COUNT=0",
		door.SocketVariable + "=" + post.Environment("", "")[door.SocketVariable],
	}
	command.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Setpgid: true,
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC, // the end of the first process kills all others
	}
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	command.WaitDelay = scriptLimit
	_ = command.Run() // scripts may fail
	result := outcome{output: output.String(), code: command.ProcessState.ExitCode()}
	result.ran, result.changed = s.effects(t)
	return result
}

// effects returns the commands that ran since the last reset and the files that changed, and restores the files.
func (s *stage) effects(t *testing.T) (ran, changed []string) {
	t.Helper()
	content, err := os.ReadFile(s.log)
	require.NoError(t, err)
	after := s.snapshot(t)
	if maps.Equal(s.before, after) {
		return recorded(content), nil
	}
	for path, content := range after {
		if s.before[path] != content {
			changed = append(changed, path)
		}
	}
	for path := range s.before {
		if _, is := after[path]; !is {
			changed = append(changed, path)
		}
	}
	s.restore(t)
	return recorded(content), changed
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// recorded parses the log of the stand-ins. It skips an incomplete last entry.
func recorded(content []byte) (calls []string) {
	fields := strings.Split(string(content), "\x00")
	for len(fields) > 4 && fields[0] == "CALL" {
		count := 0
		if _, err := fmt.Sscan(fields[2], &count); err != nil || len(fields) < count+5 {
			break
		}
		calls = append(calls, strings.Join(fields[3:count+4], " "))
		fields = fields[count+4:]
	}
	return calls
}

func isBelow(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
