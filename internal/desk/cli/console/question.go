package console

import (
	"context"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Ask asks the questions of groups on a terminal, one group after the other. If the person leaves with Ctrl-C, the
// error is huh.ErrUserAborted.
func (c *Console) Ask(ctx context.Context, place Terminal, groups ...*huh.Group) error {
	noticeBack := tea.WithFilter(func(_ tea.Model, msg tea.Msg) tea.Msg {
		if key, pressed := msg.(tea.KeyPressMsg); pressed {
			c.goesBack = key.String() == "shift+tab"
		}
		return msg
	})
	return huh.NewForm(groups...).WithTheme(huh.ThemeFunc(huh.ThemeBase16)).
		WithProgramOptions(append(place.Options(ctx, c.Environ), noticeBack)...).RunWithContext(ctx)
}

// Valid returns the check for an answer to Ask. It lets a person go back from an answer that is not valid: huh would
// stay, and no field would have the focus. On the way forward the answer is checked again.
func (c *Console) Valid(check func(string) error) func(string) error {
	return func(text string) error {
		if c.goesBack {
			return nil
		}
		return check(text)
	}
}

// TierQuestion asks which is the highest tier that may run.
func TierQuestion(tier *escalation.Tier) *huh.Select[escalation.Tier] {
	return huh.NewSelect[escalation.Tier]().Value(tier).
		Title("How far may agents go on this machine?").
		Options(
			huh.NewOption("Look only: Tier 1 changes nothing, and tells you what is wrong", escalation.TierObserve),
			huh.NewOption("Up to Tier 2: restart services, propose changes on a branch", escalation.TierSafeRepair),
			huh.NewOption("Up to Tier 3: run any program that the policy does not deny; no sandbox",
				escalation.TierFullRepair),
		)
}
