package claudesim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	rejectedByUser = "The user doesn't want to proceed with this tool use. The tool use was rejected. " +
		"STOP what you are doing and wait for the user to tell you how to proceed."
	interruptedTool = "[Request interrupted by user for tool use]"
)

// useTool runs one tool call and tells the model what came of it. It returns an outcome
// when the run ends with it.
func (s *session) useTool(ctx context.Context, call Block) *outcome {
	switch {
	case call.Name == structuredOutputTool && s.schema != nil:
		return s.structuredOutput(call)
	case !s.request().Offers(call.Name):
		text := fmt.Sprintf("<tool_use_error>Error: No such tool available: %s.</tool_use_error>", call.Name)
		s.say(toolResult(call, text, true), event{"tool_use_result": text})
	case !s.permissions.grants(call):
		s.deny(call)
	default:
		text, isError := s.execute(ctx, call)
		if ctx.Err() != nil {
			return s.interruptedTool(ctx, call, text)
		}
		s.say(toolResult(call, text, isError), event{"tool_use_result": text})
	}
	return nil
}

func toolResult(call Block, text string, isError bool) Message {
	return Message{Role: RoleUser, Blocks: []Block{{Type: BlockToolResult, ID: call.ID, Text: text, IsError: isError}}}
}

// deny refuses a call that no rule grants.
func (s *session) deny(call Block) {
	text := fmt.Sprintf("Permission to use %s has been denied because Claude Code is running in don't ask mode.", call.Name)
	s.denials = append(s.denials, map[string]any{"tool_name": call.Name, "tool_use_id": call.ID, "tool_input": call.Input})
	if s.release.version == VersionNew {
		s.out.emit("system", event{"subtype": "permission_denied", "tool_name": call.Name, "tool_use_id": call.ID, "message": text})
	}
	s.say(toolResult(call, text, true), event{"tool_use_result": "Error: " + text})
}

// interruptedTool ends the run after a signal that came while a tool ran.
func (s *session) interruptedTool(ctx context.Context, call Block, text string) *outcome {
	if errors.Is(context.Cause(ctx), errTerminated) {
		code := exitTerminated
		if s.release.stopsToolsOnTerm { // printed, but not kept
			s.emitUser(toolResult(call, text, true), event{})
		}
		s.fault.OmitResult = true
		return &outcome{isError: true, exit: &code}
	}
	s.say(toolResult(call, rejectedByUser, true), event{"tool_use_result": "User rejected tool use"})
	s.say(userText(interruptedTool), event{})
	return &outcome{
		subtype: subtypeExecution, isError: true, reason: "aborted_tools", stopReason: stopToolUse,
		errors: []string{"interrupted"}, exit: &s.release.interruptExit,
	}
}

// execute runs a granted call. The text is what the model reads.
func (s *session) execute(ctx context.Context, call Block) (text string, isError bool) {
	switch call.Name {
	case "Bash":
		return s.bash(ctx, call)
	case "Read":
		return s.readFile(call)
	case "Write":
		return s.writeFile(call)
	default:
		return fmt.Sprintf("The stand-in does not know the tool %s.", call.Name), true
	}
}

// bashInput is what the Bash tool takes.
type bashInput struct {
	Command     string `json:"command"`
	Description string `json:"description"`
	Background  bool   `json:"run_in_background"`
}

// bash runs a command in a session of its own, as the CLI does, so that the CLI's death
// leaves it running. A signal to the stand-in kills it.
func (s *session) bash(ctx context.Context, call Block) (text string, isError bool) {
	var input bashInput
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return err.Error(), true
	}
	if input.Background {
		return s.startBackground(call, input)
	}
	command, output := s.shell(input.Command)
	if err := command.Start(); err != nil {
		return err.Error(), true
	}
	finished := make(chan error, 1)
	go func() { finished <- command.Wait() }()
	select {
	case err := <-finished:
		return describeExit(output.String(), err)
	case <-ctx.Done():
	}
	if s.killsTools(ctx) {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		err := <-finished // the output is complete only then
		return describeExit(output.String(), err)
	}
	return "", true
}

// killsTools reports whether the signal that ended ctx also ends the tools.
func (s *session) killsTools(ctx context.Context) bool {
	return !errors.Is(context.Cause(ctx), errTerminated) || s.release.stopsToolsOnTerm
}

// shell prepares a command with the environment that the CLI gives its children.
func (s *session) shell(line string) (*exec.Cmd, *bytes.Buffer) {
	shell := "/bin/sh"
	if path, err := exec.LookPath("bash"); err == nil {
		shell = path
	}
	var output bytes.Buffer
	// A signal to the stand-in kills the whole group, or leaves it running: the caller decides.
	command := exec.CommandContext(context.Background(), shell, "-c", line)
	command.Dir, command.Stdout, command.Stderr = s.dir, &output, &output
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	command.Env = []string{"CLAUDECODE=1", "CLAUDE_CODE_SESSION_ID=" + s.id}
	for name, value := range s.env {
		if name != "CLAUDE_CODE_SESSION_ID" && name != "CLAUDECODE" {
			command.Env = append(command.Env, name+"="+value)
		}
	}
	return command, &output
}

func describeExit(output string, err error) (text string, isError bool) {
	output = strings.TrimRight(output, "\n")
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code := exit.ExitCode()
		if code < 0 { // killed: as a shell reports it
			code = 128 + int(syscall.SIGKILL)
		}
		return strings.TrimRight(fmt.Sprintf("Exit code %d\n%s", code, output), "\n"), true
	}
	if output == "" {
		output = "(Bash completed with no output)"
	}
	return output, false
}

// readFile is the Read tool: numbered lines.
func (s *session) readFile(call Block) (text string, isError bool) {
	var input struct {
		Path string `json:"file_path"`
	}
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return err.Error(), true
	}
	data, err := os.ReadFile(input.Path)
	if err != nil {
		return fmt.Sprintf("File does not exist. Note: your current working directory is %s.", s.dir), true
	}
	var b strings.Builder
	for i, line := range strings.Split(string(data), "\n") {
		fmt.Fprintf(&b, "%d\t%s\n", i+1, line)
	}
	return strings.TrimSuffix(b.String(), "\n"), false
}

// writeFile is the Write tool. It makes the directories that it needs.
func (s *session) writeFile(call Block) (text string, isError bool) {
	var input struct {
		Path    string `json:"file_path"`
		Content string `json:"content"`
	}
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return err.Error(), true
	}
	if err := os.MkdirAll(filepath.Dir(input.Path), 0o700); err != nil {
		return err.Error(), true
	}
	if err := os.WriteFile(input.Path, []byte(input.Content), 0o600); err != nil {
		return err.Error(), true
	}
	return "File created successfully at: " + input.Path, false
}
