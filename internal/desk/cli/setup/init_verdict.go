package setup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
)

// dryRun looks once, and explains the verdict.
func (e *ending) dryRun(ctx context.Context) error {
	id := "init-" + e.Clock().UTC().Format("20060102-150405")
	failure := e.run(ctx, "run", "--wait", "--dry-run", "--id", id)
	if ctx.Err() != nil {
		return failure
	}
	records, err := supervisor.OpenExisting(ctx, e.cfg.State)
	if err != nil {
		return errors.Join(failure, err)
	}
	defer func() { _ = records.Close() }()
	sessions, err := records.Chain(ctx, id)
	if err != nil || len(sessions) == 0 {
		return errors.Join(failure, err)
	}
	e.Say("\nWhat that means:")
	for _, line := range e.explain(sessions) {
		for _, part := range console.Labelled("  ", console.Printable(line, 1_000), e.Width()) {
			e.Say("%s", part)
		}
	}
	if program.CodeOf(failure) == console.ExitNeedsPerson {
		return nil // a finding, and no failure of the set-up
	}
	return failure
}

// explain explains in sentences what a dry run has found, what would have followed, and what it has cost.
func (e *ending) explain(sessions []escalation.Session) []string {
	last := sessions[len(sessions)-1]
	cost := plaintext.Cost(escalation.TotalCostUSD(sessions), escalation.AnyEstimated(sessions))
	lines := e.finding(last)
	return append(lines, "The look cost "+cost+".")
}

// finding explains how a look ended.
func (e *ending) finding(look escalation.Session) []string {
	if look.Verdict == nil {
		return []string{
			"Tier 1 gave no verdict: " + look.Error,
			"Nothing would have been repaired. `claudeops doctor` checks what it needs.",
		}
	}
	summary := look.Verdict.Summary
	switch look.Verdict.Status {
	case escalation.VerdictHealthy:
		return []string{"Tier 1 found nothing wrong: " + summary, "No other tier would have started."}
	case escalation.VerdictEscalate:
		return []string{"Tier 1 found something to repair: " + summary, e.wouldFollow(*look.Verdict)}
	case escalation.VerdictNeedsHuman:
		return []string{"Tier 1 found something for a person: " + summary, "The chain would have asked you, at a gate."}
	case escalation.VerdictResolved, escalation.VerdictFailed:
	}
	return []string{"Tier 1 ended with the verdict " + string(look.Verdict.Status) + ": " + summary}
}

// wouldFollow says what would have followed a verdict that asks for a higher tier.
func (e *ending) wouldFollow(verdict escalation.Verdict) string {
	tier := max(verdict.RecommendedTier, escalation.TierSafeRepair)
	if tier > e.cfg.Chain.MaxTier {
		return fmt.Sprintf("It asks for Tier %d. Up to Tier %d may run, so the chain would have asked you, at a gate.",
			tier, e.cfg.Chain.MaxTier)
	}
	if tier == escalation.TierFullRepair {
		return "Tier 3 would have repaired it, with any program that the policy does not deny."
	}
	services := "services"
	if len(verdict.Services) > 0 {
		services = strings.Join(verdict.Services, ", ")
	}
	text := fmt.Sprintf("Tier 2 would have been allowed to restart %s, for at most %s",
		services, plaintext.Dollars(e.cfg.Tiers.Tier2.BudgetUSD))
	if limit := e.cfg.Limits.Restarts; limit.Max > 0 {
		text += fmt.Sprintf(", and each service at most %d times in %s", limit.Max,
			escalation.ShortDuration(limit.Window.Std()))
	}
	return text + "."
}
