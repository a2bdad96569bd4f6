package daily

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

func TestGateMisuse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no chain":        {[]string{"gate", "--action", "f"}, "name the chain whose gate is to be answered"},
		"lonely actor":    {[]string{"gate", "--actor", "ada"}, "name the chain whose gate is to be answered"},
		"lonely guidance": {[]string{"gate", "x", "--guidance", "y"}, "--guidance and --force go with --action"},
		"no gates wanted": {[]string{"gate", "--limit", "0"}, "--limit 0 is less than one gate"},
		"two chains":      {[]string{"gate", "x", "y"}, "`claudeops gate` takes one argument, and \"y\" is another"},
		"odd actor":       {[]string{"gate", "x", "--actor", "a\nb"}, "actor has characters that cannot be printed"},
		"nothing to see":  {[]string{"watch"}, "CHAIN is missing: write `claudeops watch CHAIN` (see `claudeops watch --help`)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := starter(t, clitest.Environment(t), tt.args...)
			require.Equal(t, program.ExitUsage, got.Code, got.Stderr)
			require.Contains(t, got.Stderr, tt.want)
			require.Empty(t, got.Stdout)
		})
	}
}
