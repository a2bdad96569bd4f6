package program

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/plant/config"
)

func TestCodeOf(t *testing.T) {
	t.Parallel()
	_, invalid := config.Load([]string{"CLAUDEOPS_MAX_TIER=9"})
	problem := errors.New("a problem")
	for name, tt := range map[string]struct {
		err  error
		want ExitCode
	}{
		"nothing":               {nil, ExitOK},
		"misuse of nothing":     {Misuse(nil), ExitOK},
		"a problem":             {problem, ExitFailure},
		"misuse, wrapped":       {fmt.Errorf("run: %w", Misuse(problem)), ExitUsage},
		"invalid configuration": {invalid, ExitUsage},
		"a code of its own":     {WithCode(4, problem), 4},
	} {
		require.Equal(t, tt.want, CodeOf(tt.err), name)
	}
	require.ErrorIs(t, Misuse(problem), problem)
}

func TestComplainMasks(t *testing.T) {
	t.Parallel()
	var printed strings.Builder
	Process{Environ: []string{"FLEET_TOKEN=fleet-value-4711"}, Stderr: &printed}.Complain("worker", errors.New("no fleet-value-4711 here"))
	require.Equal(t, "worker: no [masked: FLEET_TOKEN] here\n", printed.String())
}
