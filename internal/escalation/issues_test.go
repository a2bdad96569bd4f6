package escalation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

func TestMostSevereFirst(t *testing.T) {
	t.Parallel()
	issue := func(severity escalation.Severity) escalation.Issue { return escalation.Issue{Severity: severity} }
	require.Empty(t, escalation.MostSevereFirst(nil))
	require.Equal(t, []int{1, 4, 2, 0, 3}, escalation.MostSevereFirst([]escalation.Issue{
		issue(escalation.SeverityInfo), issue(escalation.SeverityCritical), issue(escalation.SeverityWarning),
		issue(escalation.SeverityInfo), issue(escalation.SeverityCritical),
	}))
}
