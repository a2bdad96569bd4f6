package parts

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// LoadPolicy returns the policy in the worker's configuration.
func LoadPolicy(ctx workflow.Context) (escalation.Policy, error) {
	loaded, err := LoadSettings(ctx, activities.LoadPolicyInput{})
	return loaded.Policy, err
}

// LoadSettings returns the policy in the worker's configuration, and the canonical names of the services in input.
func LoadSettings(
	ctx workflow.Context, input activities.LoadPolicyInput,
) (loaded activities.LoadPolicyResult, err error) {
	var settings *activities.Settings
	err = ReadRecords(WithRecords(ctx, "policy snapshot"), settings.LoadPolicy, input, &loaded)
	return loaded, err
}

// FindRepository returns the allowed directory whose path, or whose last path element, is name. If name is empty, it
// returns "" for the default directory. If no directory matches, or several directories match, it returns an error.
func FindRepository(allowed []string, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	if cleaned := path.Clean(name); slices.Contains(allowed, cleaned) {
		return cleaned, nil
	}
	named := slices.DeleteFunc(slices.Clone(allowed),
		func(directory string) bool { return path.Base(directory) != name })
	switch len(named) {
	case 1:
		return named[0], nil
	case 0:
		return "", fmt.Errorf("repository %q is none that CLAUDEOPS_REPOSITORIES lists for the workers", name)
	default:
		return "", fmt.Errorf("repository %q is the name of %d directories: give the path of one", name, len(named))
	}
}

// CheckActor returns an error if nobody says who starts the chain, and somebody else must answer at its gates.
func CheckActor(policy escalation.Policy, actor string) error {
	if policy.Gate.FourEyes && policy.Gate.Timeout > 0 && actor == "" {
		return errors.New("actor is empty: say who starts the chain, because CLAUDEOPS_GATE_FOUR_EYES " +
			"lets somebody else answer at its gates")
	}
	return nil
}

// withWindows returns a policy with the context windows that the CLI has reported for the models of its tiers and
// roles, because the next run does not have all sessions.
func withWindows(policy escalation.Policy, s *Sessions) escalation.Policy {
	policy.Tiers = slices.Clone(policy.Tiers)
	for i, tier := range policy.Tiers {
		policy.Tiers[i].ContextWindow = s.Window(tier)
	}
	for _, role := range []*escalation.TierPolicy{&policy.Author.Role, &policy.Review.Reviewer} {
		role.ContextWindow = s.Window(*role)
	}
	return policy
}

// WithBudget returns the policy with a lower spending limit, in US dollars. If the limit is 0, or not lower, the
// configured one applies.
func WithBudget(policy escalation.Policy, limit float64) escalation.Policy {
	if limit > 0 && (policy.ChainBudgetUSD == 0 || limit < policy.ChainBudgetUSD) {
		policy.ChainBudgetUSD, policy.OwnBudgetUSD = limit, limit
	}
	return policy
}
