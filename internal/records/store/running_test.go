package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

func testRunning(t *testing.T, database backend) {
	s := database(t)()
	first := mustOpen(t, s, opening("chain", "a", 0))
	mustOpen(t, s, opening("chain", "b", 0))
	third := mustOpen(t, s, opening("other", "c", 0))
	require.NoError(t, s.CloseSession(bounded(t), "b", escalation.Report{Status: escalation.SessionCompleted}, noon))

	running, err := s.Running(bounded(t))
	require.NoError(t, err)
	require.Equal(t, []escalation.Session{first, third}, running)
}
