package daily

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"charm.land/huh/v2"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/config/envfile"
	"github.com/claudeops/claudeops/workflows"
)

// permitted asks a person once, before the first chain that may repair, how far agents may go, and keeps the answer in
// the file of settings. It asks only on a terminal, and only while nobody has said so. It returns the input with the
// answer.
func (a *app) permitted(ctx context.Context, input workflows.ChainInput, yes bool) (workflows.ChainInput, error) {
	place, ok := a.Terminal()
	if !ok || yes || a.Operations.Server != "" || input.DryRun || input.MaxTier != 0 {
		return input, nil
	}
	cfg, err := config.Load(a.Environ)
	if err != nil || cfg.Chain.DryRun || cfg.SaysMaxTier() {
		return input, err
	}
	path, _ := envfile.Find(a.Environ)
	if path == "" {
		return input, nil // no home directory, and so no place for an answer
	}
	tier := escalation.TierObserve
	question := console.TierQuestion(&tier).
		Description("Nobody has said so yet. The answer is kept in the file of settings, claudeops.env.")
	if err := a.Ask(ctx, place, huh.NewGroup(question)); err != nil {
		if errors.Is(err, huh.ErrUserAborted) {
			return input, errors.New("nothing was chosen, and no chain has started")
		}
		return input, fmt.Errorf("ask how far agents may go: %w", err)
	}
	err = envfile.Append(path, []string{
		"# Highest tier that may run: 1 looks, 2 makes safe repairs, 3 makes all repairs.",
		"CLAUDEOPS_MAX_TIER=" + strconv.Itoa(int(tier)),
	})
	if err != nil {
		return input, fmt.Errorf("%w; no chain has started: set CLAUDEOPS_MAX_TIER, or say --max-tier", err)
	}
	a.Say("Kept in %s: workers and schedules follow it after their next start.", console.Printable(path, 200))
	input.MaxTier = tier
	return input, input.Validate()
}
