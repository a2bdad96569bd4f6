package operations

import (
	"context"
	"errors"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/guard"
)

var errPending = errors.New("not there yet")

// Now returns what happens now. It always returns a result: each part has its own problem.
func (o Overview) Now(context.Context) Now { return Now{} }

// Get returns the session with this number. The error is KindNotFound if there is none.
func (s Sessions) Get(_ context.Context, _ int64) (SessionDetail, error) {
	return SessionDetail{}, errPending
}

// Explain returns what a tier may do. The error is KindInvalid if there is no such tier.
func (p Policy) Explain(_ escalation.Tier) (guard.Explanation, error) {
	return guard.Explanation{}, errPending
}

// Try returns what the guard decides on a call of an agent that works in the directory dir; empty for the configured one.
// The error is KindInvalid if the call is incomplete.
func (p Policy) Try(_ Call, _ string) (Decision, error) { return Decision{}, errPending }
