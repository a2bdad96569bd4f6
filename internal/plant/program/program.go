// Package program holds the code that the programs claudeops and worker share: inputs and outputs, signals, and exit
// codes.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/redact"
)

// Process holds the arguments, the environment and the standard streams of a program.
type Process struct {
	Args           []string // without the name of the program
	Environ        []string // as "NAME=value"
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// WithSettings adds the variables of the file of settings to the environment, after those that are there.
func (p Process) WithSettings() Process {
	p.Environ = config.Environ(p.Environ)
	return p
}

// Main calls execute and returns the exit code of execute. SIGINT or SIGTERM cancels the context of execute. A second
// signal ends the process at once.
// Libraries that read the environment themselves find the variables of the file of settings there, too.
func Main(execute func(context.Context, Process) ExitCode, p Process) ExitCode {
	given := len(p.Environ)
	p = p.WithSettings()
	for _, entry := range p.Environ[given:] {
		name, value, _ := strings.Cut(entry, "=")
		_ = os.Setenv(name, value) //nolint:forbidigo // a part of main; fails for no name that a file can have
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return execute(ctx, p)
}

// Complain prints the name of the program and err to stderr, with secrets masked.
func (p Process) Complain(name string, err error) {
	_, _ = fmt.Fprintln(p.Stderr, name+":", redact.New(p.Environ).Text(err.Error()))
}

// ExitCode is the exit code of a process. Scripts rely on the exit codes. The help of each program lists its exit
// codes.
type ExitCode int

// The exit codes of both programs.
const (
	ExitOK      ExitCode = 0 // done
	ExitFailure ExitCode = 1 // something did not work
	ExitUsage   ExitCode = 2 // the command line, the input or the configuration is wrong; nothing was done
)

// exitError is an error with its own exit code.
type exitError struct {
	code ExitCode
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// WithCode wraps err, so that CodeOf returns code for the result.
func WithCode(code ExitCode, err error) error { return &exitError{code, err} }

// Misuse marks err as a mistake of the user, so that the program ends with ExitUsage. If err is nil, Misuse returns
// nil.
func Misuse(err error) error {
	if err == nil {
		return nil
	}
	return WithCode(ExitUsage, err)
}

// CodeOf returns the exit code for err: ExitOK if err is nil, the code given to WithCode if err comes from WithCode,
// ExitUsage for an invalid configuration, and ExitFailure for all other errors.
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
