package setup

import (
	"context"
	"fmt"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/operations"
	"github.com/claudeops/claudeops/internal/program"
	"github.com/claudeops/claudeops/internal/supervisor"
)

// checkVersion reports the version of this program's workers. The check fails if the deployment has no current version, because
// then no new chain begins.
func checkVersion(ctx context.Context, c operations.Connection, settings config.Worker) Finding {
	const check = "version"
	own, err := supervisor.WorkerVersion(settings, program.Version())
	if err != nil {
		return failed(check, err)
	}
	current, err := supervisor.CurrentVersion(ctx, c, own.DeploymentName)
	if err != nil {
		return failed(check, err)
	}
	if current == "" {
		return failed(check, fmt.Errorf("no version of deployment %s is current, so its workers begin no chains: "+
			"start a worker, then run: starter workers promote %s", own.DeploymentName, own.BuildID))
	}
	return passed(check, fmt.Sprintf("%s of deployment %s; new chains begin in %s", own.BuildID, own.DeploymentName, current))
}
