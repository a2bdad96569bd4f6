package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/workflows"
)

// WorkerVersion returns the version with which a worker of this program joins the configured deployment. Its build ID
// is the configured one or, without one, the version of the program. If no deployment is configured, WorkerVersion
// returns the zero value. If the program was not built from a commit, its version does not identify it, so a build ID
// must be configured.
func WorkerVersion(cfg config.Worker, program string) (worker.WorkerDeploymentVersion, error) {
	if cfg.Deployment == "" {
		return worker.WorkerDeploymentVersion{}, nil
	}
	if cfg.BuildID == "" && (program == "" || program == "devel" || strings.HasSuffix(program, "+dirty")) {
		return worker.WorkerDeploymentVersion{},
			fmt.Errorf("this program has no version of its own (%q), and %sDEPLOYMENT needs one; "+
				"set %sBUILD_ID, or use a released program", program, config.Prefix, config.Prefix)
	}
	return worker.WorkerDeploymentVersion{DeploymentName: cfg.Deployment, BuildID: cmp.Or(cfg.BuildID, program)}, nil
}

// deploymentOptions returns the options of the workers on both task queues. The workers on both queues have the same
// version, because Temporal gives an activity of a pinned chain only to a worker of the chain's version.
func (s *Supervisor) deploymentOptions() worker.DeploymentOptions {
	if s.version.DeploymentName == "" {
		return worker.DeploymentOptions{}
	}
	return worker.DeploymentOptions{
		UseVersioning: true, Version: s.version,
		// A chain is pinned to its version, because a release may change the order of a chain's activities, which
		// breaks the replay of older histories. A chain continues as new for a newer version: see package workflows.
		DefaultVersioningBehavior: workflow.VersioningBehaviorPinned,
	}
}

// CurrentVersion returns the build ID of the version of a deployment in which new chains begin. If there is no such
// version, or if no worker of the deployment has run yet, it returns "".
func CurrentVersion(ctx context.Context, c client.Client, deployment string) (string, error) {
	described, err := c.WorkerDeploymentClient().GetHandle(deployment).Describe(ctx,
		client.WorkerDeploymentDescribeOptions{})
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return "", nil // its first worker creates it
	}
	if err != nil {
		return "", fmt.Errorf("look up the versions of deployment %s: %w", deployment, err)
	}
	if current := described.Info.RoutingConfig.CurrentVersion; current != nil {
		return current.BuildID, nil
	}
	return "", nil
}

// logVersion logs a warning if this worker gets no new chains because no version is current. If another version is
// current, it logs that. If the lookup fails, logVersion logs the error and returns.
func (s *Supervisor) logVersion(ctx context.Context, c client.Client) {
	own := s.version
	if own.DeploymentName == "" {
		return
	}
	logger := s.logger.With("deployment", own.DeploymentName, "build_id", own.BuildID)
	current, err := CurrentVersion(ctx, c, own.DeploymentName)
	switch {
	case err != nil:
		logger.Warn("this worker does not know which version is current", "error", err)
	case current == "":
		logger.Warn("no version of the deployment is current: workers with versions get no new chains; run " +
			"`claudeops workers promote " +
			own.BuildID + "`")
	case current != own.BuildID:
		logger.Info("another version of the deployment is current: this worker gets the chains of its own version only",
			"current_build_id", current)
	}
}

// registerWorkflows registers the workflows of this program under the names that clients use.
func registerWorkflows(registry worker.WorkflowRegistry) {
	registry.RegisterWorkflowWithOptions(workflows.EscalationChain,
		workflow.RegisterOptions{Name: workflows.ChainWorkflow})
	registry.RegisterWorkflowWithOptions(workflows.PlanReview,
		workflow.RegisterOptions{Name: workflows.PlanReviewWorkflow})
	registry.RegisterWorkflowWithOptions(workflows.PhaseExecution,
		workflow.RegisterOptions{Name: workflows.PhaseExecutionWorkflow})
	registry.RegisterWorkflowWithOptions(workflows.Delivery, workflow.RegisterOptions{Name: workflows.DeliveryWorkflow})
	registry.RegisterWorkflowWithOptions(workflows.Cycle, workflow.RegisterOptions{Name: workflows.CycleWorkflow})
	registry.RegisterWorkflowWithOptions(workflows.Conversation, workflow.RegisterOptions{
		Name: workflows.ConversationWorkflow,
		// A conversation has no end at which it could change to another version, and an idle one must not depend on
		// workers of an old version.
		VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	})
}
