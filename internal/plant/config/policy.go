package config

import (
	"errors"
	"fmt"
	"os"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell/guard"
)

// LoadPolicy returns the policy that the guard enforces: the policy in PolicyFile or, if PolicyFile is unset, the
// built-in policy.
func (g Guard) LoadPolicy() (*guard.Policy, error) {
	policy, err := g.parse()
	if err != nil {
		return nil, err
	}
	policy = policy.WithPassed(g.passed)
	if g.reviewed {
		policy = policy.WithoutProposals()
	}
	return policy, nil
}

func (g Guard) parse() (*guard.Policy, error) {
	if g.PolicyFile == "" {
		return guard.ParsePolicy(deploy.Policy)
	}
	text, err := os.ReadFile(g.PolicyFile)
	if err != nil {
		return nil, err
	}
	return guard.ParsePolicyOver(deploy.Policy, text)
}

// validate reads the policy in PolicyFile, so that the program does not start with an invalid policy.
func (g Guard) validate(p *problems) {
	if g.PolicyFile == "" {
		return
	}
	_, err := g.LoadPolicy()
	if mistake, is := errors.AsType[*guard.PolicyError](err); is && mistake.Line > 0 {
		err = fmt.Errorf("in line %d: %s", mistake.Line, mistake.Problem)
	}
	p.must("POLICY_FILE", err == nil, "name a policy that can be used: %s", errorText(err))
}
