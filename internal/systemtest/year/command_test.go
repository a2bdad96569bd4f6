package year

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/cli/daily"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/plant/program"
)

// command runs a command of claudeops on a host whose clock is ahead, and returns what it prints.
func (i *installation) command(ctx context.Context, ahead time.Duration, args ...string) (code program.ExitCode, stdout []byte, stderr string) {
	var printed, complained bytes.Buffer
	c := &console.Console{
		Process: program.Process{
			Args: args, Environ: i.environ(), Stdin: strings.NewReader(""), Stdout: &printed, Stderr: &complained,
		}.WithSettings(),
		Clock: func() time.Time { return time.Now().Add(ahead).In(i.zone) }, Patience: operations.Patience,
	}
	root := c.Root()
	root.AddCommand(daily.Commands(c)...)
	begin, waits := realTime(), time.Now()
	code = c.Run(ctx, root, func(*cobra.Command) error {
		c.Operations = console.Beside(operations.New(operations.Options{
			Environ: c.Environ, Logger: c.QuietLogger(), Clock: c.Clock, Patience: c.Patience, Masked: func() {}, Dial: i.dial,
		}))
		return nil
	})
	if time.Since(waits) == 0 {
		i.took("claudeops "+args[0], realTime()-begin)
	}
	i.agents.count(i.agents.ran, "commands")
	return code, i.mangle("claudeops "+args[0], printed.Bytes()), complained.String()
}

// print runs a command that only shows something, and decodes what it prints as JSON.
func (i *installation) print(ctx context.Context, into any, args ...string) {
	code, stdout, stderr := i.command(ctx, 0, append(args, "-o", "json")...)
	if code != program.ExitOK {
		i.problem("claudeops %s: %d %s", strings.Join(args, " "), code, stderr)
		return
	}
	i.checkSize("claudeops "+args[0], stdout)
	if err := json.Unmarshal(stdout, into); err != nil {
		i.problem("claudeops %s: %v", strings.Join(args, " "), err)
	}
}
