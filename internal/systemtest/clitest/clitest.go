// Package clitest runs the commands of claudeops in tests, also on a terminal. It links no Temporal server.
package clitest

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/discover"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

const (
	// Timeout bounds the wait for what a test expects.
	Timeout = 2 * time.Minute
	// Look is the time between two looks at what a test waits for.
	Look = 20 * time.Millisecond
	// NobodysPatience is the patience for queries where no worker runs, so that a test does not wait for nothing.
	NobodysPatience = time.Second
	// settle is the time without changes after which a screen is written as a golden file.
	settle = time.Second
)

// Starter runs the program. A field that is not set has the value that most tests want.
type Starter struct {
	// Execute runs the command that the console's arguments name.
	Execute func(context.Context, *console.Console) program.ExitCode
	// Clock shows the time; the real one if it is nil.
	Clock console.Clock
	// Patience limits the wait for the answer to a query; Timeout if it is 0.
	Patience time.Duration
	// Machine returns the machine for `init` to look at.
	Machine func(environ []string) discover.Host
}

// Of returns a claudeops that has only these commands.
func Of(commands func(*console.Console) []*cobra.Command) Starter {
	return Starter{Execute: func(ctx context.Context, c *console.Console) program.ExitCode {
		root := c.Root()
		root.AddCommand(commands(c)...)
		return c.Run(ctx, root, nil)
	}}
}

func (s Starter) console(process program.Process) *console.Console {
	c := &console.Console{Process: process, Clock: s.Clock, Patience: s.Patience, Machine: s.Machine}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Patience == 0 {
		c.Patience = Timeout
	}
	return c
}

// AtNoon returns s with a clock that shows chaintest.Noon, for a place without a worker.
func (s Starter) AtNoon() Starter {
	s.Clock, s.Patience = chaintest.Clock, NobodysPatience
	return s
}

// Result holds the exit code and the output of one run of the program.
type Result struct {
	Code           program.ExitCode
	Stdout, Stderr string
}

// Run runs the program with args as its arguments and environ as its environment.
func (s Starter) Run(t *testing.T, environ []string, args ...string) Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := s.Execute(t.Context(), s.console(program.Process{
		Args: args, Environ: environ, Stdin: strings.NewReader("from standard input"), Stdout: &stdout, Stderr: &stderr,
	}.WithSettings()))
	return Result{code, stdout.String(), stderr.String()}
}

// Environment returns a valid environment without claude or Temporal, and with more.
func Environment(t *testing.T, more ...string) []string {
	t.Helper()
	home := t.TempDir()
	return append([]string{
		"PATH=" + home, "HOME=" + home, simtest.WorkersUser, "CLAUDEOPS_STATE_DIR=" + filepath.Join(home, "state"),
		"TEMPORAL_ADDRESS=127.0.0.1:1", "CLAUDEOPS_GATE_TIMEOUT=0s", "CLAUDEOPS_SANDBOX=off",
	}, more...)
}
