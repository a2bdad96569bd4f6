package activities_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// fakeWindows returns the windows that it holds.
type fakeWindows struct {
	windows map[string]int
	err     error
}

var _ activities.WindowReader = fakeWindows{}

func (f fakeWindows) ContextWindow(_ context.Context, model string) (int, error) {
	return f.windows[model], f.err
}

func TestLoadPolicyPrefersReportedWindows(t *testing.T) {
	t.Parallel()
	configured := escalation.Policy{Tiers: []escalation.TierPolicy{
		{Model: "haiku", ContextWindow: 200_000}, {Model: "sonnet", ContextWindow: 200_000},
	}}
	settings := &activities.Settings{Policy: configured, Windows: fakeWindows{windows: map[string]int{"sonnet": 1_000_000}}}
	loaded, err := settings.LoadPolicy(t.Context(), activities.LoadPolicyInput{})
	require.NoError(t, err)
	require.Equal(t, 200_000, loaded.Policy.Tiers[0].ContextWindow)
	require.Equal(t, 1_000_000, loaded.Policy.Tiers[1].ContextWindow)
	require.Equal(t, 200_000, configured.Tiers[1].ContextWindow, "the configuration itself stays as it is")

	settings.Windows = fakeWindows{err: errors.New("the database is away")}
	_, err = settings.LoadPolicy(t.Context(), activities.LoadPolicyInput{})
	require.ErrorContains(t, err, "the database is away")
}
