package config

import (
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Review holds the settings for reviews of what agents commit.
type Review struct {
	Changes  escalation.ReviewMode `env:"REVIEW_CHANGES" desc:"What happens with commits of tiers 2 and 3. none: nobody reviews them. advisory: a second session reviews them, and its verdict informs people. required: agents push nothing; the author corrects findings, an approved commit is pushed to origin, and a person is asked about any other. See docs/repositories.md."`
	MaxFiles int                   `env:"REVIEW_MAX_FILES" desc:"Number of files up to which a change is reviewed. A larger one needs a person."`
	MaxLines int                   `env:"REVIEW_MAX_LINES" desc:"Number of added and removed lines up to which a change is reviewed. A larger one needs a person."`
	MaxFixes int                   `env:"REVIEW_MAX_FIXES" desc:"With required, and for plans: number of times that an author corrects findings, and repairs what the checks have found, before a person is asked."`
	Reviewer Role                  `envPrefix:"REVIEWER_"`
}

// Author holds the settings of authors: the sessions that change a repository after a plan.
type Author struct {
	Tier escalation.Tier `env:"AUTHOR_TIER" desc:"The tier whose permissions authors have: 2 or 3. An author repairs no service, so no cooldown delays it."`
	Role Role            `envPrefix:"AUTHOR_"`
}

// Role holds the settings of sessions with a role, reviewers or authors.
type Role struct {
	Model     string        `env:"MODEL" desc:"The model of sessions with this role, by its name for the CLI."`
	Timeout   time.Duration `env:"TIMEOUT" desc:"Wall-clock limit of one attempt."`
	BudgetUSD float64       `env:"BUDGET_USD" desc:"Budget of one session, in US dollars; 0: no cap. The budgets of the chain and of the day count it, too."`
}

func defaultReview() Review {
	return Review{
		Changes:  escalation.ReviewAdvisory,
		MaxFixes: 3,                  // the rules ask a person sooner if corrections do not help
		MaxFiles: 30, MaxLines: 1500, // nobody reads more with care, and the prompt of a review must fit into a window
		Reviewer: Role{
			Model:     "sonnet",
			Timeout:   10 * time.Minute, // reads one change and a few files
			BudgetUSD: 1,                // several times a normal review
		},
	}
}

func (r Review) validate(p *problems) {
	p.must("REVIEW_MAX_FILES", r.MaxFiles >= 1 && r.MaxFiles <= 200, "be between 1 and 200")
	p.must("REVIEW_MAX_LINES", r.MaxLines >= 1 && r.MaxLines <= 5000, "be between 1 and 5000")
	p.must("REVIEW_MAX_FIXES", r.MaxFixes >= 0 && r.MaxFixes <= 10, "be between 0 and 10")
	r.Reviewer.validate("REVIEWER_", p)
}

func (a Author) validate(p *problems) {
	p.must("AUTHOR_TIER", a.Tier >= escalation.TierSafeRepair, "be 2 or 3, because tier 1 changes nothing")
	a.Role.validate("AUTHOR_", p)
}

// validate checks the role, whose settings begin with prefix.
func (r Role) validate(prefix string, p *problems) {
	p.must(prefix+"MODEL", isWord(r.Model) && !strings.HasPrefix(r.Model, "-"),
		"be the name of a model, without spaces")
	p.must(prefix+"TIMEOUT", r.Timeout > 0, positive)
	p.must(prefix+"BUDGET_USD", isBudget(r.BudgetUSD), noCap)
}

func (r Review) policy() escalation.ReviewPolicy {
	return escalation.ReviewPolicy{
		Mode: r.Changes, MaxFiles: r.MaxFiles, MaxLines: r.MaxLines, MaxFixes: r.MaxFixes,
		Reviewer: r.Reviewer.policy(),
	}
}

func (a Author) policy() escalation.AuthorPolicy {
	author := escalation.AuthorPolicy{Tier: a.Tier, Role: a.Role.policy()}
	author.Role.ContextWindow = window
	return author
}

func (r Role) policy() escalation.TierPolicy {
	return escalation.TierPolicy{Model: r.Model, Timeout: escalation.Duration(r.Timeout), BudgetUSD: r.BudgetUSD}
}
