package claudesim_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
)

// hookProgram is a PreToolUse hook. It stores its question. Its answer depends on a word in the question.
const hookProgram = `#!/bin/sh
question=$(cat)
printf '%s\n' "$question" >> "$HOME/questions"
say() { printf '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"%s"%s}}\n' "$1" "$2"; }
case $question in
*hook-denies*) say deny ',"permissionDecisionReason":"it is forbidden"' ;;
*hook-says-no*) say deny ;;
*hook-asks*) say ask ',"permissionDecisionReason":"somebody must decide"' ;;
*hook-exits-2*) echo output; echo "bad luck" >&2; exit 2 ;;
*hook-exits-1*) echo "worse luck" >&2; exit 1 ;;
*hook-dies*) kill -9 $$ ;;
*hook-babbles*) echo hello ;;
*hook-abstains*) echo '{}' ;;
*) say allow ;;
esac
`

// shellProgram is a program that the CLI runs in place of its shell. It stores the scripts of the Bash tool.
const shellProgram = `#!/bin/sh
case $1 in
*hook-program*) ;;
*) printf '%s arguments in %s: %s\0' $# "$(basename "$PWD")" "$1" >> "$HOME/scripts" ;;
esac
exec /bin/bash -c "$1"
`

// hookCases cover hooks that allow or deny tool calls, and a program in place of the shell.
func hookCases() []contractCase {
	return []contractCase{hooksDecide(), hooksAbstain(), hooksFail(), hooksWithoutShell(), hooksWithoutProgram()}
}

// hooked adds a hook to a launch, and a program in place of the shell. Without args the hook is a script for a shell.
func hooked(l launch, hook string, args ...string) launch {
	command := map[string]any{"type": "command", "command": hook, "timeout": 60}
	if args != nil {
		command["args"] = args
	}
	settings, err := json.Marshal(map[string]any{"hooks": map[string]any{"PreToolUse": []any{
		map[string]any{"matcher": "*", "hooks": []any{command}},
	}}})
	if err != nil {
		panic(err)
	}
	l.args = append(l.args, "--settings", string(settings))
	l.env = func(p place) map[string]string {
		return map[string]string{
			"CLAUDE_CODE_SHELL_PREFIX": p.home + "/shell-program", "SHELL": "/bin/bash", "TMPDIR": p.home + "/tmp",
			"PATH": p.home + ":" + os.Getenv("PATH"),
		}
	}
	l.before = func(t *testing.T, p place) {
		t.Helper()
		require.NoError(t, os.MkdirAll(p.home+"/tmp", 0o700))
		require.NoError(t, os.WriteFile(p.dir+"/hook-abstains.txt", []byte("text\n"), 0o600))
		for name, text := range map[string]string{"hook-program": hookProgram, "shell-program": shellProgram} {
			require.NoError(t, os.WriteFile(filepath.Join(p.home, name), []byte(text), 0o700))
		}
	}
	return l
}

// try returns a launch with the tools Bash, Read and Write.
func try(more ...string) launch {
	return launch{prompt: "try", args: append([]string{"--model", "haiku", "--tools", "Bash,Read,Write"}, more...)}
}

