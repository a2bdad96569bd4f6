package config

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell/guard"
)

// LoadPolicy returns the policy that the guard enforces: the policy in PolicyFile or, if PolicyFile is unset, the built-in
// policy.
func (g Guard) LoadPolicy() (*guard.Policy, error) {
	policy, err := g.parse()
	if err != nil {
		return nil, err
	}
	policy = policy.WithPassed(g.passed)
	if g.reviewed {
		policy = WithoutProposals(policy)
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

// WithoutProposals returns a policy under which agents propose nothing themselves: they push nothing, and open no pull
// request.
func WithoutProposals(policy *guard.Policy) *guard.Policy {
	const why = "the supervisor pushes what a review has approved"
	without := *policy
	without.Never = append(slices.Clone(policy.Never),
		guard.Never{Program: "git", Command: "push", Why: why},
		guard.Never{Program: "gh|glab|tea", Command: "pr|mr|pull-request|pulls|pull create|new|merge|for|c", Why: why},
		guard.Never{
			Program: "gh|glab|tea", Command: "api", Flags: "-X --method -f --raw-field -F --field --form --input -d --data", Why: why,
		})
	return &without
}

// WithoutCommits returns a policy under which agents make no commits and move no branches, for a session without a worktree. The argument
// missing says why it has none.
func WithoutCommits(policy *guard.Policy, missing string) *guard.Policy {
	why := fmt.Sprintf("it makes a commit or moves a branch: this session has no worktree (%s), "+
		"and what is committed outside of one is not reviewed", missing)
	without := *policy
	without.Never = append(slices.Clone(policy.Never),
		guard.Never{Program: "git", Why: why, Command: "commit|commit-tree|merge|rebase|cherry-pick|revert|am|pull|push|send-pack|" +
			"http-push|receive-pack|update-ref|symbolic-ref|fast-import|reset|filter-branch|filter-repo|" +
			"notes|replace|subtree|svn|p4|cvsimport|citool|gui"},
		guard.Never{Program: "git", Why: why, Command: "fetch", Args: []string{"*:*"}},
		guard.Never{
			Program: "git", Why: why, Command: "branch|checkout|switch", Flags: "-f -B -m -M -d -D --force --force-create --move --delete",
		},
		guard.Never{Program: "git-commit|git-commit-tree|git-merge|git-rebase|git-cherry-pick|git-revert|git-am|git-pull|git-push|" +
			"git-send-pack|git-update-ref|git-symbolic-ref|git-fast-import|git-reset|git-filter-branch|git-fetch|" +
			"git-receive-pack", Why: why})
	return &without
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
