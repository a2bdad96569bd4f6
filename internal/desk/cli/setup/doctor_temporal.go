package setup

import (
	"context"
	"errors"
	"fmt"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/records/store"
)

// checkTemporal checks the server, the namespace, the search attributes and the clock. If a deployment is configured,
// it also checks the version.
func (a *app) checkTemporal(ctx context.Context, cfg config.Config) []finding {
	options, err := supervisor.ConnectionOptions(a.Environ, cfg, a.QuietLogger())
	if err != nil {
		return []finding{failed("temporal", err)}
	}
	c, err := supervisor.Connect(ctx, options)
	if err != nil {
		return []finding{failed("temporal", err)}
	}
	defer c.Close()
	findings := []finding{passed("temporal", options.HostPort+" answers")}
	namespace, err := supervisor.FindNamespace(ctx, c, options.Namespace)
	if err != nil {
		return append(findings, failed("namespace", fmt.Errorf(
			"%w; create it with: temporal operator namespace create --namespace %s", err, options.Namespace)))
	}
	own := operations.Connection{Client: c, Namespace: options.Namespace}
	findings = append(findings, checkOwner(ctx, cfg, namespace), checkAttributes(ctx, own), checkClock(ctx, own),
		checkSchedules(ctx, own, a.Clock()))
	if cfg.Worker.Deployment != "" {
		findings = append(findings, checkVersion(ctx, own, cfg.Worker))
	}
	return findings
}

// checkOwner reports whether a worker of the namespace can take the records.
func checkOwner(ctx context.Context, cfg config.Config, namespace store.Namespace) finding {
	const check = "namespace"
	if records, err := supervisor.OpenExisting(ctx, cfg.State); err == nil { // otherwise checkDatabase says why
		if err := errors.Join(records.CheckNamespace(ctx, namespace), records.Close()); err != nil {
			return failed(check, err)
		}
	}
	return passed(check, namespace.Name+" exists")
}

func checkAttributes(ctx context.Context, c operations.Connection) finding {
	const check = "search attributes"
	missing, err := supervisor.MissingAttributes(ctx, c, c.Namespace)
	if err == nil && len(missing) > 0 {
		err = &supervisor.MissingAttributesError{Namespace: c.Namespace, Missing: missing}
	}
	if err != nil {
		return failed(check, err)
	}
	return passed(check, "all there")
}

// checkVersion reports the version of this program's workers. The check fails if the deployment has no current version,
// because then no new chain begins.
func checkVersion(ctx context.Context, c operations.Connection, settings config.Worker) finding {
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
			"start a worker, then run: claudeops workers promote %s", own.DeploymentName, own.BuildID))
	}
	return passed(check, fmt.Sprintf("%s of deployment %s; new chains begin in %s", own.BuildID, own.DeploymentName,
		current))
}
