package console

import (
	"context"

	"charm.land/huh/v2"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Ask asks the questions of groups on a terminal, one group after the other. If the person leaves with Ctrl-C, the error is
// huh.ErrUserAborted.
func (c *Console) Ask(ctx context.Context, place Terminal, groups ...*huh.Group) error {
	return huh.NewForm(groups...).WithTheme(huh.ThemeFunc(huh.ThemeBase16)).
		WithProgramOptions(place.Options(ctx, c.Environ)...).RunWithContext(ctx)
}

// TierQuestion asks which is the highest tier that may run.
func TierQuestion(tier *escalation.Tier) *huh.Select[escalation.Tier] {
	return huh.NewSelect[escalation.Tier]().Value(tier).
		Title("How far may agents go on this machine?").
		Options(
			huh.NewOption("Look only: Tier 1 changes nothing, and asks you", escalation.TierObserve),
			huh.NewOption("Up to Tier 2: restart services, propose changes on a branch", escalation.TierSafeRepair),
			huh.NewOption("Up to Tier 3: run any program that the policy does not deny; no sandbox", escalation.TierFullRepair),
		)
}
