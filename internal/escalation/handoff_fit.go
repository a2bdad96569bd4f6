package escalation

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxHandoffChars limits the Markdown of a handoff, because every turn of the receiving tier reads this text again.
const MaxHandoffChars = 50_000

const (
	longestText  = 16_000 // limit of the first try; three such texts fit
	shortestText = 250    // limit of the last try
	longestList  = 64
)

// Fit returns h, shortened so that its Markdown has at most MaxHandoffChars. The result dropped is a sentence that
// names the dropped parts; "" if no part was dropped. Fit drops healthy checks first, then the ends of texts, then the
// ends of lists.
func (h Handoff) Fit() (fitted Handoff, dropped string) {
	if h.fits() {
		return h, ""
	}
	fitted = h
	fitted.Checks = slices.DeleteFunc(slices.Clone(h.Checks),
		func(c CheckResult) bool { return c.Status == CheckHealthy })
	var parts []string
	if healthy := len(h.Checks) - len(fitted.Checks); healthy > 0 {
		parts = append(parts, fmt.Sprintf("%d healthy checks", healthy))
	}
	shorten := func(what string, longest, shortest int, apply func(Handoff, int) Handoff) {
		if fitted.fits() {
			return
		}
		for fitted = apply(fitted, longest); !fitted.fits() && longest > shortest; fitted = apply(fitted, longest) {
			longest /= 2
		}
		parts = append(parts, fmt.Sprintf(what, longest))
	}
	shorten("what its texts hold beyond %d characters each", longestText, shortestText, Handoff.withTexts)
	shorten("what its lists hold beyond %d entries each", longestList, 1, Handoff.withLists)
	return fitted, fmt.Sprintf("the handoff from %s is longer than %d characters; it was passed on without %s",
		h.FromTier, MaxHandoffChars, strings.Join(parts, ", "))
}

func (h Handoff) fits() bool { return utf8.RuneCountInString(h.Markdown()) <= MaxHandoffChars }

// withTexts returns h with every text cut to at most longest characters.
func (h Handoff) withTexts(longest int) Handoff {
	h.Summary, h.Findings, h.Remediation = cut(h.Summary, longest), cut(h.Findings, longest),
		cut(h.Remediation, longest)
	h.Checks, h.Actions = slices.Clone(h.Checks), slices.Clone(h.Actions)
	for i := range h.Checks {
		h.Checks[i].Error = cut(h.Checks[i].Error, longest)
	}
	for i := range h.Actions {
		h.Actions[i].Detail = cut(h.Actions[i].Detail, longest)
	}
	return h
}

// withLists returns h with every list cut to at most longest entries. It keeps only the cooldowns of the remaining
// services.
func (h Handoff) withLists(longest int) Handoff {
	h.Services = h.Services[:min(len(h.Services), longest)]
	h.Checks = h.Checks[:min(len(h.Checks), longest)]
	h.Actions = h.Actions[:min(len(h.Actions), longest)]
	services := map[string]ServiceUse{}
	for _, service := range h.Services {
		if use, known := h.Cooldowns.Services[service]; known {
			services[service] = use
		}
	}
	h.Cooldowns = CooldownState{Services: services}
	return h
}

// cut truncates text to at most limit characters, and marks the place of the cut.
func cut(text string, limit int) string {
	const mark = " […]"
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-utf8.RuneCountInString(mark)]) + mark
}
