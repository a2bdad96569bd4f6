package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"mvdan.cc/sh/v3/interp"

	"github.com/claudeops/claudeops/internal/cell/door"
	"github.com/claudeops/claudeops/internal/cell/process"
)

// run starts an allowed program, waits for it, and returns its exit code.
func (s *session) run(answer door.Answer, p given, job string) int {
	path, words, environ := s.program(answer, p)
	if answer.EmptyInput {
		p.in = nil
	}
	command := exec.Cmd{Path: path, Args: words, Env: environ, Dir: p.dir, Stdin: p.in, Stdout: p.out, Stderr: p.err}
	s.started.Add(1)
	defer s.started.Done()
	if err := s.limited(answer, command.Start); err != nil {
		reason := errors.Unwrap(err)
		if reason == nil {
			reason = err
		}
		_, _ = fmt.Fprintf(p.err, "%s: %v\n", words[0], reason)
		return exitDenied
	}
	s.traps.runs(command.Process, true)
	s.jobs.runs(job, command.Process, true)
	err := command.Wait()
	s.traps.runs(command.Process, false)
	s.jobs.runs(job, command.Process, false)
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &ended): // its output could not be copied
		return 1
	}
	if status, is := ended.Sys().(syscall.WaitStatus); is && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return ended.ExitCode()
}

// limited calls start, and limits what the started program may execute.
func (s *session) limited(answer door.Answer, start func() error) error {
	if answer.Executable == nil {
		return start()
	}
	files := answer.Executable
	if len(answer.Inner) > 0 {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		files = append(files, self)
	}
	return process.LimitExecution(files, answer.Offline, start)
}

// filePermissions are those of a new file, before the umask.
const filePermissions = 0o666

// open opens a file for a redirection.
func (s *session) open(ctx context.Context, path string, flags int, _ os.FileMode) (io.ReadWriteCloser, error) {
	shell := interp.HandlerCtx(ctx)
	if path == "" {
		return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
	}
	absolute := path
	if !filepath.IsAbs(path) {
		absolute = shell.Dir + "/" + path
	}
	write := flags&(os.O_WRONLY|os.O_RDWR) != 0
	answer, err := s.door.Ask(door.Question{Ticket: s.ticket, Open: &door.Open{Path: absolute, Write: write}})
	switch {
	case err != nil:
		return nil, &os.PathError{Op: denial, Path: path, Err: err}
	case !answer.Allowed:
		return nil, &os.PathError{Op: denial, Path: path, Err: errors.New(answer.Reason)}
	case answer.Path == "":
		return stream(shell, path)
	}
	return openPlain(answer.Path, flags, filePermissions)
}

// stream returns one of the shell's own streams.
func stream(shell interp.HandlerContext, path string) (io.ReadWriteCloser, error) {
	var of any = shell.Stdin
	switch filepath.Base(path) {
	case "stdout", "1":
		of = shell.Stdout
	case "stderr", "2":
		of = shell.Stderr
	}
	if file, is := of.(*os.File); is {
		copied, err := syscall.Dup(int(file.Fd()))
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		syscall.CloseOnExec(copied)
		return os.NewFile(uintptr(copied), path), nil
	}
	if writer, is := of.(io.Writer); is {
		return unclosed{writer}, nil
	}
	return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrClosed}
}

// unclosed is a stream that is written to and not closed.
type unclosed struct{ io.Writer }

// Read implements io.Reader.
func (unclosed) Read([]byte) (int, error) { return 0, io.EOF }

// Close implements io.Closer.
func (unclosed) Close() error { return nil }
