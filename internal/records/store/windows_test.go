package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

func testContextWindow(t *testing.T, database backend) {
	s := database(t)()
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

	for model, want := range map[string]int{"haiku": 200_000, "sonnet": 1_000_000, "opus": 0, "unheard of": 0} {
		got, err := s.ContextWindow(bounded(t), model)
		require.NoError(t, err)
		require.Equal(t, want, got, model)
	}
}
