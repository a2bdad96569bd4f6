//go:build soak

package supervisor_test

import "testing"

// TestSoakDatabaseAway has the database away at each step of a chain for long.
func TestSoakDatabaseAway(t *testing.T) {
	t.Parallel()
	requireDatabaseAwayDelays(t, *soakAway)
}
