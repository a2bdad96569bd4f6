package escalation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// ReviewMode says what happens with the commits of a session that repairs.
type ReviewMode string

// The modes. An empty mode means ReviewNone.
const (
	ReviewNone     ReviewMode = "none"     // nobody reviews them
	ReviewAdvisory ReviewMode = "advisory" // a reviewer's verdict informs people
	ReviewRequired ReviewMode = "required" // only approved commits are pushed, and agents push nothing themselves
)

// ReviewPolicy holds the rules for reviews.
type ReviewPolicy struct {
	Mode ReviewMode `json:"mode,omitempty"`
	// Reviewer holds the model, the tools and the limits of a reviewer's session. Its permissions are those of
	// TierObserve.
	Reviewer TierPolicy `json:"reviewer,omitzero"`
	// MaxFiles and MaxLines limit the size of a change that is reviewed.
	MaxFiles int `json:"max_files,omitempty"`
	MaxLines int `json:"max_lines,omitempty"`
	// MaxFixes limits the turns in which an author corrects findings, and the turns in which it repairs what checks
	// have found, before a person is asked.
	MaxFixes int `json:"max_fixes,omitempty"`
}

// Reviews reports whether commits are reviewed.
func (r ReviewPolicy) Reviews() bool { return r.Mode == ReviewAdvisory || r.Mode == ReviewRequired }

// AuthorPolicy holds the rules for authors: the sessions that change a repository after a plan.
type AuthorPolicy struct {
	// Tier gives an author its permissions: TierSafeRepair or TierFullRepair. Zero means TierSafeRepair.
	Tier Tier `json:"tier,omitempty"`
	// Role holds the model, the tools and the limits of an author's session.
	Role TierPolicy `json:"role,omitzero"`
}

// OfReviewer returns the policy for a reviewer's session: that of TierObserve, with the reviewer's model, tools and
// limits.
func (p Policy) OfReviewer() Policy { return p.withRole(TierObserve, p.Review.Reviewer) }

// OfAuthor returns the policy for an author's session: that of AuthorTier, with the author's model, tools and limits.
func (p Policy) OfAuthor() Policy { return p.withRole(p.AuthorTier(), p.Author.Role) }

// AuthorTier returns the tier of an author's session.
func (p Policy) AuthorTier() Tier { return cmp.Or(p.Author.Tier, TierSafeRepair) }

// ForbidsAuthors explains in a sentence why no author may run; empty if one may.
func (p Policy) ForbidsAuthors() string {
	switch {
	case p.DryRun:
		return "an author cannot change anything in a dry run"
	case p.AuthorTier() > p.MaxTier:
		return fmt.Sprintf("an author has the permissions of %s, and %s is the highest that may run", p.AuthorTier(),
			p.MaxTier)
	}
	return ""
}

// withRole returns the policy in which the sessions of a tier have a role: its model and its limits. The tools and the
// permission rules stay those of the tier.
func (p Policy) withRole(tier Tier, role TierPolicy) Policy {
	own := p.Tiers[tier-1]
	role.Tools, role.AllowedTools = own.Tools, own.AllowedTools
	p.Tiers = slices.Clone(p.Tiers)
	p.Tiers[tier-1] = role
	return p
}

// OfPurpose returns the policy for a session with a purpose.
func (p Policy) OfPurpose(purpose Purpose) Policy {
	switch purpose {
	case PurposeReview:
		return p.OfReviewer()
	case PurposeAuthor:
		return p.OfAuthor()
	case PurposeTier, PurposeContinuation, PurposeRecheck, PurposeHandoff, PurposeTalk:
	}
	return p
}

