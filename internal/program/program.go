// Package program holds what starter and worker share: what they take from the operating system,
// how signals end them, and their exit codes.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/redact"
)

// Process holds what a program takes from the operating system.
type Process struct {
	Args           []string // without the name of the program
	Environ        []string // as "NAME=value"
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Main calls execute and returns its exit code. SIGINT and SIGTERM end the context that execute gets; a second
// signal ends the process at once.
func Main(execute func(context.Context, Process) ExitCode, p Process) ExitCode {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return execute(ctx, p)
}

// Complain prints err to stderr behind the name of the program, without secrets.
func (p Process) Complain(name string, err error) {
	_, _ = fmt.Fprintln(p.Stderr, name+":", redact.New(p.Environ).Text(err.Error()))
}

// ExitCode is what a process ends with. Scripts rely on the codes; the help of each program lists its own.
type ExitCode int

// The exit codes of both programs.
const (
	ExitOK      ExitCode = 0 // done
	ExitFailure ExitCode = 1 // something did not work
	ExitUsage   ExitCode = 2 // the command line, the input or the configuration is wrong; nothing was done
)

// exitError is an error with an exit code of its own.
type exitError struct {
	code ExitCode
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// WithCode returns err with the exit code that the program is to end with.
func WithCode(code ExitCode, err error) error { return &exitError{code, err} }

// Misuse marks err as the caller's mistake: the program ends with ExitUsage. It returns nil for nil.
func Misuse(err error) error {
	if err == nil {
		return nil
	}
	return WithCode(ExitUsage, err)
}

// CodeOf returns the exit code for what a program's work returned.
func CodeOf(err error) ExitCode {
	var own *exitError
	var invalid *config.Error
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &own):
		return own.code
	case errors.As(err, &invalid):
		return ExitUsage
	default:
		return ExitFailure
	}
}
