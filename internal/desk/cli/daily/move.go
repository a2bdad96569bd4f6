package daily

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
)

// moving holds the flags of `chains move`.
type moving struct {
	from  string
	to    string
	limit int
}

// moved is the result of moving one chain.
type moved struct {
	ChainID string `json:"chain_id"`
	RunID   string `json:"run_id,omitempty"`
	// BuildID is the version to which the chain was moved; empty if the chain was not moved.
	BuildID string `json:"build_id,omitempty"`
	// Problem is the reason for which the chain was not moved; empty if the chain was moved.
	Problem string `json:"problem,omitempty"`
}

func (a *app) moveCommand() *cobra.Command {
	var m moving
	cmd := &cobra.Command{
		Use:   "move [CHAIN...]",
		Short: "Move running chains to the version of this program",
		Long: "Move moves running chains to another version (CLAUDEOPS_DEPLOYMENT), whose workers then continue " +
			"them. Name the\nchains, or move all chains of a version with --from.\n\n" +
			"A chain is moved only if this program can replay its history. So use the claudeops of the target " +
			"version. If a chain\ncannot be moved, the exit code is 1. Such a chain moves at its next gate, or ends " +
			"in its version. The next step of a\nmoved chain runs in the new version. A running agent is not " +
			"disturbed.\n\nWith --to you can choose another version than the version of this program. Then nothing " +
			"is replayed. If that version\ncannot continue a chain, the chain stops until you move it back.\n\n" +
			"In JSON: a list with chain_id, run_id, and build_id (the new version) or problem.",
		Example: "  claudeops chains move chain-42\n  claudeops chains move --from v0.1.0",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.moveChains(cmd.Context(), args, m) },
	}
	flags := cmd.Flags()
	flags.StringVar(&m.from, "from", "", "move the running chains of the version with this build ID")
	flags.StringVar(&m.to, "to", "", "build ID of the version to move to (default: the version of this program)")
	flags.IntVar(&m.limit, "limit", 1000, "maximum number of chains with --from")
	return cmd
}

func (m moving) check(chains []string) error {
	switch {
	case (m.from == "") == (len(chains) == 0):
		return errors.New("name the chains to move, or a version with --from, and not both")
	default:
		return console.CheckLimit(m.limit, "chain")
	}
}

func (a *app) moveChains(ctx context.Context, ids []string, m moving) error {
	if err := m.check(ids); err != nil {
		return program.Misuse(err)
	}
	c, cfg, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	target, replays, err := m.target(cfg.Worker)
	if err != nil {
		return program.Misuse(err)
	}
	if m.from != "" {
		from := worker.WorkerDeploymentVersion{DeploymentName: target.DeploymentName, BuildID: m.from}
		if ids, err = chainsOf(ctx, c, from, m.limit); err != nil {
			return err
		}
	}
	results, stayed := []moved{}, 0 // an empty list is [] in JSON
	for _, id := range ids {
		result := moved{ChainID: id, BuildID: target.BuildID}
		if result.RunID, err = moveChain(ctx, c, id, target, replays); err != nil {
			result.BuildID, result.Problem = "", a.Operations.Masked(err.Error())
			stayed++
		}
		results = append(results, result)
	}
	if err := a.Print(results, func(w io.Writer) { writeMoved(w, results) }); err != nil {
		return err
	}
	if stayed > 0 {
		return fmt.Errorf("%d of %d chains were not moved", stayed, len(results))
	}
	return nil
}

// target returns the version to which chains are moved. The result replays reports whether this is the version of this
// program. Only for its own version can this program check, by a replay, that the version can continue a chain.
func (m moving) target(settings config.Worker) (target worker.WorkerDeploymentVersion, replays bool, err error) {
	if settings.Deployment == "" {
		return target, false, fmt.Errorf("without %sDEPLOYMENT workers have no versions; set it as the workers do",
			config.Prefix)
	}
	own, err := supervisor.WorkerVersion(settings, program.Version())
	if m.to == "" || (err == nil && m.to == own.BuildID) {
		return own, true, err
	}
	return worker.WorkerDeploymentVersion{DeploymentName: settings.Deployment, BuildID: m.to}, false, nil
}

// chainsOf returns the IDs of running chains of a version. It returns no more IDs than limit.
func chainsOf(
	ctx context.Context, c operations.Connection, version worker.WorkerDeploymentVersion, limit int,
) ([]string, error) {
	rows, err := operations.List(ctx, c, operations.RunningQuery(
		"TemporalWorkerDeploymentVersion = "+operations.Quote(version.DeploymentName+":"+version.BuildID)), limit)
	var ids []string
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	return ids, err
}

// moveChain moves one chain and returns the ID of its run. If replays is true, moveChain first replays the history of
// the chain, and moves the chain only if the replay succeeds.
func moveChain(
	ctx context.Context, c operations.Connection, id string, target worker.WorkerDeploymentVersion, replays bool,
) (runID string, err error) {
	described, err := c.DescribeWorkflowExecution(ctx, id, "")
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return "", operations.ErrNoSuchChain
	}
	if err != nil {
		return "", err
	}
	chain := described.GetWorkflowExecutionInfo()
	runID = chain.GetExecution().GetRunId()
	if chain.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return runID, errors.New("it has ended")
	}
	if chain.GetVersioningInfo().GetBehavior() == enumspb.VERSIONING_BEHAVIOR_UNSPECIFIED {
		return runID, errors.New("it belongs to no version: workers without versions began it, and they or the " +
			"current version continue it")
	}
	if replays {
		if err := operations.Replay(ctx, c, id, runID); err != nil {
			return runID, fmt.Errorf("version %s cannot continue it, so it stays in its version: %w", target.BuildID,
				err)
		}
	}
	_, err = c.UpdateWorkflowExecutionOptions(ctx, client.UpdateWorkflowExecutionOptionsRequest{
		WorkflowId: id, RunId: runID,
		WorkflowExecutionOptionsChanges: client.WorkflowExecutionOptionsChanges{
			// Override the version only until a worker of the target version has continued the chain. A permanent
			// override would prevent later versions from continuing the chain.
			VersioningOverride: &client.VersioningOverrideChange{
				Value: &client.OneTimeVersioningOverride{TargetVersion: target},
			},
		},
	})
	if _, unready := errors.AsType[*serviceerror.FailedPrecondition](err); unready {
		err = fmt.Errorf("%w; start a worker of that version, see it in `claudeops workers`, and try again after a "+
			"few seconds", err)
	}
	return runID, err
}

func writeMoved(w io.Writer, results []moved) {
	if len(results) == 0 {
		_, _ = fmt.Fprintln(w, "No chains to move.")
	}
	for _, result := range results {
		id := console.PrintableID(result.ChainID)
		if result.Problem != "" {
			_, _ = fmt.Fprintf(w, "Chain %s was not moved: %s\n", id, console.Printable(result.Problem, 500))
			continue
		}
		_, _ = fmt.Fprintf(w, "Chain %s continues in version %s with its next step.\n", id,
			console.Printable(result.BuildID, 200))
	}
}
