//go:build linux

package shell_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/door"
	"github.com/claudeops/claudeops/internal/cell/guard"
)

// hang bounds the time of a script that must end.
const hang = 2 * time.Minute

// person runs scripts at Tier 3 with the programs of this machine.
type person struct {
	post *cell.Post
	dir  string
}

func newPerson(t testing.TB) *person {
	t.Helper()
	dir := t.TempDir()
	policy, err := guard.ParsePolicy(deploy.Policy)
	require.NoError(t, err)
	place := guard.Place{Work: []string{dir}, Home: dir, Temp: dir, Path: []string{"/usr/bin", "/bin"}}
	post, err := cell.OpenPost(t.TempDir(), guard.New(policy, guard.Host{}), cell.PostSession{Tier: 3, Place: place}, unlimited{}, func(cell.Entry) {})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, post.Close()) })
	return &person{post: post, dir: dir}
}

// command returns the shell process of a script.
func (p *person) command(t testing.TB, script string) *exec.Cmd {
	t.Helper()
	require.Empty(t, p.post.Try(script), script)
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, self, "eval "+quote(script))
	command.Dir = p.dir
	command.Env = []string{
		"PATH=/usr/bin:/bin", "HOME=" + p.dir, "TMPDIR=" + p.dir,
		door.SocketVariable + "=" + p.post.Environment("", "")[door.SocketVariable],
	}
	return command
}

