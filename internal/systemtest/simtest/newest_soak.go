//go:build soak

package simtest

import (
	"testing"

	"github.com/claudeops/claudeops/internal/claudesim"
)

// NewestVersions returns all releases that Versions returns. This variant is built for `make soak` and `make contract`.
func NewestVersions(t testing.TB) []claudesim.Version {
	t.Helper()
	return Versions(t)
}
