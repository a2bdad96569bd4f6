//go:build linux

package shell

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
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
	"mvdan.cc/sh/v3/syntax"
)

// batchSize is the number of scripts that one bash and one recorder run.
const batchSize = 500

// outcome holds the effects of a script.
type outcome struct {
	calls  []string
	files  string
	output string
	errors string
	code   int
	// stuck reports that the script did not end.
	stuck bool
}

// side runs scripts in a directory as its root.
type side struct {
	root string
	// patience is the time without progress after which a script is given up.
	patience time.Duration
	// start returns the command that runs the scripts from an index on.
	start func(scripts []string, from int) *exec.Cmd
}

// newSides returns the real bash and the interpreter.
func newSides(t *testing.T) (bash, ours side) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("scripts run as another user in a root directory of their own: root is needed")
	}
	program, err := exec.LookPath("bash")
	require.NoError(t, err)
	bash.root, ours.root = newRoot(t), newRoot(t)
	bash.patience, ours.patience = stuck, stuck
	copyProgram(t, program, bash.root)
	self, err := os.Executable()
	require.NoError(t, err)
	attributes := func() *syscall.SysProcAttr {
		return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC, Pdeathsig: syscall.SIGKILL}
	}
	bash.start = func(scripts []string, from int) *exec.Cmd {
		require.NoError(t, os.WriteFile(bash.root+"/driver", driver(scripts, from), 0o644))
		command := exec.CommandContext(t.Context(), self, bashRole, bash.root)
		command.Env, command.SysProcAttr = []string{"PATH=/none", "HOME=/home", "LC_ALL=C.UTF-8", "TMPDIR=/none"}, attributes()
		command.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNS
		return command
	}
	input := filepath.Join(t.TempDir(), "scripts.json")
	ours.start = func(scripts []string, from int) *exec.Cmd {
		content, err := json.Marshal(scripts)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(input, content, 0o600))
		command := exec.CommandContext(t.Context(), self, recorderRole, ours.root, input, strconv.Itoa(from))
		command.Env = []string{"PATH=/none"}
		command.SysProcAttr = attributes()
		return command
	}
	return bash, ours
}

// newRoot creates a root directory for another user.
func newRoot(t *testing.T) string {
	t.Helper()
	const memory = "/dev/shm"                                    // a hundred thousand files on a disk take minutes
	root, err := os.MkdirTemp(memory, "claudeops-differential-") //nolint:usetesting // in memory
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	modes := map[string]os.FileMode{"": 0o755}
	for _, dir := range scratch {
		modes[dir] = 0o777
	}
	for _, dir := range []string{"etc", "dev", "program", "none", "proc"} {
		modes[dir] = 0o755
	}
	for dir, mode := range modes {
		require.NoError(t, os.MkdirAll(root+"/"+dir, mode))
		require.NoError(t, os.Chmod(root+"/"+dir, mode)) // whatever the umask is
	}
	require.NoError(t, os.WriteFile(root+"/etc/hostname", []byte("ops\n"), 0o644))
	require.NoError(t, os.Symlink("/proc/self/fd", root+"/dev/fd"))
	require.NoError(t, syscall.Mknod(root+"/dev/null", syscall.S_IFCHR|0o666, 1<<8|3))
	require.NoError(t, os.Chmod(root+"/dev/null", 0o666)) //nolint:gosec // like any
	return root
}

// scratch lists the directories in a root directory that scripts write to.
var scratch = []string{"w", "out", "err", "log", "code", "home", "tmp"}

// copyProgram copies bash and its libraries into a root directory.
func copyProgram(t *testing.T, program, root string) {
	t.Helper()
	libraries, err := exec.CommandContext(t.Context(), "ldd", program).Output()
	require.NoError(t, err)
	into := map[string]string{program: "/program/bash"}
	for field := range strings.FieldsSeq(string(libraries)) {
		if filepath.IsAbs(field) {
			into[field] = field
		}
	}
	if locale := "/usr/lib/locale/C.utf8"; os.MkdirAll(root+"/usr/lib/locale", 0o755) == nil { //nolint:gosec // the other user must be able to enter it
		_ = os.CopyFS(root+locale, os.DirFS(locale))
	}
	for from, to := range into {
		content, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(root+to), 0o755)) //nolint:gosec // the other user must be able to enter it
		require.NoError(t, os.WriteFile(root+to, content, 0o755))
	}
}

