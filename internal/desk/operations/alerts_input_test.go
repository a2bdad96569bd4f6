package operations

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation/alert"
	"github.com/claudeops/claudeops/internal/records/store"
)

// TestHostileAlertsFitIntoAnInput checks that a chain starts whatever monitoring systems send: one that could not would
// hold up all others.
func TestHostileAlertsFitIntoAnInput(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"<", "\x01", "\u2028", "😀", "\xff", `"`} {
		one := alert.Episode{Alert: alert.Alert{Name: strings.Repeat(text, 5_000), Labels: map[string]string{}}}
		for _, name := range []string{"a", "b", "c"} {
			one.Labels[name] = strings.Repeat(text, 5_000)
		}
		chain := store.AlertChain{ChainID: "c"}
		for range 500 {
			chain.Alerts = append(chain.Alerts, one)
		}
		input := inputFor(chain)
		require.NoError(t, input.Validate(), "%q", text)
		require.Contains(t, input.Alert, "and 480 more")
	}
}
