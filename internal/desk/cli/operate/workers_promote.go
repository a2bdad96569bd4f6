package operate

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/workflows"
)

// promoted is the result of `workers promote`.
type promoted struct {
	Deployment string `json:"deployment"`
	BuildID    string `json:"build_id"`
	// Percent is the percentage of new chains that begin in the version.
	Percent int `json:"percent"`
	// Previous is the build ID of the version that was current before; empty if no version was current.
	Previous string `json:"previous,omitempty"`
}

func (a *app) promoteCommand() *cobra.Command {
	percent := 100
	cmd := &cobra.Command{
		Use:   "promote [BUILD_ID]",
		Short: "Begin new chains in a version",
		Long: "Promote makes a version of the deployment (CLAUDEOPS_DEPLOYMENT) current: new chains begin in it, and " +
			"chains at a\ngate move to it with their next event, such as an answer. Other chains stay in their " +
			"version until they end.\nA worker of the version must run. The default for BUILD_ID is the version of " +
			"this program.\n\nWith --percent only this share of the new chains begins in the version. The others " +
			"begin in the current version. To roll\nback, promote the previous version.\n\n" +
			"In JSON: deployment, build_id, percent and previous (the previous current version).",
		Example: "  claudeops workers promote\n  claudeops workers promote v0.2.0 --percent 10",
		Args:    console.OneArgumentAtMost,
		RunE: func(cmd *cobra.Command, args []string) error {
			buildID := ""
			if len(args) == 1 {
				buildID = args[0]
			}
			return a.promote(cmd.Context(), buildID, percent)
		},
	}
	cmd.Flags().IntVar(&percent, "percent", percent, "share of the new chains, 0 to 100; 0 ends a trial")
	return cmd
}

func (a *app) promote(ctx context.Context, buildID string, percent int) error {
	if percent < 0 || percent > 100 {
		return program.Misuse(fmt.Errorf("--percent is %d; it must be between 0 and 100", percent))
	}
	c, cfg, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	result := promoted{Deployment: cfg.Worker.Deployment, BuildID: buildID, Percent: percent}
	if result.Deployment == "" {
		return program.Misuse(fmt.Errorf("without %sDEPLOYMENT workers have no versions; set it as the workers do",
			config.Prefix))
	}
	if buildID == "" {
		own, err := supervisor.WorkerVersion(cfg.Worker, program.Version())
		if err != nil {
			return program.Misuse(fmt.Errorf("name the build ID: %w", err))
		}
		result.BuildID = own.BuildID
	}
	if result.Previous, err = route(ctx, c, result); err != nil {
		return fmt.Errorf("version %s of deployment %s: %w", printable(result.BuildID), printable(result.Deployment),
			err)
	}
	return a.Print(result, func(w io.Writer) { writePromoted(w, result) })
}

// route makes a version the current version or, for less than 100 percent, the ramping version. It returns the build ID
// of the version that was current before.
func route(ctx context.Context, c client.Client, to promoted) (previous string, err error) {
	handle := c.WorkerDeploymentClient().GetHandle(to.Deployment)
	described, err := handle.Describe(ctx, client.WorkerDeploymentDescribeOptions{})
	if err != nil {
		return "", explained(err)
	}
	if current := described.Info.RoutingConfig.CurrentVersion; current != nil {
		previous = current.BuildID
	}
	if to.Percent == 100 {
		_, err = handle.SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{
			BuildID: to.BuildID, ConflictToken: described.ConflictToken,
		})
	} else {
		_, err = handle.SetRampingVersion(ctx, client.WorkerDeploymentSetRampingVersionOptions{
			BuildID: to.BuildID, Percentage: float32(to.Percent), ConflictToken: described.ConflictToken,
		})
	}
	return previous, explained(err)
}

// explained adds advice for the operator to an error that occurred when the current or ramping version was changed.
func explained(err error) error {
	if err == nil {
		return nil
	}
	_, unknown := errors.AsType[*serviceerror.NotFound](err)
	_, unready := errors.AsType[*serviceerror.FailedPrecondition](err)
	if unknown || unready {
		return fmt.Errorf("%w; start a worker of that version, see it in `claudeops workers`, and try again", err)
	}
	return err
}

func writePromoted(w io.Writer, to promoted) {
	version, previous := printable(to.BuildID), printable(to.Previous)
	if to.Percent < 100 {
		_, _ = fmt.Fprintf(w, "%d%% of the new chains begin in version %s of deployment %s, the others in %s.\n",
			to.Percent, version, printable(to.Deployment), previous)
		return
	}
	_, _ = fmt.Fprintf(w, "Version %s of deployment %s is current: new chains begin in it.\n", version,
		printable(to.Deployment))
	if to.Previous != "" && to.Previous != to.BuildID {
		_, _ = fmt.Fprintf(w, "Keep the workers of version %s until `claudeops workers` shows it as drained. "+
			"Roll back with: claudeops workers promote %s\n", previous, workflows.Operand(previous))
	}
}
