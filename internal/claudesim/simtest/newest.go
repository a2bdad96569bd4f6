//go:build !soak

package simtest

import (
	"testing"

	"github.com/claudeops/claudeops/internal/claudesim"
)

// NewestVersions returns the newest of Versions. With the build tag soak it returns all of them. It is for tests of
// whole chains and of many calls: the contract tests hold what a single run does, and they run on every release.
func NewestVersions(t testing.TB) []claudesim.Version {
	t.Helper()
	all := Versions(t)
	return all[len(all)-1:]
}