// prepare creates the directories of scripts.
func (s side) prepare(t *testing.T, count int) {
	t.Helper()
	for _, dir := range scratch {
		entries, err := os.ReadDir(s.root + "/" + dir)
		require.NoError(t, err)
		for _, entry := range entries {
			require.NoError(t, os.RemoveAll(s.root+"/"+dir+"/"+entry.Name()))
		}
	}
	for i := range count {
		dir := fmt.Sprintf("%s/w/%d", s.root, i)
		for _, name := range []string{"", "/t", "/config"} {
			require.NoError(t, os.Mkdir(dir+name, 0o755)) //nolint:gosec // the same
			require.NoError(t, os.Lchown(dir+name, nobody, nobody))
		}
		for _, name := range []string{"/a", "/list", "/compose.yaml", "/.env", "/config/nginx.conf"} {
			require.NoError(t, os.WriteFile(dir+name, []byte("-delete\na b\n"), 0o644))
			require.NoError(t, os.Lchown(dir+name, nobody, nobody))
		}
	}
}

// run runs scripts, and returns what each did.
func (s side) run(t *testing.T, scripts []string) []outcome {
	t.Helper()
	s.prepare(t, len(scripts))
	outcomes := make([]outcome, len(scripts))
	for next := 0; next < len(scripts); next++ {
		if next = s.runFrom(t, scripts, next, outcomes); next < len(scripts) {
			outcomes[next].stuck = true
		}
	}
	for i := range outcomes {
		s.read(t, i, &outcomes[i])
	}
	return outcomes
}

// runFrom runs scripts from an index on, and returns the index of the first that did not end.
func (s side) runFrom(t *testing.T, scripts []string, from int, outcomes []outcome) (next int) {
	t.Helper()
	command := s.start(scripts, from)
	ends, err := command.StdoutPipe()
	require.NoError(t, err)
	var diagnostics strings.Builder
	command.Stderr = &diagnostics
	require.NoError(t, command.Start())
	watchdog := time.AfterFunc(s.patience, func() { _ = command.Process.Kill() })
	lines := bufio.NewScanner(ends)
	for next = from; lines.Scan(); next++ {
		watchdog.Reset(s.patience)
		index := 0
		_, err := fmt.Sscan(lines.Text(), &index, &outcomes[next].code)
		require.NoError(t, err, "%q\n%s", lines.Text(), scripts[next])
		require.Equal(t, next, index)
	}
	watchdog.Stop()
	_ = command.Wait() // it may have been killed
	if next == from {
		t.Log(diagnostics.String(), command.ProcessState)
	}
	return next
}

// read reads what a script did.
func (s side) read(t *testing.T, index int, o *outcome) {
	t.Helper()
	content := func(dir string) string {
		text, err := os.ReadFile(fmt.Sprintf("%s/%s/%d", s.root, dir, index))
		if !o.stuck && dir != "log" {
			require.NoError(t, err)
		}
		return string(text)
	}
	o.output, o.errors = content("out"), content("err")
	o.calls = recordedCalls(content("log"))
	var files []string
	root := fmt.Sprintf("%s/w/%d", s.root, index)
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			text, _ := os.ReadFile(path) //nolint:gosec // only the test writes there
			files = append(files, path[len(root):]+": "+string(text))
		}
		return nil
	})
	o.files = strings.Join(files, "\n")
}

// recordedCalls parses a log.
func recordedCalls(log string) (calls []string) {
	fields := strings.Split(strings.ReplaceAll(log, "\x02", "\n"), "\x00") // as the function handler writes
	for len(fields) > 4 && fields[0] == "CALL" {
		count, err := strconv.Atoi(fields[3])
		if err != nil || len(fields) < count+4 {
			break
		}
		calls = append(calls, fmt.Sprintf("%q in %s with %q", fields[4:count+4], fields[1], fields[2]))
		fields = fields[count+4:]
	}
	return calls
}

// unordered returns calls, and the lines of their inputs, in an order that does not depend on the time: commands that
// run at once write into one pipe.
func unordered(calls []string) (sorted []string) {
	for _, call := range calls {
		if at := strings.LastIndex(call, ` with "`); at >= 0 {
			if input, err := strconv.Unquote(call[at+len(" with "):]); err == nil {
				lines := strings.Split(input, "\n")
				slices.Sort(lines)
				call = call[:at] + fmt.Sprintf(" with %q", strings.Join(lines, "\n"))
			}
		}
		sorted = append(sorted, call)
	}
	slices.Sort(sorted)
	return sorted
}

