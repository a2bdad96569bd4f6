package review

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
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

var (
	headingPattern = regexp.MustCompile(`^ {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$`)
	phasePattern   = regexp.MustCompile(`(?i)^phase[ \t]+([0-9]+(?:\.[0-9]+)*)(?:[ \t]*[:.–—-][ \t]*|[ \t]+|$)(.*)$`)
	itemPattern    = regexp.MustCompile(`^[ \t]*[-*+][ \t]+\[([ xX])\][ \t]+(.+?)[ \t]*$`)
	tickPattern    = regexp.MustCompile(`^([ \t]*[-*+][ \t]+)\[[ xX]\]`)
	fencePattern   = regexp.MustCompile("^ {0,3}(`{3,}|~{3,})(.*)$")
)

// maxPhases limits the phases of a plan.
const maxPhases = 50

// ParsePlan reads a plan. A phase reaches to the next heading of its level or a higher one. Code blocks count as text.
func ParsePlan(text string) (Plan, error) {
	var plan Plan
	level, fence := 0, "" // level of the current phase's heading; 0 outside of a phase
	digest := sha256.New()
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		_, _ = fmt.Fprintln(digest, tickPattern.ReplaceAllString(line, "$1[ ]"))
		if match := fencePattern.FindStringSubmatch(line); match != nil {
			switch {
			case fence == "":
				fence = match[1]
			case strings.HasPrefix(match[1], fence) && strings.TrimSpace(match[2]) == "":
				fence = ""
			}
			continue
		}
		if fence != "" {
			continue
		}
		if match := headingPattern.FindStringSubmatch(line); match != nil {
			level = plan.heading(len(match[1]), match[2], level)
			continue
		}
		if match := itemPattern.FindStringSubmatch(line); match != nil && level > 0 {
			last := &plan.Phases[len(plan.Phases)-1]
			last.Items = append(last.Items, Item{Text: match[2], Done: match[1] != " "})
		}
	}
	plan.Digest = hex.EncodeToString(digest.Sum(nil))
	err := plan.check()
	return plan, err
}

// heading adds the phase that a heading begins. It returns the level of the phase that is current now; 0 if none is.
func (p *Plan) heading(level int, text string, current int) int {
	if phase := phasePattern.FindStringSubmatch(text); phase != nil {
		p.Phases = append(p.Phases, Phase{Number: phase[1], Title: strings.TrimSpace(phase[2])})
		return level
	}
	if p.Title == "" && level == 1 {
		p.Title = text
	}
	if level <= current {
		return 0
	}
	return current
}

// check returns the first defect of the plan.
func (p *Plan) check() error {
	if len(p.Phases) == 0 {
		return errors.New(`the plan has no phases: write headings such as "## Phase 1: what to do"`)
	}
	if len(p.Phases) > maxPhases {
		return fmt.Errorf("the plan has %d phases, and at most %d are allowed", len(p.Phases), maxPhases)
	}
	seen := map[string]bool{}
	for _, phase := range p.Phases {
		if seen[phase.Number] {
			return fmt.Errorf("the plan has phase %s twice", phase.Number)
		}
		seen[phase.Number] = true
	}
	return nil
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

// Lost lists what the plan had before an author's turn and lacks after it: phases, their order, and entries of checklists. An
// entry that was done and is open again counts as well. Nil means that nothing is lost.
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

// Ahead lists the entries of other phases that an author has ticked off in its turn at one phase: a later run would skip them.
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
				ahead = append(ahead, fmt.Sprintf("%q of phase %s was ticked off in phase %s", item.Text, before.Number, number))
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

// LostPhases lists the phases that the plan had before it was amended and lacks afterwards. Amending may change everything
// else.
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

// Choose returns the phases to carry out, in the order of the plan: those with the given numbers or, without numbers, all
// that are not done.
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