// Review describes a review of what a session has committed.
type Review struct {
	// AuthorID and ReviewerID are the conversations of the two sessions. ReviewerID is empty if no reviewer ran.
	AuthorID   string `json:"author_id"`
	ReviewerID string `json:"reviewer_id,omitempty"`
	// Phase is the number of the phase of a plan; empty if the change belongs to none.
	Phase  string `json:"phase,omitempty"`
	Branch string `json:"branch,omitempty"`
	// Base is the commit on which the change is based, and Commit the commit that was reviewed.
	Base   string `json:"base,omitempty"`
	Commit string `json:"commit,omitempty"`
	Files  int    `json:"files,omitempty"`
	Lines  int    `json:"lines,omitempty"`
	// Checks is the result of the repository's checks: passed, failed, none or unknown.
	Checks string `json:"checks,omitempty"`
	// Status is the reviewer's conclusion: ready, ready_with_corrections or not_ready; empty if there is none.
	Status string `json:"status,omitempty"`
	// Findings lists the reviewer's findings, one line each, in the words of an agent.
	Findings []string `json:"findings,omitempty"`
	// Rule names the rule that decided, and Reason explains the decision in a sentence.
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
	// Approved reports whether Commit is approved. It says nothing about any other commit.
	Approved bool `json:"approved,omitempty"`
	// Pushed says where the supervisor has pushed Commit; empty if it has not.
	Pushed string `json:"pushed,omitempty"`
	// PullRequest is the address of the pull request that proposes Commit, or in which the author has; empty if there
	// is none.
	PullRequest string `json:"pull_request,omitempty"`
}

// Subject names the phase of a plan, or the plan itself, that the change belongs to; empty if it belongs to none.
func (r Review) Subject() string {
	switch r.Phase {
	case "":
		return ""
	case PlanItself:
		return "the plan"
	}
	return "phase " + r.Phase
}

// Judgement says what the reviewer and the checks have found, such as "verdict ready, checks passed"; empty if neither
// has run.
func (r Review) Judgement() string { return judgement(r.Status, r.Checks) }

func judgement(verdict, checks string) string {
	var parts []string
	if verdict != "" {
		parts = append(parts, "verdict "+strings.ReplaceAll(verdict, "_", " "))
	}
	switch checks {
	case "":
	case "none":
		parts = append(parts, "no checks")
	default:
		parts = append(parts, "checks "+checks)
	}
	return strings.Join(parts, ", ")
}

// Describe describes the review in one line.
func (r Review) Describe() string {
	result := "not approved"
	if r.Approved {
		result = "approved"
	}
	text := result + ": " + r.Reason
	if r.Pushed != "" {
		text += "; pushed to " + r.Pushed
	}
	return text
}

// ReviewTotals sums up reviews. The findings that count are those that blocked.
type ReviewTotals struct {
	// Found counts the findings, and Fixed those of them that the next review did not find again.
	Found int `json:"found,omitempty"`
	Fixed int `json:"fixed,omitempty"`
	// ReviewCostUSD is the cost of the reviewers' sessions, in US dollars.
	ReviewCostUSD float64 `json:"review_cost_usd,omitempty"`
	// ReviewCostEstimated reports whether a part of that cost is an estimate.
	ReviewCostEstimated bool `json:"review_cost_estimated,omitempty"`
	// CostPerFixUSD is the cost of the reviews for each finding that was fixed; 0 if none was.
	CostPerFixUSD float64 `json:"cost_per_fix_usd,omitempty"`
}

// Plus returns the sum of two totals.
func (t ReviewTotals) Plus(more ReviewTotals) ReviewTotals {
	sum := ReviewTotals{Found: t.Found + more.Found, Fixed: t.Fixed + more.Fixed, ReviewCostUSD: t.ReviewCostUSD +
		more.ReviewCostUSD}
	sum.ReviewCostEstimated = t.ReviewCostEstimated || more.ReviewCostEstimated
	if sum.Fixed > 0 {
		sum.CostPerFixUSD = sum.ReviewCostUSD / float64(sum.Fixed)
	}
	return sum
}

// Describe describes the totals in a line: how many findings were fixed, what the reviews cost, and what they cost for
// each that was fixed; empty if there is nothing to say.
func (t ReviewTotals) Describe() string {
	var parts []string
	if t.Found > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s fixed", t.Fixed, plaintext.Count(t.Found, "finding")))
	}
	if t.ReviewCostUSD > 0 {
		parts = append(parts, "reviews cost "+plaintext.Cost(t.ReviewCostUSD, t.ReviewCostEstimated))
	}
	if t.CostPerFixUSD > 0 {
		parts = append(parts, plaintext.Cost(t.CostPerFixUSD, t.ReviewCostEstimated)+" for each fixed")
	}
	return strings.Join(parts, ", ")
}
