package systemtest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"

	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
)

func TestWorkerVersion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		settings config.Worker
		program  string
		want     string
		problem  bool
	}{
		{config.Worker{}, "devel", "", false},
		{config.Worker{Deployment: "ops"}, "v0.1.0", "v0.1.0", false},
		{config.Worker{Deployment: "ops", BuildID: "mine"}, "v0.1.0", "mine", false},
		{config.Worker{Deployment: "ops", BuildID: "mine"}, "devel", "mine", false},
		{config.Worker{Deployment: "ops"}, "devel", "", true},
		{config.Worker{Deployment: "ops"}, "", "", true},
		{config.Worker{Deployment: "ops"}, "v0.1.1-0.20261123030000-0123456789ab+dirty", "", true},
	} {
		got, err := supervisor.WorkerVersion(tt.settings, tt.program)
		if tt.problem {
			require.ErrorContains(t, err, "set CLAUDEOPS_BUILD_ID")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, worker.WorkerDeploymentVersion{DeploymentName: tt.settings.Deployment, BuildID: tt.want}, got)
	}
}