func hooksDecide() contractCase {
	l := try("--session-id", idA, "--disallowedTools", "Bash(echo bad:*)", "--json-schema", verdictSchema)
	write := func(path string) claudesim.Reply {
		return claudesim.Call("Write", map[string]any{"file_path": path, "content": "x"})
	}
	calls := []claudesim.Reply{
		claudesim.Bash("mkdir sub && cd sub && echo \"it's\" 'so' $((1 + 1)) | tee there"), claudesim.Bash("ls"),
		claudesim.Bash("cd ..\nls < sub/there"), claudesim.Bash("cd / && pwd"), claudesim.Bash("cat <<'EOF' > here\nit's\nEOF\n"),
		claudesim.Bash("false"),
		claudesim.Bash("echo bad"),
		claudesim.Bash("echo hook-denies"), claudesim.Bash("echo hook-says-no"), claudesim.Bash("echo hook-asks"),
		claudesim.Bash("echo hook-exits-2"), claudesim.Bash("echo hook-exits-1"),
		claudesim.Bash("echo hook-abstains"), claudesim.Bash("touch hook-abstains"), claudesim.Bash("touch hook-babbles"),
		claudesim.Call("Read", map[string]any{"file_path": "here"}), write("../other/out.txt"), write("hook-denies"), write("hook-exits-2"),
		{Text: "Both.", Calls: append(claudesim.Bash("echo 1").Calls, claudesim.Bash("echo 2 hook-denies").Calls...)},
		claudesim.Conclude(map[string]string{"status": "hook-denies"}), claudesim.Conclude(map[string]string{"status": "good"}),
	}
	return contractCase{
		name: "hooks decide", launches: []launch{hooked(l, "hook-program || exit 2")},
		scenario: claudesim.Play(claudesim.Always(calls...)),
		want: func(t *testing.T, _ claudesim.Version, o []observation) {
			require.Len(t, last(t, o).Denials, 12)
			require.JSONEq(t, `{"status":"good"}`, last(t, o).Structured)
			require.Len(t, o[0].Questions, len(calls)+1)
			require.Equal(t, "Bash {ls} dontAsk in dir/sub "+idA, o[0].Questions[1])
			require.Contains(t, o[0].Scripts, "1 arguments in sub: eval ls < /dev/null && pwd -P")
			require.Equal(t, "error=true PreToolUse:Bash hook error: it is forbidden", o[0].Tools[7])
		},
		forget: func(o []observation) { // the real CLI makes the two calls of a message in parallel
			slices.Sort(o[0].Tools)
			slices.Sort(o[0].Questions)
			slices.Sort(o[0].Events)
			slices.Sort(o[0].Init.Tools) // their order is irrelevant
			for i := range o[0].Asked {
				slices.Sort(o[0].Asked[i].Tools)
				slices.Sort(o[0].Asked[i].Results)
			}
		},
	}
}

// hooksAbstain covers a hook without a decision in a forked conversation. The rules decide then.
func hooksAbstain() contractCase {
	parent := launch{prompt: "begin", args: []string{"--model", "haiku", "--session-id", idA, "--tools", "Bash"}}
	fork := try("--resume", idA, "--fork-session", "--session-id", idB, "--allowedTools", "Bash(touch:*)", "Bash(sleep:*)")
	return contractCase{
		name: "hooks abstain in a fork", launches: []launch{parent, hooked(fork, "hook-program")},
		scenario: claudesim.Play(
			claudesim.On(claudesim.Match{Prompt: "begin"}, claudesim.Say("begun")),
			claudesim.Always(
				claudesim.Bash("touch hook-abstains"), claudesim.Bash("mkdir hook-abstains"),
				claudesim.Bash("touch hook-exits-1"), claudesim.Bash("mkdir hook-exits-1"), claudesim.Bash("touch hook-dies"),
				claudesim.Call("Read", map[string]any{"file_path": "hook-abstains.txt"}),
				claudesim.Call("Write", map[string]any{"file_path": "hook-abstains.new", "content": "x"}),
				claudesim.BashInBackground("touch hook-denies"), claudesim.BashInBackground("sleep 3; touch hook-abstains"),
				claudesim.Say("waiting"), claudesim.Say("it finished"),
			),
		),
		want: func(t *testing.T, _ claudesim.Version, o []observation) {
			require.Empty(t, last(t, o).Denials)
			require.Len(t, o[1].Results[0].Denials, 4)
			require.Equal(t, "it finished", o[1].Results[1].Text)
			require.Contains(t, o[1].Questions[0], idB)
			require.Len(t, o[1].Scripts, 4)
		},
	}
}

// hooksFail covers hooks that cannot run because the program in place of the shell is missing. The rules decide then.
func hooksFail() contractCase {
	l := hooked(try("--session-id", idA), "hook-program || exit 2")
	l.env = func(place) map[string]string {
		return map[string]string{"CLAUDE_CODE_SHELL_PREFIX": "./no such program", "SHELL": "/bin/bash"}
	}
	l.before = func(t *testing.T, p place) {
		t.Helper()
		require.NoError(t, os.WriteFile(p.dir+"/file", []byte("text\n"), 0o600))
	}
	return contractCase{
		name: "hooks that cannot run", launches: []launch{l},
		scenario: claudesim.Play(claudesim.Always(
			claudesim.Bash("echo hello"), claudesim.Bash("touch file"),
			claudesim.Call("Read", map[string]any{"file_path": "file"}), claudesim.Call("Read", map[string]any{"file_path": "/etc/hostname"}),
			claudesim.Say("done"),
		)),
		want: func(t *testing.T, _ claudesim.Version, o []observation) {
			require.Equal(t, "error=true Exit code 127\n/bin/bash: line 1: ./no such program: No such file or directory", o[0].Tools[0])
			require.Equal(t, "error=false 1\ttext\n2\t", o[0].Tools[2], "read without an answer of the hook")
			require.Len(t, last(t, o).Denials, 2)
		},
	}
}

