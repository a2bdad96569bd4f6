package claudesim

import (
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

// useTool executes one tool call and adds the result to the conversation. It returns an outcome if the call ends the
// run.
func (s *session) useTool(ctx context.Context, call Block) *outcome {
	if !s.request().Offers(call.Name) {
		text := fmt.Sprintf("<tool_use_error>Error: No such tool available: %s.</tool_use_error>", call.Name)
		s.say(toolResult(call, text, true), event{"tool_use_result": text})
		return nil
	}
	answer := s.askHooks(ctx, call)
	switch {
	case ctx.Err() != nil:
		return s.interruptedTool(ctx, call, "")
	case answer.verdict == refused, answer.verdict == asked:
		s.refuseFor(call, answer)
	case answer.verdict == granted && s.permissions.denies(call):
		s.reject(call, fmt.Sprintf("Permission to use %s has been denied.", call.Name))
	case call.Name == structuredOutputTool:
		return s.structuredOutput(call)
	case answer.verdict != granted && !s.permissions.grants(call):
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

// deny denies a call that no rule grants.
func (s *session) deny(call Block) {
	text := fmt.Sprintf("Permission to use %s has been denied because Claude Code is running in don't ask mode.",
		call.Name)
	s.announceDenial(call, text)
	s.reject(call, text)
}

// announceDenial prints an event about a denied call.
func (s *session) announceDenial(call Block, text string) {
	s.out.emit("system", event{
		"subtype": "permission_denied", "tool_name": call.Name, "tool_use_id": call.ID,
		"message": text,
	})
}

// reject sends the reason of a denial to the model. It also adds the call to the denials in the next result.
func (s *session) reject(call Block, text string) {
	s.denials = append(s.denials, map[string]any{
		"tool_name": call.Name, "tool_use_id": call.ID,
		"tool_input": call.Input,
	})
	s.say(toolResult(call, text, true), event{"tool_use_result": "Error: " + text})
}

// interruptedTool reports a tool call that a signal interrupted, and returns the outcome that ends the run.
func (s *session) interruptedTool(ctx context.Context, call Block, text string) *outcome {
	if errors.Is(context.Cause(ctx), errTerminated) {
		code := exitTerminated
		s.emitUser(toolResult(call, text, true), event{}) // printed, but not written to the transcript
		s.fault.OmitResult = true
		return &outcome{isError: true, exit: &code}
	}
	s.say(toolResult(call, rejectedByUser, true), event{"tool_use_result": "User rejected tool use"})
	s.say(userText(interruptedTool), event{})
	return &outcome{
		subtype: subtypeExecution, isError: true, reason: "aborted_tools", stopReason: stopToolUse,
		errors: []string{"interrupted"}, exit: new(exitOK),
	}
}

// execute executes an allowed call. It returns the text that the model reads.
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

// bashInput is the input of the Bash tool.
type bashInput struct {
	Command     string `json:"command"`
	Description string `json:"description"`
	Background  bool   `json:"run_in_background"`
}

// bash runs a command in a process session of its own, as the CLI does. So the command survives the CLI's death. When
// the stand-in receives a signal, bash kills the command.
func (s *session) bash(ctx context.Context, call Block) (text string, isError bool) {
	var input bashInput
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return err.Error(), true
	}
	if input.Background {
		return s.startBackground(call, input)
	}
	command := s.shell(input.Command)
	if err := command.Start(); err != nil {
		return err.Error(), true
	}
	finished := make(chan error, 1)
	go func() { finished <- command.Wait() }()
	select {
	case err := <-finished:
		text, isError := describeExit(command.output.String(), err)
		return text + s.changeDir(command), isError
	case <-ctx.Done():
	}
	_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
	err := <-finished // the output is complete only now
	return describeExit(command.output.String(), err)
}

func describeExit(output string, err error) (text string, isError bool) {
	output = strings.TrimRight(output, "\n")
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code := exit.ExitCode()
		if code < 0 { // killed: use the exit code that a shell reports
			code = 128 + int(syscall.SIGKILL)
		}
		return strings.TrimRight(fmt.Sprintf("Exit code %d\n%s", code, output), "\n"), true
	}
	if output == "" {
		output = "(Bash completed with no output)"
	}
	return output, false
}

// readFile executes the Read tool. It returns numbered lines.
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

// writeFile executes the Write tool. It creates missing directories.
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
