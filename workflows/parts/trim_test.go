package parts

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

// TestWindowsGoAlong checks that a chain of many sessions still knows the context window of a model whose session it no
// longer carries.
func TestWindowsGoAlong(t *testing.T) {
	t.Parallel()
	log := &EventLog{view: &view{}}
	for i := range maxCarried + 5 {
		session := escalation.Session{SessionID: fmt.Sprint(i), Model: "sonnet"}
		if i == 0 {
			session.Model, session.ContextWindow = "opus", 1_000_000
		}
		log.Chain.Sessions = append(log.Chain.Sessions, session)
	}
	policy := escalation.Policy{Tiers: []escalation.TierPolicy{
		{Model: "haiku", ContextWindow: 200_000}, {Model: "sonnet", ContextWindow: 200_000}, {Model: "opus", ContextWindow: 200_000},
	}}
	policy.Author.Role = policy.Tiers[2] // of a plan, whose policy goes along in the same way
	policy.Review.Reviewer = policy.Tiers[2]
	next := withWindows(policy, &Sessions{Log: log})
	log.Chain = trimmed(log.Chain)
	later := &Sessions{Log: log}
	require.Len(t, log.Chain.Sessions, maxCarried)
	for _, of := range []escalation.TierPolicy{next.Tiers[2], next.Author.Role, next.Review.Reviewer} {
		require.Equal(t, 1_000_000, later.Window(of))
	}
	require.Equal(t, 200_000, later.Window(next.Tiers[1]))
	require.Equal(t, 200_000, policy.Tiers[2].ContextWindow, "the policy of this run is another one")
}