// TestBehaviour runs scripts whose output and exit code people know from bash.
func TestBehaviour(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script, output string
		code           int
	}{
		"here-document":             {"x=1; cat <<EOF\na $x $(echo b)\n\tc\nEOF\n", "a 1 b\n\tc\n", 0},
		"quoted here-document":      {"x=1; cat <<'EOF'\na $x $(echo b)\nEOF\n", "a $x $(echo b)\n", 0},
		"indented here-document":    {"cat <<-EOF\n\ta\n\t\tb\n\tEOF\n", "a\nb\n", 0},
		"set -e":                    {"set -e; echo a; false; echo b", "a\n", 1},
		"set -e in a condition":     {"set -e; if false; then echo a; fi; false || echo b; echo c", "b\nc\n", 0},
		"set -e and a list":         {"set -e; for x in a b; do [ $x = b ] && echo $x; done; if true; then false && echo no; fi; echo c; { false && echo no; } && echo no; f() { false && echo no; }; f || echo d; while read -r x; do [ $x = z ] && echo z; done <<< y; echo e", "b\nc\nd\ne\n", 0},
		"set -e and exit":           {"set -e; if true; then exit 0; fi; echo no", "", 0},
		"set -e and a failure":      {"set -e; for x in a; do { false; echo no; }; done; echo no", "", 1},
		"a counting loop":           {"for ((i = 0; i < 3; i++)); do [ $i = 2 ] && echo $i; done; for ((i = 0; i < 2; i++)); do false; done; echo $?", "2\n1\n", 0},
		"set -e and its loops":      {"set -e; for ((i = 0; i < 3; i++)); do [ $i = 1 ] && echo $i; done; for ((i = 0; i < 2; i++)); do false; done; echo no", "1\n", 1},
		"cd --":                     {"mkdir -p d; cd -- d; basename $PWD; cd '' && echo here", "d\nhere\n", 0},
		"continue in a block":       {"for x in 1 2; do if [ $x = 1 ]; then if true; then continue; fi; echo no; fi; { break; echo no; }; done; for y in 1 2; do true && continue && echo no; done; echo end", "end\n", 0},
		"code of a loop":            {"echo a | while read -r x; do false; done; echo $?", "1\n", 0},
		"a file read and written":   {"printf '%s\\n' b a > f; echo \"$(sort f)\" > f; cat f", "a\nb\n", 0},
		"here-document and words":   {"head -c $(cat; echo 2) <<< abc; echo", "ab\n", 0},
		"numbers in conditions":     {"x=; [ \"$x\" -eq 0 ] && echo no; [ -x = -x ] && echo yes", "yes\n", 0},
		"operators as words":        {`for w in -f ! -n "(" "" = -eq a; do [ "$w" ]; printf $?; [ ! "$w" ]; printf $?; [ "$w" = "$w" ]; printf $?; [ "$w" == x ]; printf $?; [ "$w" != x ]; printf $?; [ ! "$w" = x ]; printf $?; printf " "; done`, "010100 010100 010100 010100 100100 010100 010100 010100 ", 0},
		"quoted backslashes":        {"x=a\\\\b\\ c; echo \"$x\" > \\-f; cat ./-f", "a\\b c\n", 0},
		"jobs with set -u":          {"set -euo pipefail; sleep 0.1 & wait; echo a & wait", "a\n", 0},
		"jobs in a pipe":            {"{ (sleep 0.2; echo a) & } | cat; x=$( (sleep 0.2; echo b) & ); echo $x", "a\nb\n", 0},
		"substitution in eval":      {"eval 'cat <(echo a)'; while read -r x; do echo $x; done < <(echo b)", "a\nb\n", 0},
		"pipefail":                  {"set -o pipefail; false | cat", "", 1},
		"files and redirections":    {"touch a b; echo * > c; cat c", "a b\n", 0},
		"no pipefail":               {"false | cat", "", 0},
		"break in a condition":      {"for i in 1 2; do if { if break; then echo a; fi; }; then echo b; elif echo c; then echo d; else echo e; fi; echo f; done; echo end", "end\n", 0},
		"break in no condition":     {"for i in 1 2; do if false; then break; elif echo a; then echo b; else echo c; fi; done", "a\nb\na\nb\n", 0},
		"continue in a condition":   {"for i in 1 2; do if continue; then echo a; fi; echo b; done; echo end", "end\n", 0},
		"the end of time's options": {"{ time -- echo a; time -p -- echo b; } 2>/dev/null", "a\nb\n", 0},
		"trap EXIT":                 {"trap 'echo bye' EXIT; echo a; exit 3", "a\nbye\n", 3},
		"trap ERR":                  {"trap 'echo wrong' ERR; false; echo b", "wrong\nb\n", 0},
		"trap of a signal":          {"trap 'echo got' TERM; kill -TERM $$; sleep 0.1; echo end", "got\nend\n", 0},
		"wait":                      {"(sleep 0.1; exit 7) & wait $!; echo $?", "7\n", 0},
		"kill a job":                {"sleep 600 & kill %1; wait %1; echo $?", "143\n", 0},
		"kill by number":            {"sleep 600 & kill $!; wait $!; echo $?", "143\n", 0},
		"look for a job":            {"sleep 600 & kill -0 $! && echo lives; kill %1; wait; kill -0 $! 2>/dev/null || echo ended", "lives\nended\n", 0},
		"end of the reader":         {"while true; do echo y; done | head -1", "y\n", 0},
		"time":                      {"time -p true", "", 0},
		"exec":                      {"exec echo a; echo b", "a\n", 0},
		"umask":                     {"umask 077; echo > f; stat -c %a f; umask", "600\n0077\n", 0},
		"ulimit":                    {"ulimit -n 64; ulimit -n; sh -c 'ulimit -n'", "64\n64\n", 0},
		"cd":                        {"mkdir -p d; cd d; basename $PWD; cd -; basename $(pwd)", "d\n@\n@base\n", 0},
		"printf -v":                 {"printf -v x '%s-%s\\n' a b; echo \"$x.\"", "a-b\n.\n", 0},
		"quotes in a default":       {`echo "${x:-'b'}"`, "'b'\n", 0},
		"a missing file":            {`echo "a$(<none)"`, "a\n", 0},
		"time in eval":              {"eval 'time -p echo a'", "a\n", 0},
		"end of a pipe":             {"echo a | read x; echo \"[$x]\"; true | exit 3; echo $?; echo b | (cat; cd /); basename $PWD", "[]\n3\nb\n@base\n", 0},
		"program after reader":      {"{ sleep 0.2; touch made; } | true; ls made", "made\n", 0},
		"no terminal":               {"cat; head -1; echo end", "end\n", 0},
		"timeout":                   {"timeout 0.1 sleep 600; echo $?", "124\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPerson(t)
			command := p.command(t, c.script)
			var errors bytes.Buffer
			command.Stderr = &errors
			output, _ := command.Output() // it may fail
			wanted := strings.NewReplacer("@base", filepath.Base(p.dir), "@", p.dir).Replace(c.output)
			require.Equal(t, wanted, string(output), errors.String())
			require.Equal(t, c.code, command.ProcessState.ExitCode(), errors.String())
			requireInBash(t, c.script, c.output, c.code)
			if name == "time" {
				require.Regexp(t, `^real [\d.]+\nuser [\d.]+\nsys [\d.]+\n$`, errors.String())
			}
		})
	}
}

// requireInBash checks that a script has this output and exit code in bash, too.
func requireInBash(t *testing.T, script, output string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	dir := t.TempDir()
	command := exec.CommandContext(ctx, "bash", "-c", script)
	command.Dir, command.Env = dir, []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + dir}
	printed, _ := command.Output() // it may fail
	require.Equal(t, strings.NewReplacer("@base", filepath.Base(dir), "@", dir).Replace(output), string(printed))
	require.Equal(t, code, command.ProcessState.ExitCode())
}

