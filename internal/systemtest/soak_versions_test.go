//go:build soak

package systemtest

import (
	"testing"
	"time"
)

// TestSoakDeployUnderChains deploys workflows of another shape under 20 chains.
func TestSoakDeployUnderChains(t *testing.T) {
	const chains = 20
	began := time.Now()
	deployUnder(t, chains)
	t.Logf("soak: deploy: chains=%d chains_lost=0 after %.0f s", chains, time.Since(began).Seconds())
}
