package process_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// BenchmarkRun measures the run of a program that does nothing, in every mode. The difference to ModeGroup is the cost
// of an init.
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
