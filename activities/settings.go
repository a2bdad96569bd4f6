package activities

import (
	"cmp"
	"context"
	"slices"

	"github.com/claudeops/claudeops/internal/escalation"
)

// WindowReader knows the models' context windows.
type WindowReader interface {
	// ContextWindow returns the window, in tokens, that was reported last for the model; 0
	// if none ever was.
	ContextWindow(ctx context.Context, model string) (int, error)
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
	policy := s.Policy
	policy.Tiers = slices.Clone(policy.Tiers)
	for i := range policy.Tiers {
		reported, err := s.Windows.ContextWindow(ctx, policy.Tiers[i].Model)
		if err != nil {
			return LoadPolicyResult{}, err
		}
		policy.Tiers[i].ContextWindow = cmp.Or(reported, policy.Tiers[i].ContextWindow)
	}
	return LoadPolicyResult{Policy: policy}, nil
}
