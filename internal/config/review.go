package config

import (
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Review holds the settings for reviews of what agents commit.
type Review struct {
	Changes        escalation.ReviewMode `env:"REVIEW_CHANGES" desc:"What happens with commits that a session of tier 2 or 3 leaves in its worktree. none: nobody reviews them. advisory: a second session, which only reads, reviews them, and its verdict informs people. required: agents push nothing and open no pull requests themselves; the author corrects what the review finds, an approved commit is pushed to the remote origin, and a person is asked about any other. See docs/reviews.md."`
	MaxFiles       int                   `env:"REVIEW_MAX_FILES" desc:"Number of files up to which a change is reviewed. A larger one needs a person."`
	MaxLines       int                   `env:"REVIEW_MAX_LINES" desc:"Number of added and removed lines up to which a change is reviewed. A larger one needs a person."`
	MaxFixes       int                   `env:"REVIEW_MAX_FIXES" desc:"With required: number of times that an author corrects findings, and repairs what the checks have found, before a person is asked."`
	Model          string                `env:"REVIEWER_MODEL" desc:"The reviewer's model, by its name for the CLI."`
	ContextWindow  int                   `env:"REVIEWER_CONTEXT_WINDOW" desc:"The context window of that model in tokens. It applies until the CLI has reported one."`
	Timeout        time.Duration         `env:"REVIEWER_TIMEOUT" desc:"Wall-clock limit of one attempt at a review."`
	MaxTurns       int                   `env:"REVIEWER_MAX_TURNS" desc:"Cap on the reviewer's turns; 0: no cap."`
	BudgetUSD      float64               `env:"REVIEWER_BUDGET_USD" desc:"Budget of one review, in US dollars; 0: no cap. The budgets of the chain and of the day count it, too."`
	AbortOnTimeout bool                  `env:"REVIEWER_ABORT_ON_TIMEOUT" desc:"true: give up a review that its time limit has ended. false: keep its conversation, so that it can be continued."`
}

func defaultReview() Review {
	return Review{
		Changes:  escalation.ReviewAdvisory,
		MaxFixes: 3,                  // the rules ask a person sooner if corrections do not help
		MaxFiles: 30, MaxLines: 1500, // nobody reads more with care, and the prompt of a review must fit into a window
		Model: "sonnet", ContextWindow: window,
		Timeout:   10 * time.Minute, // reads one change and a few files
		MaxTurns:  40,
		BudgetUSD: 1, // several times a normal review
	}
}

func (r Review) validate(p *problems) {
	p.must("REVIEW_MAX_FILES", r.MaxFiles >= 1 && r.MaxFiles <= 200, "be between 1 and 200")
	p.must("REVIEW_MAX_LINES", r.MaxLines >= 1 && r.MaxLines <= 5000, "be between 1 and 5000")
	p.must("REVIEW_MAX_FIXES", r.MaxFixes >= 0 && r.MaxFixes <= 10, "be between 0 and 10")
	p.must("REVIEWER_MODEL", isWord(r.Model) && !strings.HasPrefix(r.Model, "-"), "be the name of a model, without spaces")
	p.must("REVIEWER_CONTEXT_WINDOW", r.ContextWindow > 0, "be above 0")
	p.must("REVIEWER_TIMEOUT", r.Timeout > 0, positive)
	p.must("REVIEWER_MAX_TURNS", r.MaxTurns >= 0, noCap)
	p.must("REVIEWER_BUDGET_USD", isBudget(r.BudgetUSD), noCap)
}

func (r Review) policy() escalation.ReviewPolicy {
	return escalation.ReviewPolicy{
		Mode: r.Changes, MaxFiles: r.MaxFiles, MaxLines: r.MaxLines, MaxFixes: r.MaxFixes,
		Reviewer: escalation.TierPolicy{
			Model: r.Model, ContextWindow: r.ContextWindow, Timeout: escalation.Duration(r.Timeout), MaxTurns: r.MaxTurns,
			BudgetUSD: r.BudgetUSD, AbortOnTimeout: r.AbortOnTimeout,
		},
	}
}