// difference returns how the outcomes of a script differ, or "".
func difference(script string, bash, ours outcome) string {
	inOrder := !isConcurrent(script)
	if !inOrder {
		bash.calls, ours.calls = unordered(bash.calls), unordered(ours.calls)
	}
	switch {
	case bash.stuck != ours.stuck:
		return fmt.Sprintf("does not end: %t in bash, %t here", bash.stuck, ours.stuck)
	case bash.stuck:
		return ""
	case !slices.Equal(bash.calls, ours.calls):
		return fmt.Sprintf("calls\n  bash: %s\n  here: %s", strings.Join(bash.calls, "\n        "), strings.Join(ours.calls, "\n        "))
	case bash.files != ours.files:
		return fmt.Sprintf("files\n  bash: %q\n  here: %q", bash.files, ours.files)
	case bash.code != ours.code:
		return fmt.Sprintf("exit codes: %d in bash, %d here", bash.code, ours.code)
	case inOrder && bash.output != ours.output:
		return fmt.Sprintf("output\n  bash: %q\n  here: %q", bash.output, ours.output)
	}
	return ""
}

// isConcurrent reports whether commands of a script run at the same time.
func isConcurrent(script string) bool {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	inWord := strings.Contains(script, "&") && (strings.Contains(script, "eval") || strings.Contains(script, "-c"))
	return inWord || err == nil && contains(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.ProcSubst:
			return true
		case *syntax.BinaryCmd:
			return n.Op == syntax.Pipe || n.Op == syntax.PipeAll
		case *syntax.Stmt:
			return n.Background
		}
		return false
	})
}

// TestSameAsBash runs scripts in the interpreter and in bash, with stand-ins for all programs.
func TestSameAsBash(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the scripts really run: not with -short")
	}
	bash, ours := newSides(t)
	counts := map[string]int{}
	compare(t, bash, ours, realScripts(t), counts, t.Errorf)
	compare(t, bash, ours, generated(t, 1, 0, 5000), counts, t.Errorf)
	t.Log(counts)
}

// realScripts returns the scripts of the guard's corpus.
func realScripts(t *testing.T) (scripts []string) {
	t.Helper()
	for _, name := range []string{"wanted", "attacks", "attacks-found"} {
		content, err := os.ReadFile("../guard/testdata/" + name + ".jsonl")
		require.NoError(t, err)
		for line := range strings.Lines(string(content)) {
			var row struct{ Command string }
			if strings.HasPrefix(line, "{") {
				require.NoError(t, json.Unmarshal([]byte(line), &row))
				scripts = append(scripts, row.Command)
			}
		}
	}
	return scripts
}

// generated returns scripts of a seed.
func generated(t *testing.T, seed uint64, from, count int) (scripts []string) {
	t.Helper()
	corpus := realScripts(t)
	for i := range count {
		g := &generator{rand: rand.New(rand.NewPCG(seed, uint64(from+i))), corpus: corpus} //nolint:gosec // tests
		scripts = append(scripts, g.script())
	}
	return scripts
}

// compare runs scripts on both sides, counts the outcomes and reports the differences that classes does not list.
func compare(t *testing.T, bash, ours side, scripts []string, counts map[string]int, report func(format string, args ...any)) {
	t.Helper()
	scripts = slices.DeleteFunc(scripts, func(script string) bool {
		reason := refusedBefore(script)
		if reason != "" {
			counts[reason]++
		}
		return reason != ""
	})
	for batch := range slices.Chunk(scripts, batchSize) {
		var theirs []outcome
		var mine []outcome
		t.Run("", func(t *testing.T) {
			t.Run("bash", func(t *testing.T) { t.Parallel(); theirs = bash.run(t, batch) })
			t.Run("here", func(t *testing.T) { t.Parallel(); mine = ours.run(t, batch) })
		})
		for i, script := range batch {
			found := difference(script, theirs[i], mine[i])
			// The machine may have paused, an earlier script of the batch may still run, and concurrent commands have
			// more than one outcome.
			bash, ours := bash, ours
			crowded := strings.Contains(mine[i].errors, "so many commands")
			for again := 0; found != "" && again < 5 && (isConcurrent(script) || mine[i].stuck || theirs[i].stuck || crowded); again++ {
				bash.patience, ours.patience = 3*bash.patience, 3*ours.patience // of a machine that is busier than most
				theirs[i], mine[i] = bash.run(t, []string{script})[0], ours.run(t, []string{script})[0]
				found = difference(script, theirs[i], mine[i])
			}
			if found == "" {
				counts["same"]++
				continue
			}
			reason := excused(script, theirs[i], mine[i])
			if reason == "" {
				report("DIFF %s\n-- script:\n%s\n-- bash: %d %s\n-- here: %d %s", found, script, theirs[i].code, theirs[i].errors, mine[i].code, mine[i].errors)
				reason = "different"
			}
			counts[reason]++
		}
	}
}
