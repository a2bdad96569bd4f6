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
	// Policy is the policy in this worker's configuration, and TalkPolicy is the policy for conversations.
	Policy, TalkPolicy escalation.Policy

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
	// Services holds the canonical names of the services in the input. Unknown holds the names of services that the
	// catalog does not have.
	Services []string `json:"services,omitempty"`
	Unknown  []string `json:"unknown,omitempty"`
}

// LoadPolicy returns the policy of this worker, and the canonical names of the services in the input. If the CLI has
// reported a model's context window, the reported size replaces the configured size, which is only a guess.
func (s *Settings) LoadPolicy(ctx context.Context, input LoadPolicyInput) (LoadPolicyResult, error) {
	policy, err := s.withWindows(ctx, s.Policy)
	if err != nil {
		return LoadPolicyResult{}, err
	}
	services := s.Catalog.CanonicalAll(input.Services)
	return LoadPolicyResult{Policy: policy, Services: services, Unknown: s.Catalog.Unknown(services)}, nil
}

// LoadTalkPolicy returns the policy of this worker for a turn of a conversation. The argument is not used.
func (s *Settings) LoadTalkPolicy(ctx context.Context, _ struct{}) (escalation.Policy, error) {
	return s.withWindows(ctx, s.TalkPolicy)
}

// withWindows returns policy with the context windows that the CLI has reported.
func (s *Settings) withWindows(ctx context.Context, policy escalation.Policy) (escalation.Policy, error) {
	policy.Tiers = slices.Clone(policy.Tiers)
	for i := range policy.Tiers {
		reported, err := s.Windows.ContextWindow(ctx, policy.Tiers[i].Model)
		if err != nil {
			return escalation.Policy{}, err
		}
		policy.Tiers[i].ContextWindow = cmp.Or(reported, policy.Tiers[i].ContextWindow)
	}
	return policy, nil
}
