package guard

import (
	"fmt"
	"slices"
)

// WithoutProposals returns a policy under which agents propose nothing themselves: they push nothing, and open no pull
// request.
func (p *Policy) WithoutProposals() *Policy {
	const why = "the supervisor pushes what a review has approved"
	without := *p
	without.Never = append(slices.Clone(p.Never),
		Never{Program: "git", Command: "push", Why: why},
		Never{Program: "gh|glab|tea", Command: "pr|mr|pull-request|pulls|pull create|new|merge|for|c", Why: why},
		Never{
			Program: "gh|glab|tea", Command: "api",
			Flags: "-X --method -f --raw-field -F --field --form --input -d --data", Why: why,
		})
	return &without
}

// WithoutCommits returns a policy under which agents make no commits and move no branches, for a session without a
// worktree. The argument missing says why it has none.
func (p *Policy) WithoutCommits(missing string) *Policy {
	why := fmt.Sprintf("it makes a commit or moves a branch: this session has no worktree (%s), "+
		"and what is committed outside of one is not reviewed", missing)
	without := *p
	without.Never = append(slices.Clone(p.Never),
		Never{
			Program: "git", Why: why,
			Command: "commit|commit-tree|merge|rebase|cherry-pick|revert|am|pull|push|send-pack|" +
				"http-push|receive-pack|update-ref|symbolic-ref|fast-import|reset|filter-branch|filter-repo|" +
				"notes|replace|subtree|svn|p4|cvsimport|citool|gui",
		},
		Never{Program: "git", Why: why, Command: "fetch", Args: []string{"*:*"}},
		Never{
			Program: "git", Why: why, Command: "branch|checkout|switch",
			Flags: "-f -B -m -M -d -D --force --force-create --move --delete",
		},
		Never{Program: "git-commit|git-commit-tree|git-merge|git-rebase|git-cherry-pick|git-revert|git-am|git-pull|" +
			"git-push|git-send-pack|git-update-ref|git-symbolic-ref|git-fast-import|git-reset|" +
			"git-filter-branch|git-fetch|git-receive-pack", Why: why})
	return &without
}
