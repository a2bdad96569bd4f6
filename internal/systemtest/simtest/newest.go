//go:build !soak

package simtest

import (
	"testing"

	"github.com/claudeops/claudeops/internal/claudesim"
)

// NewestVersions returns the newest of the releases that Versions returns. With the build tag soak, which `make soak`
// and `make contract` set, it returns all of them. Use NewestVersions in tests of whole chains and of many calls.
func NewestVersions(t testing.TB) []claudesim.Version {
	t.Helper()
	all := Versions(t)
	return all[len(all)-1:]
}
