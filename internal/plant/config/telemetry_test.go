package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTelemetryAddresses(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"METRICS_ADDRESS=:9464", "METRICS_ADDRESS=10.0.0.1:9464", "PPROF_ADDRESS=[::1]:6060", "PPROF_ADDRESS=localhost:6060"} {
		load(t, Prefix+good)
	}
	for bad, want := range map[string]string{
		"METRICS_ADDRESS=9464":            `CLAUDEOPS_METRICS_ADDRESS is "9464"; it must be an address such as 127.0.0.1:9464 or :9464.`,
		"METRICS_ADDRESS=localhost:http":  `CLAUDEOPS_METRICS_ADDRESS is "localhost:http"; it must be an address such as 127.0.0.1:9464 or :9464.`,
		"METRICS_ADDRESS=localhost:99999": `CLAUDEOPS_METRICS_ADDRESS is "localhost:99999"; it must be an address such as 127.0.0.1:9464 or :9464.`,
		"PPROF_ADDRESS=x":                 `CLAUDEOPS_PPROF_ADDRESS is "x"; it must be an address such as 127.0.0.1:6060.`,
		"PPROF_ADDRESS=:6060": `CLAUDEOPS_PPROF_ADDRESS is ":6060"; it must be a loopback address such as 127.0.0.1:6060, ` +
			`because a profile shows the inside of the worker.`,
	} {
		problems := problemsOf(t, Prefix+bad)
		require.Len(t, problems, 1, bad)
		require.Equal(t, want, problems[0].Sentence)
	}
	require.Len(t, problemsOf(t, Prefix+"METRICS_ADDRESS=localhost:1", Prefix+"PPROF_ADDRESS=localhost:1"), 1, "one listener for each")
}
