package operate

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/workflows"
)

// Fleet is the result of `workers`.
type Fleet struct {
	Workers []Worker `json:"workers"`
	// Versions holds the versions of the workers' deployments; empty without CLAUDEOPS_DEPLOYMENT.
	Versions []Version `json:"versions"`
}

func (a *app) workersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "List workers, or make their version current",
		Long: "Workers lists the processes that run chains and agents: their host, version, agents, task queues, and " +
			"the time of\ntheir last report to Temporal. The states are:\n\n" +
			"  running   it takes work\n" +
			"  draining  it was asked to stop, and waits for its agents\n" +
			"  silent    its reports are missing: it was killed, or its host or network is down\n\n" +
			"A worker that has stopped is not listed. The number of agents comes from the last report. A worker " +
			"reports every\n30 seconds. A - means that Temporal does not know a value: the first report and older " +
			"servers do not contain it.\n\nWith CLAUDEOPS_DEPLOYMENT it lists the versions, too. New chains begin in " +
			"the current version. A draining version still\nhas chains. You can stop the workers of a drained " +
			"version. Temporal notices some minutes late that a version is drained.\n\nIn JSON: workers, each with " +
			"host, pid, version, deployment, build_id, state, agents, max_agents, queues, started_at\nand last_seen; " +
			"and versions, each with deployment, build_id, state (current, ramping, draining, drained or " +
			"inactive)\nand percent (of the new chains, while it ramps).",
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listWorkers(cmd.Context()) },
	}
	cmd.AddCommand(a.promoteCommand())
	return cmd
}

func (a *app) listWorkers(ctx context.Context) error {
	c, cfg, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	queue := cfg.Worker.TaskQueue
	fleet := Fleet{Workers: []Worker{}, Versions: []Version{}} // empty lists are [] in JSON
	found, err := findWorkers(ctx, c, []string{queue, workflows.AgentsTaskQueue(queue)}, time.Now())
	if err != nil {
		return err
	}
	fleet.Workers = append(fleet.Workers, found...)
	for _, deployment := range deployments(cfg.Worker.Deployment, found) {
		versions, err := versionsOf(ctx, c, deployment)
		if err != nil {
			return err
		}
		fleet.Versions = append(fleet.Versions, versions...)
	}
	return a.Print(fleet, func(w io.Writer) { writeFleet(w, a.Clock, queue, fleet) })
}
