package process_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/process"
)

// BenchmarkRun measures a program that does nothing, in every mode: the difference to the group
// is what an init costs.
func BenchmarkRun(b *testing.B) {
	for _, mode := range modes(b) {
		b.Run(string(mode), func(b *testing.B) {
			for b.Loop() {
				_, err := process.Run(b.Context(), process.Spec{Path: "/bin/true", Containment: mode})
				require.NoError(b, err)
			}
		})
	}
}
