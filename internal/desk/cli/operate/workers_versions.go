package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
)

// Version is one version of a deployment.
type Version struct {
	Deployment string       `json:"deployment"`
	BuildID    string       `json:"build_id"`
	State      VersionState `json:"state"`
	// Percent is the percentage of new chains that begin in this version while the version ramps.
	Percent float32 `json:"percent,omitempty"`
}

// VersionState is the state of a version.
type VersionState string

// The states.
const (
	Current  VersionState = "current"  // new chains begin in it
	Ramping  VersionState = "ramping"  // some new chains begin in it
	Drains   VersionState = "draining" // it still has chains
	Drained  VersionState = "drained"  // it has no chains any more
	Inactive VersionState = "inactive" // it has never had chains
)

// deployments returns the name of the configured deployment and the names of the workers' deployments.
func deployments(configured string, found []Worker) []string {
	names := []string{configured}
	for i := range found {
		names = append(names, found[i].Deployment)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// versionsOf returns the versions of a deployment. If no worker of the deployment has ever run, the list is empty.
func versionsOf(ctx context.Context, c client.Client, deployment string) ([]Version, error) {
	described, err := c.WorkerDeploymentClient().GetHandle(deployment).Describe(ctx,
		client.WorkerDeploymentDescribeOptions{})
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up the versions of deployment %s: %w", console.Printable(deployment, 100), err)
	}
	routing := described.Info.RoutingConfig
	var versions []Version
	for _, summary := range described.Info.VersionSummaries {
		version := Version{Deployment: deployment, BuildID: summary.Version.BuildID, State: Inactive}
		switch {
		case routing.CurrentVersion != nil && *routing.CurrentVersion == summary.Version:
			version.State = Current
		case routing.RampingVersion != nil && *routing.RampingVersion == summary.Version:
			version.State, version.Percent = Ramping, routing.RampingVersionPercentage
		case summary.DrainageStatus == client.WorkerDeploymentVersionDrainageStatusDraining:
			version.State = Drains
		case summary.DrainageStatus == client.WorkerDeploymentVersionDrainageStatusDrained:
			version.State = Drained
		}
		versions = append(versions, version)
	}
	return versions, nil
}
