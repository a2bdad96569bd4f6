package claudesim

import (
	"context"
	"fmt"
	"os"
	"syscall"
)

// backgroundTask is a command that the model started in the background.
type backgroundTask struct {
	id, toolUseID, description string
	command                    *shellCommand
	finished                   chan struct{}
}

// startBackground starts a command of the Bash tool in the background.
func (s *session) startBackground(call Block, input bashInput) (text string, isError bool) {
	command := s.shell(input.Command)
	if err := command.Start(); err != nil {
		return err.Error(), true
	}
	task := &backgroundTask{
		id: fmt.Sprintf("b%08d", command.Process.Pid), toolUseID: call.ID, description: input.Description,
		command: command, finished: make(chan struct{}),
	}
	go func() {
		defer close(task.finished)
		_ = command.Wait() // ProcessState holds the exit status
		_ = os.Remove(command.cwdFile)
	}()
	s.background = append(s.background, task)
	s.out.emit("system", event{
		"subtype": "task_started", "task_id": task.id, "tool_use_id": call.ID, "description": input.Description,
		"task_type": "local_bash",
	})
	return fmt.Sprintf("Command running in background with ID: %s.", task.id), false
}

// awaitBackground waits for the next background task and reports the task's end to the model. If there is no task, or
// if a signal arrives first, awaitBackground returns false.
func (s *session) awaitBackground(ctx context.Context) bool {
	if len(s.background) == 0 {
		return false
	}
	task := s.background[0]
	select {
	case <-task.finished:
	case <-ctx.Done():
		return false
	}
	s.background = s.background[1:]
	summary := fmt.Sprintf("Background command %q completed (exit code %d)", task.description,
		task.command.ProcessState.ExitCode())
	s.out.emit("system", event{
		"subtype": "task_updated", "task_id": task.id,
		"patch": map[string]string{"status": "completed"},
	})
	s.out.emit("system", event{
		"subtype": "task_notification", "task_id": task.id, "tool_use_id": task.toolUseID, "status": "completed",
		"summary": summary,
	})
	s.emitInit()
	s.say(userText("<task-notification>\n"+summary+"\n</task-notification>"), nil)
	return true
}

// stopBackground kills the background tasks that are still running.
func (s *session) stopBackground() {
	for _, task := range s.background {
		_ = syscall.Kill(-task.command.Process.Pid, syscall.SIGKILL)
		<-task.finished
	}
	s.background = nil
}
