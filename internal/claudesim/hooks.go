package claudesim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// hook is a command that the CLI runs before a tool call to ask whether the call is allowed.
type hook struct {
	matcher string
	command string
	// args are the arguments of the command; nil if the command is a script for a shell.
	args    []string
	timeout time.Duration
}

// defaultHookTimeout is the CLI's time limit for a hook without a limit in its settings.
const defaultHookTimeout = time.Minute

// readHooks returns the PreToolUse hooks of --settings, which is JSON or the name of a file. If the settings cannot be
// read, readHooks returns no hooks, because the CLI then also runs without hooks.
func readHooks(settings string) []hook {
	text := []byte(settings)
	if !strings.HasPrefix(strings.TrimSpace(settings), "{") {
		text, _ = os.ReadFile(settings)
	}
	var parsed struct {
		Hooks struct {
			PreToolUse []struct {
				Matcher string `json:"matcher"`
				Hooks   []struct {
					Type    string   `json:"type"`
					Command string   `json:"command"`
					Args    []string `json:"args"`
					Timeout float64  `json:"timeout"` // seconds
				} `json:"hooks"`
			} `json:"PreToolUse"`
		} `json:"hooks"`
	}
	if json.Unmarshal(text, &parsed) != nil {
		return nil
	}
	var hooks []hook
	for _, group := range parsed.Hooks.PreToolUse {
		for _, h := range group.Hooks {
			timeout := defaultHookTimeout
			if h.Timeout > 0 {
				timeout = time.Duration(h.Timeout * float64(time.Second))
			}
			if h.Type == "command" {
				hooks = append(hooks, hook{matcher: group.Matcher, command: h.Command, args: h.Args, timeout: timeout})
			}
		}
	}
	return hooks
}

// matches reports whether the hook decides on calls of the tool.
func (h hook) matches(tool string) bool {
	if h.matcher == "" || h.matcher == "*" {
		return true
	}
	is, err := regexp.MatchString("^(?:"+h.matcher+")$", tool)
	return err == nil && is
}

// verdict is the answer of the hooks to a call.
type verdict int

const (
	// undecided means that the rules decide on the call. A failing hook counts as undecided.
	undecided verdict = iota
	// granted allows the call. Rules that deny the call take precedence.
	granted
	// asked requires that a person decides. In a run without a person the call is denied.
	asked
	// refused denies the call.
	refused
)

// hookAnswer is the verdict of a hook, with the reason that the model reads.
type hookAnswer struct {
	verdict verdict
	reason  string
}

// askHooks runs the hooks that match the call, and returns the strictest answer.
func (s *session) askHooks(ctx context.Context, call Block) hookAnswer {
	strictest := hookAnswer{verdict: undecided}
	for _, h := range s.hooks {
		if !h.matches(call.Name) {
			continue
		}
		if answer := s.askHook(ctx, h, call); answer.verdict > strictest.verdict {
			strictest = answer
		}
	}
	return strictest
}

// askHook runs a hook. It kills the hook if the stand-in receives a signal or the hook's time limit passes.
func (s *session) askHook(ctx context.Context, h hook, call Block) hookAnswer {
	input, rewritten := s.hookInput(call)
	question, err := json.Marshal(map[string]any{
		"session_id": s.id, "transcript_path": s.conversation.path, "cwd": s.shellDir,
		"permission_mode": s.permissions.mode, "hook_event_name": "PreToolUse", "tool_name": call.Name,
		"tool_input": input, "tool_use_id": call.ID,
	})
	if err != nil {
		return hookAnswer{verdict: undecided}
	}
	var stdout, stderr bytes.Buffer
	command := s.child("/bin/sh", "-c", s.prefixed(h.command))
	if h.args != nil {
		command = s.child(s.lookPath(h.command), h.args...)
	}
	command.Env = append(command.Env, "CLAUDE_PROJECT_DIR="+s.dir)
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(append(question, '\n')), &stdout, &stderr
	limit := h.timeout
	if s.scenario.HookTimeout > 0 {
		limit = s.scenario.HookTimeout.Std()
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := runUntil(limited, command); err != nil && command.ProcessState == nil {
		s.warnOfHook(exitMissing)
		return hookAnswer{verdict: undecided}
	}
	exit := command.ProcessState.ExitCode()
	s.warnOfHook(exit)
	answer := s.readAnswer(h, call, exit, stdout.Bytes(), stderr.String())
	if answer.verdict == refused && exit == 0 && !rewritten {
		answer.reason = denialPrefix(call) + answer.reason
	}
	return answer
}

// hookInput returns the input of a call in the form for hooks, with an absolute path. The second result reports whether
// hookInput has replaced a relative path.
func (s *session) hookInput(call Block) (input json.RawMessage, rewritten bool) {
	path := filePath(call)
	if path == "" || filepath.IsAbs(path) {
		return call.Input, false
	}
	fields := map[string]any{}
	_ = json.Unmarshal(call.Input, &fields) // filePath has decoded it already
	fields["file_path"] = filepath.Join(s.shellDir, path)
	input, err := json.Marshal(fields)
	return input, err == nil
}

// denialPrefix returns the beginning of the message that tells the model about a denial by a hook.
func denialPrefix(call Block) string { return fmt.Sprintf("PreToolUse:%s hook error: ", call.Name) }

// exitMissing is the exit code of a shell whose command does not exist.
const exitMissing = 127

// warnOfHook prints a warning, once per session, if a hook could not be run or was killed. Only some releases print
// this warning. A hook that runs and fails causes no warning.
func (s *session) warnOfHook(exit int) {
	if !s.release.warnsOfHooks || s.warned || exit >= 0 && exit <= 125 {
		return
	}
	s.warned = true
	s.out.emit("system", event{
		"subtype": "informational", "level": "warning", "tag": "hook_no_verdict",
		"content": "A hook gave no usable answer, so it didn't check this action.",
	})
}

// runUntil runs a command that has a process session of its own. When ctx ends, runUntil kills the whole process
// session.
func runUntil(ctx context.Context, command *exec.Cmd) error {
	if err := command.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) })
	defer stop()
	return command.Wait()
}

// readAnswer converts a hook's exit code and output to its answer.
func (s *session) readAnswer(h hook, call Block, exit int, stdout []byte, stderr string) hookAnswer {
	if exit == 2 {
		command := strings.Join(append([]string{h.command}, h.args...), " ")
		return hookAnswer{refused, fmt.Sprintf("%s[%s]: %s", denialPrefix(call), command, stderr)}
	}
	var output struct {
		Specific struct {
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	if exit != 0 || json.Unmarshal(stdout, &output) != nil {
		return hookAnswer{verdict: undecided}
	}
	reason := output.Specific.Reason
	switch output.Specific.Decision {
	case "allow":
		return hookAnswer{granted, reason}
	case "ask":
		return hookAnswer{asked, reason}
	case "deny":
		return hookAnswer{refused, orElse(reason, "Blocked by hook")}
	default:
		return hookAnswer{verdict: undecided}
	}
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// refuseFor denies a call with the reason of a hook's answer.
func (s *session) refuseFor(call Block, answer hookAnswer) {
	if answer.verdict == asked {
		s.announceDenial(call, answer.reason)
	}
	s.reject(call, answer.reason)
}
