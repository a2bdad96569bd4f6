//go:build !soak

package simtest

import (
	"testing"

	"github.com/claudeops/claudeops/internal/claudesim"
)

// NewestVersions returns the newest of the releases that Versions returns. With the build tag soak it returns all of
// them. Use NewestVersions in tests of whole chains and of many calls. The contract tests check single runs on every
// release.
func NewestVersions(t testing.TB) []claudesim.Version {
	t.Helper()
	all := Versions(t)
	return all[len(all)-1:]
}
