//go:build soak

package workflows_test

import "testing"

// TestSoakSimulation runs the simulation of TestSimulation with a hundred other seeds.
func TestSoakSimulation(t *testing.T) {
	t.Parallel()
	runSimulations(t, 1000, 100)
}
