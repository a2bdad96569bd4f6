package activities

import (
	"cmp"
	"context"
	"slices"

	"github.com/claudeops/claudeops/internal/escalation"
)

// WindowReader reads the models' context windows.
type WindowReader interface {
	// ContextWindow returns the window, in tokens, that was last reported for the model; 0 if none was reported.
	ContextWindow(ctx context.Context, model string) (int, error)
}

// Settings provides chains with their policy.
type Settings struct {
	// Policy is the policy in this worker's configuration.
	Policy  escalation.Policy
	Windows WindowReader
	// Catalog holds the services that the operator has described; nil if there are none.
	Catalog *escalation.Catalog
}

// LoadPolicyInput holds the part of a chain's input that LoadPolicy completes from the worker's configuration.
type LoadPolicyInput struct {
	// Services lists names of services, as the input spells them.
	Services []string `json:"services,omitempty"`
}

// LoadPolicyResult is a snapshot of the policy, which holds for the whole chain.
type LoadPolicyResult struct {
	Policy escalation.Policy `json:"policy"`
	// Services holds the canonical names of the services in the input. Unknown holds the names of services that the catalog
	// does not have.
	Services []string `json:"services,omitempty"`
	Unknown  []string `json:"unknown,omitempty"`
}

// LoadPolicy returns the policy of this worker, and the canonical names of the services in the input. If the CLI has
// reported a model's context window, the reported size replaces the configured size, which is only a guess.
func (s *Settings) LoadPolicy(ctx context.Context, input LoadPolicyInput) (LoadPolicyResult, error) {
	policy := s.Policy
	policy.Tiers = slices.Clone(policy.Tiers)
	for i := range policy.Tiers {
		reported, err := s.Windows.ContextWindow(ctx, policy.Tiers[i].Model)
		if err != nil {
			return LoadPolicyResult{}, err
		}
		policy.Tiers[i].ContextWindow = cmp.Or(reported, policy.Tiers[i].ContextWindow)
	}
	services := s.Catalog.CanonicalAll(input.Services)
	return LoadPolicyResult{Policy: policy, Services: services, Unknown: s.Catalog.Unknown(services)}, nil
}