// TestBackground starts a job that outlives its call.
func TestBackground(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	require.NoError(t, syscall.Mkfifo(p.dir+"/go", 0o600))
	require.NoError(t, syscall.Mkfifo(p.dir+"/done", 0o600))
	command := p.command(t, "(cat go; echo ended) > done 2>&1 & echo started")
	done, err := os.OpenFile(p.dir+"/done", os.O_RDWR, 0)
	require.NoError(t, err)
	output, err := os.Create(p.dir + "/output") // like the CLI, which does not wait for the job to close its output
	require.NoError(t, err)
	command.Stdout = output
	require.NoError(t, command.Run())
	printed, err := os.ReadFile(p.dir + "/output")
	require.NoError(t, err)
	require.Equal(t, "started\n", string(printed))
	require.NoError(t, os.WriteFile(p.dir+"/go", []byte("x\n"), 0o600)) // the job reads it after the end of the call
	read := make([]byte, len("x\nended\n"))
	_, err = io.ReadFull(done, read)
	require.NoError(t, err)
	require.Equal(t, "x\nended\n", string(read))
}

// TestEndedBySignals sends signals to the shell alone. It ends with the signal's exit code, and what it has started
// ends.
func TestEndedBySignals(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a program":            "echo started; sleep 600; echo not reached",
		"a loop":               "echo started; while true; do :; done; echo not reached",
		"a pipe":               "echo started; sleep 600 | cat; echo not reached",
		"a substitution":       "echo started; x=$(sleep 600; echo not reached); echo $x not reached",
		"a script in a script": "echo started; bash -c 'sleep 600; echo not reached'; echo not reached",
		"a condition":          "echo started; if sleep 600; then echo not reached; else echo not reached; fi",
		"a list":               "echo started; sleep 600 || echo not reached",
		"a function":           "f() { sleep 600; echo not reached; }; echo started; f",
		"a wait for a job":     "sleep 600 & echo started; wait; echo not reached",
		"an exit trap":         "trap 'rm -f f' EXIT; touch f; echo started; sleep 600; echo not reached",
	} {
		for _, sent := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			t.Run(name+" "+sent.String(), func(t *testing.T) {
				t.Parallel()
				p := newPerson(t)
				command := p.command(t, script)
				output, err := command.StdoutPipe()
				require.NoError(t, err)
				require.NoError(t, command.Start())
				reader := bufio.NewReader(output)
				line, err := reader.ReadString('\n')
				require.NoError(t, err)
				require.Equal(t, "started\n", line)
				require.NoError(t, command.Process.Signal(sent))
				rest, err := io.ReadAll(reader) // ends when no process has the pipe any more
				require.NoError(t, err)
				require.Empty(t, rest)
				_ = command.Wait() // it fails
				require.Equal(t, 128+int(sent), command.ProcessState.ExitCode())
				require.NoFileExists(t, p.dir+"/f")
			})
		}
	}
}

// TestInteractive starts programs that want a terminal. There is none, so they end.
func TestInteractive(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"the input":          "read -r x || echo none",
		"a program":          "stty size 2>/dev/null || echo none",
		"the terminal":       "stty size < /dev/tty 2>/dev/null || echo none",
		"a program's input":  "cat; sort; echo none",
		"an interactive one": "sh -c 'read -r x < /dev/tty' 2>/dev/null || echo none",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := newPerson(t).command(t, script)
			command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // as the CLI starts it
			output, err := command.Output()
			require.NoError(t, err)
			require.Equal(t, "none\n", string(output))
		})
	}
}

// TestEndsWithoutHarm runs scripts that would use everything up.
func TestEndsWithoutHarm(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"recursion": "f() { f; }; f",
	} {
		command := newPerson(t).command(t, script)
		output, err := command.CombinedOutput()
		require.NotEqual(t, -1, command.ProcessState.ExitCode(), "%s: %v %.300s", name, err, output)
	}
}

// TestLongPipes sends 1 GB through pipes, within the time limit of all scripts. It reports how long bash takes.
func TestLongPipes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("4 GB are copied: not with -short")
	}
	for _, script := range []string{"head -c 1G /dev/zero | wc -c", "head -c 1G /dev/zero | cat | cat | wc -c"} {
		began := time.Now()
		output, err := newPerson(t).command(t, script).Output()
		ours := time.Since(began)
		require.NoError(t, err)
		require.Equal(t, "1073741824\n", string(output))
		began = time.Now()
		_, err = exec.CommandContext(t.Context(), "bash", "-c", script).Output()
		require.NoError(t, err)
		t.Logf("%s: %s, in bash %s", script, ours.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	}
}
