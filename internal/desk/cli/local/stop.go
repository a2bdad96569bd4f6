package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
)

const (
	// maxStopped limits the chains that `stop` lists.
	maxStopped = 20
	// stopLook is the time between two looks whether `up` has ended.
	stopLook = 200 * time.Millisecond
)

func (a *app) stopCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "stop",
		Short: "End the `claudeops up` of this state directory, and its agents",
		Long: "Stop ends the `claudeops up` on this state directory as Ctrl-C does, waits for that, and says what goes " +
			"on at\nthe next one. Agents get the time of CLAUDEOPS_DRAIN_TIMEOUT to finish.",
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.stop(cmd.Context()) },
	}
}

// stopped is the result of `stop`.
type stopped struct {
	// Chains ran when `up` was stopped, at most maxStopped. They go on at the next one.
	Chains []operations.Row `json:"chains"`
}

func (a *app) stop(ctx context.Context) error {
	cfg, err := config.Load(a.Environ)
	if err != nil {
		return err
	}
	server, err := supervisor.FindLocal(cfg.State.Dir)
	if err != nil {
		return err
	}
	if err := server.Process.CheckSignal(); err != nil {
		return err
	}
	running, problem := a.Operations.Chains.List(ctx, operations.ChainFilter{Running: true, Limit: maxStopped})
	if err := a.Operations.Close(); err != nil {
		return err
	}
	process, err := os.FindProcess(server.Process.PID)
	if err == nil {
		err = process.Signal(syscall.SIGTERM)
	}
	if err != nil {
		return fmt.Errorf("stop the process %d of `claudeops up`: %w", server.Process.PID, err)
	}
	a.Say("Stopping. Agents have up to %s to finish …", cfg.Worker.DrainTimeout)
	if err := awaitStop(ctx, cfg.State.Dir); err != nil {
		return err
	}
	if problem != nil {
		a.Say("It is unknown which chains go on at the next `claudeops up`: %s", console.PrintableError(problem))
	}
	return a.Print(stopped{running.Chains}, func(w io.Writer) { writeStopped(w, running.Chains) })
}

// awaitStop waits until no `claudeops up` serves on a state directory.
func awaitStop(ctx context.Context, stateDir string) error {
	for {
		_, err := supervisor.FindLocal(stateDir)
		if errors.Is(err, supervisor.ErrNoLocal) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it goes on stopping: %w", ctx.Err())
		case <-time.After(stopLook):
		}
	}
}

func writeStopped(w io.Writer, chains []operations.Row) {
	if len(chains) == 0 {
		_, _ = fmt.Fprintln(w, "Stopped. No chain ran. Schedules look again after the next `claudeops up`.")
		return
	}
	_, _ = fmt.Fprintln(w, "Stopped. These chains and the schedules go on at the next `claudeops up`:")
	rows := make([][]string, len(chains))
	for i := range chains {
		rows[i] = []string{"  " + console.PrintableID(chains[i].ID), chains[i].State()}
	}
	console.Table(w, rows)
}