// hooksWithoutShell covers a hook with arguments. The CLI starts it without a shell, and without the program in place
// of the shell.
func hooksWithoutShell() contractCase {
	return contractCase{
		name: "hooks without a shell", launches: []launch{hooked(try("--session-id", idA), "hook-program", "one || exit 2")},
		scenario: claudesim.Play(claudesim.Always(
			claudesim.Bash("echo hello"), claudesim.Bash("echo hook-denies"), claudesim.Bash("echo hook-exits-2"),
			claudesim.Bash("touch hook-exits-1"), claudesim.Bash("touch hook-dies"), claudesim.Say("done"),
		)),
		want: func(t *testing.T, _ claudesim.Version, o []observation) {
			require.Len(t, last(t, o).Denials, 4)
			require.Len(t, o[0].Questions, 5)
			require.Len(t, o[0].Scripts, 1, "the hook is no script")
		},
	}
}

// hooksWithoutProgram covers a hook with arguments whose program is missing. The rules decide then.
func hooksWithoutProgram() contractCase {
	return contractCase{
		name: "hooks without a program", launches: []launch{hooked(try("--session-id", idA), "/no/such/program", "one")},
		scenario: claudesim.Play(claudesim.Always(
			claudesim.Bash("echo hello"), claudesim.Bash("touch file"), claudesim.Say("done"),
		)),
		want: func(t *testing.T, _ claudesim.Version, o []observation) {
			require.Empty(t, o[0].Questions)
			require.Equal(t, "error=false hello", o[0].Tools[0])
			require.Len(t, last(t, o).Denials, 1)
		},
	}
}

// readQuestions returns the questions that hookProgram has stored, in a shortened form.
func readQuestions(t *testing.T, p place) []string {
	t.Helper()
	var questions []string
	for line := range strings.Lines(readIfThere(t, p.home+"/questions")) {
		var q struct {
			Session    string `json:"session_id"`
			Transcript string `json:"transcript_path"`
			Dir        string `json:"cwd"`
			Mode       string `json:"permission_mode"`
			Event      string `json:"hook_event_name"`
			Tool       string `json:"tool_name"`
			ToolUseID  string `json:"tool_use_id"`
			Input      struct {
				Command string `json:"command"`
				Status  string `json:"status"`
				Path    string `json:"file_path"`
			} `json:"tool_input"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &q), line)
		require.Equal(t, "PreToolUse", q.Event)
		require.NotEmpty(t, q.ToolUseID)
		require.Equal(t, p.transcript(q.Session), q.Transcript)
		root := filepath.Dir(p.dir) + "/"
		input := q.Input.Command + q.Input.Status + strings.TrimPrefix(q.Input.Path, root)
		questions = append(questions, strings.Join([]string{
			q.Tool, "{" + input + "}", q.Mode, "in", strings.TrimPrefix(q.Dir, root), q.Session,
		}, " "))
	}
	return questions
}

// afterPwd matches the name of the file to which a script writes its directory.
var afterPwd = regexp.MustCompile(`>\| \S+-cwd$`)

// readScripts returns the scripts that shellProgram has stored, without the part before the agent's command.
func readScripts(t *testing.T, p place) []string {
	t.Helper()
	var scripts []string
	for script := range strings.SplitSeq(readIfThere(t, p.home+"/scripts"), "\x00") {
		head, rest, found := strings.Cut(script, ": ")
		if !found {
			continue
		}
		_, command, found := strings.Cut(rest, " && eval ")
		require.True(t, found, script)
		scripts = append(scripts, head+": eval "+strings.TrimSpace(afterPwd.ReplaceAllString(command, "")))
	}
	return scripts
}

func readIfThere(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(t, err)
	return string(text)
}
