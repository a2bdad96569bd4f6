package activities

import (
	"context"
	"slices"

	"github.com/claudeops/claudeops/internal/escalation"
)

// WindowReader knows the models' context windows.
type WindowReader interface {
	// ContextWindows returns the window, in tokens, that was reported last for each
	// model; a model that never reported one is not in it.
	ContextWindows(ctx context.Context) (map[string]int, error)
}

// Settings gives chains their policy.
type Settings struct {
	// Policy is what this worker is configured to allow.
	Policy  escalation.Policy
	Windows WindowReader
}

// LoadPolicyResult is a snapshot of the policy, which holds for the whole chain.
type LoadPolicyResult struct {
	Policy escalation.Policy `json:"policy"`
}

// LoadPolicy returns the worker's policy. A context window that the CLI has reported
// takes the place of the configured one, which is a guess.
func (s *Settings) LoadPolicy(ctx context.Context) (LoadPolicyResult, error) {
	windows, err := s.Windows.ContextWindows(ctx)
	if err != nil {
		return LoadPolicyResult{}, err
	}
	policy := s.Policy
	policy.Tiers = slices.Clone(policy.Tiers)
	for i := range policy.Tiers {
		if window, reported := windows[policy.Tiers[i].Model]; reported {
			policy.Tiers[i].ContextWindow = window
		}
	}
	return LoadPolicyResult{Policy: policy}, nil
}
