package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/plant/program"
)

// replaysAtOnce limits the number of histories that are in memory at the same time. A history can have some megabytes.
const replaysAtOnce = 4

// maxProblem limits the length of a printed problem, in characters.
const maxProblem = 400

// replaying holds the flags of `replay`.
type replaying struct {
	query string
	limit int
}

// Replayed is the result of `replay`.
type Replayed struct {
	// Version is the version of this program.
	Version string `json:"version"`
	// Replayed counts the replayed histories, including the failed ones.
	Replayed int `json:"replayed"`
	// Gone counts the histories that Temporal deleted after the list was read.
	Gone int `json:"gone,omitempty"`
	// More reports that more histories than --limit exist.
	More   bool     `json:"more,omitempty"`
	Failed []Failed `json:"failed"`
}

// Failed is a run that this program cannot continue.
type Failed struct {
	ChainID string `json:"chain_id"`
	RunID   string `json:"run_id"`
	Problem string `json:"problem"`
}

func (a *app) replayCommand() *cobra.Command {
	var r replaying
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Check that this program can continue the chains that run",
		Long: "Replay reads the histories of the running chains and cycles from Temporal, and replays each with the " +
			"workflows of\nthis program. Use it before you start workers of another version. It changes nothing, and " +
			"starts no agent. The exit\ncode is 1 if this program cannot continue a chain. docs/releasing.md " +
			"describes what to do then.\n\n--query selects some of the running chains, in Temporal's list syntax. " +
			"With worker versions, a chain stays in the\nversion in which it began. Then you need to check only the " +
			"chains without a version:\n  claudeops replay --query \"TemporalWorkflowVersioningBehavior IS NULL\"\n\n" +
			"In JSON: version, replayed (their number), gone (the number of deleted histories), more (there are more " +
			"than --limit), and\nfailed, a list with chain_id, run_id and problem.",
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.replay(cmd.Context(), r) },
	}
	flags := cmd.Flags()
	flags.StringVar(&r.query, "query", "", "only chains that match this list filter of Temporal")
	flags.IntVar(&r.limit, "limit", 1000, "maximum number of chains; the latest chains are replayed")
	return cmd
}

func (a *app) replay(ctx context.Context, r replaying) error {
	if err := console.CheckLimit(r.limit, "chain"); err != nil {
		return err
	}
	c, _, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	rows, err := operations.List(ctx, c, operations.RunningQuery(r.query), r.limit+1)
	if err != nil {
		return err
	}
	result, err := a.replayAll(ctx, c, rows[:min(r.limit, len(rows))])
	if err != nil {
		return err
	}
	result.More = len(rows) > r.limit
	if err := a.Print(result, func(w io.Writer) { writeReplayed(w, result) }); err != nil {
		return err
	}
	if failed := len(result.Failed); failed > 0 {
		return fmt.Errorf("%d of %d histories cannot be replayed", failed, result.Replayed)
	}
	return nil
}

// replayAll replays the histories of all rows. It returns an error if a history cannot be read.
func (a *app) replayAll(ctx context.Context, c operations.Connection, rows []operations.Row) (Replayed, error) {
	result := Replayed{Version: program.Version(), Failed: []Failed{}} // an empty list is [] in JSON
	var mu sync.Mutex
	replays, ctx := errgroup.WithContext(ctx)
	replays.SetLimit(replaysAtOnce)
	for _, row := range rows {
		replays.Go(func() error {
			err := operations.Replay(ctx, c, row.ID, row.RunID)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, operations.ErrNoHistory) {
				result.Gone++
				return nil
			}
			if _, unread := errors.AsType[*operations.ReadError](err); unread {
				return fmt.Errorf("chain %s: %w", console.PrintableID(row.ID), err)
			}
			result.Replayed++
			if err != nil {
				problem := console.Printable(a.Operations.Masked(err.Error()), maxProblem)
				result.Failed = append(result.Failed, Failed{row.ID, row.RunID, problem})
			}
			return nil
		})
	}
	err := replays.Wait()
	slices.SortFunc(result.Failed, func(a, b Failed) int { return cmp.Compare(a.ChainID, b.ChainID) })
	return result, err
}

func writeReplayed(w io.Writer, result Replayed) {
	for _, failed := range result.Failed {
		_, _ = fmt.Fprintf(w, "Chain %s: %s. Keep a worker of its version running until it has ended.\n",
			console.PrintableID(failed.ChainID), failed.Problem)
	}
	version := console.Printable(result.Version, 100)
	switch {
	case len(result.Failed) > 0:
		_, _ = fmt.Fprintf(w, "This program (%s) cannot continue %d of %d.\n", version, len(result.Failed),
			result.Replayed)
		_, _ = fmt.Fprintln(w, "Start its workers only with CLAUDEOPS_DEPLOYMENT, beside those that run: see "+
			"docs/releasing.md.")
	case result.Replayed == 0:
		_, _ = fmt.Fprintln(w, "No chains run.")
	default:
		_, _ = fmt.Fprintf(w, "This program (%s) can continue all %d.\n", version, result.Replayed)
	}
	if result.More {
		_, _ = fmt.Fprintln(w, "There are more; replay them with --limit.")
	}
}
