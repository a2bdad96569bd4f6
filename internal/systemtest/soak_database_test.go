//go:build soak

package systemtest

import "testing"

// TestSoakDatabaseAway makes the database unavailable for a long time at each step of a chain.
func TestSoakDatabaseAway(t *testing.T) {
	t.Parallel()
	requireDatabaseAwayDelays(t, *soakAway)
}
