package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

func testContextWindows(t *testing.T, database backend) {
	s := database(t)()
	none, err := s.ContextWindows(bounded(t))
	require.NoError(t, err)
	require.Empty(t, none)

	for i, reported := range []struct {
		model  string
		window int
	}{{"haiku", 100_000}, {"haiku", 200_000}, {"sonnet", 1_000_000}, {"sonnet", 0}, {"opus", 0}} {
		record := opening("chain", fmt.Sprint(i), 0)
		record.Model = reported.model
		opened := mustOpen(t, s, record)
		report := escalation.Report{Status: escalation.SessionCompleted, ContextWindow: reported.window}
		require.NoError(t, s.CloseSession(bounded(t), opened.SessionID, report, noon))
	}

	windows, err := s.ContextWindows(bounded(t))
	require.NoError(t, err)
	require.Equal(t, map[string]int{"haiku": 200_000, "sonnet": 1_000_000}, windows)
}
