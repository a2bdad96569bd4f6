package operations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

// TestAfterGate checks what an answer says about its consequence.
func TestAfterGate(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 123_456_789, time.UTC)
	closed := escalation.Gate{ID: "gate-1", Answer: &escalation.GateClosing{Action: escalation.GateContinue, Actor: "ada", At: at}}
	before := escalation.Session{SessionID: "before", StartedAt: at.Add(-time.Hour)}
	after := escalation.Session{SessionID: "after", StartedAt: at.Truncate(time.Millisecond)}
	wait := &escalation.Wait{Rule: escalation.RuleCooldown, Reason: "its cooldown is not over", Until: at.Add(4 * time.Hour)}
	again := escalation.Gate{ID: "gate-2", Reason: "the chain's budget is spent", OpenedAt: at}
	for name, tt := range map[string]struct {
		chain escalation.Chain
		text  string
		known bool
	}{
		"not answered":    {escalation.Chain{Gates: []escalation.Gate{{ID: "gate-1"}}}, "", false},
		"nothing yet":     {escalation.Chain{Gates: []escalation.Gate{closed}, Sessions: []escalation.Session{before}}, "", false},
		"the session":     {escalation.Chain{Gates: []escalation.Gate{closed}, Sessions: []escalation.Session{before, after}}, "; it has begun", true},
		"the end":         {escalation.Chain{Gates: []escalation.Gate{closed}, Outcome: escalation.OutcomeAborted}, "", true},
		"an earlier gate": {escalation.Chain{Gates: []escalation.Gate{again}}, "", true},
		"a wait": {
			escalation.Chain{Gates: []escalation.Gate{closed}, Sessions: []escalation.Session{before}, Wait: wait},
			"; it waits until 16:00 UTC: its cooldown is not over", true,
		},
		"a refusal": {
			escalation.Chain{Gates: []escalation.Gate{closed, again}, Sessions: []escalation.Session{before}},
			"; it is refused, and gate-2 asks again: the chain's budget is spent", true,
		},
		"a session, and the next gate": {
			escalation.Chain{Gates: []escalation.Gate{closed, again}, Sessions: []escalation.Session{before, after}}, "; it has begun", true,
		},
	} {
		text, known := afterGate(tt.chain, "gate-1", at)
		require.Equal(t, tt.known, known, name)
		require.Equal(t, tt.text, text, name)
	}
}
