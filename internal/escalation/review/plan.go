package review

import (
	"errors"
	"fmt"
	"slices"
)

// Plan is a plan in Markdown: phases with checklists.
type Plan struct {
	Title  string  `json:"title,omitempty"`
	Phases []Phase `json:"phases"`
	// Digest is a hash of the whole text, in which it does not matter what is ticked off.
	Digest string `json:"digest,omitempty"`
}

// Phase is one phase of a plan. Its heading begins with the word Phase and a number, such as "## Phase 2: Ports".
type Phase struct {
	Number string `json:"number"` // such as 2 or 2.1
	Title  string `json:"title,omitempty"`
	Items  []Item `json:"items,omitempty"`
}

// Item is one entry of a checklist.
type Item struct {
	Text string `json:"text"`
	Done bool   `json:"done,omitempty"`
}

// Done reports whether the phase has a checklist, and all of it is done.
func (p Phase) Done() bool {
	return len(p.Items) > 0 && !slices.ContainsFunc(p.Items, func(item Item) bool { return !item.Done })
}

// Phase returns the phase with a number; nil if the plan has no such phase.
func (p *Plan) Phase(number string) *Phase {
	for i := range p.Phases {
		if p.Phases[i].Number == number {
			return &p.Phases[i]
		}
	}
	return nil
}

// Lost lists what the plan had before an author's turn and lacks after it: phases, their order, and entries of
// checklists. An entry that was done and is open again counts as well. Nil means that nothing is lost.
func (p *Plan) Lost(after Plan) []string {
	var lost []string
	last := -1
	for _, before := range p.Phases {
		at := slices.IndexFunc(after.Phases, func(phase Phase) bool { return phase.Number == before.Number })
		if at < 0 {
			lost = append(lost, fmt.Sprintf("phase %s (%s) was removed", before.Number, before.Title))
			continue
		}
		if at < last {
			lost = append(lost, fmt.Sprintf("phase %s was moved", before.Number))
		}
		last = max(last, at)
		lost = append(lost, before.lost(after.Phases[at])...)
	}
	return lost
}

// Ahead lists the entries of other phases that an author has ticked off in its turn at one phase: a later run would
// skip them.
func (p *Plan) Ahead(after Plan, number string) []string {
	var ahead []string
	for _, before := range p.Phases {
		now := after.Phase(before.Number)
		if now == nil || before.Number == number {
			continue
		}
		for _, item := range now.Items {
			open := func(other Item) bool { return other.Text == item.Text && !other.Done }
			if item.Done && slices.ContainsFunc(before.Items, open) && !slices.ContainsFunc(now.Items, open) {
				ahead = append(ahead, fmt.Sprintf("%q of phase %s was ticked off in phase %s", item.Text,
					before.Number, number))
			}
		}
	}
	return ahead
}

// lost lists what a phase lacks afterwards.
func (p Phase) lost(after Phase) []string {
	var lost []string
	if p.Title != after.Title {
		lost = append(lost, fmt.Sprintf("phase %s is now called %q", p.Number, after.Title))
	}
	rest := slices.Clone(after.Items) // an entry may stand there several times
	for _, item := range p.Items {
		at := slices.IndexFunc(rest, func(other Item) bool { return other.Text == item.Text })
		if at < 0 {
			lost = append(lost, fmt.Sprintf("%q of phase %s was removed", item.Text, p.Number))
			continue
		}
		if item.Done && !rest[at].Done {
			lost = append(lost, fmt.Sprintf("%q of phase %s was done, and is open again", item.Text, p.Number))
		}
		rest = slices.Delete(rest, at, at+1)
	}
	return lost
}

// LostPhases lists the phases that the plan had before it was amended and lacks afterwards. Amending may change
// everything else.
func (p *Plan) LostPhases(after Plan) []string {
	var lost []string
	for _, before := range p.Phases {
		if after.Phase(before.Number) == nil {
			lost = append(lost, fmt.Sprintf("phase %s (%s) was removed", before.Number, before.Title))
		}
	}
	return lost
}

// Open lists the entries of the phase's checklist that are not done.
func (p Phase) Open() []string {
	var open []string
	for _, item := range p.Items {
		if !item.Done {
			open = append(open, item.Text)
		}
	}
	return open
}

// Choose returns the phases to carry out, in the order of the plan: those with the given numbers or, without numbers,
// all that are not done.
func (p *Plan) Choose(numbers []string) ([]Phase, error) {
	for _, number := range numbers {
		if p.Phase(number) == nil {
			return nil, fmt.Errorf("the plan has no phase %s", number)
		}
	}
	var chosen []Phase
	for _, phase := range p.Phases {
		if slices.Contains(numbers, phase.Number) || len(numbers) == 0 && !phase.Done() {
			chosen = append(chosen, phase)
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("all phases of the plan are done")
	}
	return chosen, nil
}
