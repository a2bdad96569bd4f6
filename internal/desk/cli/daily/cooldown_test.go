package daily

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// TestCooldown shows what the limits of a service count, and takes the latest restart back.
func TestCooldown(t *testing.T) {
	t.Parallel()
	environ := clitest.Environment(t)
	r := clitest.Records{T: t, Store: clitest.OpenRecords(t, environ)}
	for i, chain := range []string{"chain-a", "chain-b"} {
		did := clitest.Finds(escalation.VerdictFailed, "down", "", "it is down", "jellyfin")
		did.Actions = []escalation.Action{{Kind: escalation.ActionRestart, Service: "jellyfin"}}
		r.Ran(chain, 2, chaintest.Noon.Add(time.Duration(i-2)*time.Hour), did)
		require.NoError(t, r.Store.ReleaseServices(t.Context(), chain))
	}
	shown := atNoon(t, environ, "cooldown", "Jellyfin")
	require.Equal(t, program.ExitOK, shown.Code, shown.Stderr)
	require.Equal(t, `Restarts       2 used, the limit is 2/4h; the next one is allowed at 2026-03-01 14:00:00 UTC
Redeployments  0 used, the limit is 1/24h
  the restart of jellyfin at 2026-03-01 11:00:00 UTC, by tier 2 of chain chain-b
  the restart of jellyfin at 2026-03-01 10:00:00 UTC, by tier 2 of chain chain-a
If the latest one reached nothing, take it back: claudeops cooldown --take-back jellyfin
`, shown.Stdout)

	taken := atNoon(t, environ, "cooldown", "jellyfin", "--take-back", "--actor", "ada", "-o", "json")
	require.Equal(t, program.ExitOK, taken.Code, taken.Stderr)
	var got Cooldown
	require.NoError(t, json.Unmarshal([]byte(taken.Stdout), &got))
	require.Equal(t, "chain-b", got.TakenBack.ChainID)
	require.Equal(t, 1, got.Restarts.Used)
	require.True(t, got.Restarts.Free)
	again := atNoon(t, environ, "cooldown", "jellyfin", "--take-back")
	require.Contains(t, again.Stdout, "Taken back: the restart of jellyfin at 2026-03-01 10:00:00 UTC, by tier 2 of chain chain-a. "+
		"No limit counts it any more.\n")
	nothing := atNoon(t, environ, "cooldown", "jellyfin", "--take-back")
	require.Equal(t, program.ExitFailure, nothing.Code)
	require.Equal(t, "claudeops: the records have no restart and no redeployment of \"jellyfin\"\n", nothing.Stderr)
}
