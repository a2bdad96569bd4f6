package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// DurationList is a list of durations. In its text form, commas separate the durations.
type DurationList []time.Duration

// String formats d as text from which parseDurations returns d.
func (d DurationList) String() string {
	if len(d) == 0 {
		return noItems
	}
	items := make([]string, len(d))
	for i, duration := range d {
		items[i] = escalation.ShortDuration(duration)
	}
	return strings.Join(items, ",")
}

// PersonList is a list of people's names. In its text form, commas separate the names.
type PersonList []string

// String formats p as text from which parsePeople returns p.
func (p PersonList) String() string { return strings.Join(p, ",") }

// parseDurations parses a DurationList. The text of its error continues the phrase "it must ...".
func parseDurations(text string) (DurationList, error) {
	var list DurationList
	for item := range strings.SplitSeq(text, ",") {
		duration, err := time.ParseDuration(strings.TrimSpace(item))
		if err != nil || duration > maxDuration {
			return nil, fmt.Errorf("be durations with their units, separated by commas, such as 1h,6h, or be %s",
				noItems)
		}
		list = append(list, duration)
	}
	return list, nil
}

// parsePeople parses a PersonList. The text of its error continues the phrase "it must ...".
func parsePeople(text string) (PersonList, error) {
	var list PersonList
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		if err := escalation.CheckActor(item); err != nil {
			return nil, errors.New("be names of people, separated by commas, of at most 200 printable characters each")
		}
		list = append(list, item)
	}
	return list, nil
}

// validate records values that are out of range.
func (g Gate) validate(p *problems) {
	p.must("GATE_TIMEOUT", g.Timeout >= 0, "be 0s (no gates) or more")
	p.must("GATE_APPROVERS", !p.given("GATE_APPROVERS") || len(g.Approvers) > 0,
		"name at least one person; leave it unset if everybody may answer") // an empty list would let everybody answer
	before := time.Duration(0)
	for _, after := range g.Remind {
		p.must("GATE_REMIND", after > before, "list durations above zero that rise, and %s comes after %s",
			escalation.ShortDuration(after), escalation.ShortDuration(before))
		before = after
	}
	if g.Timeout > 0 && p.given("GATE_REMIND") {
		p.must("GATE_REMIND", before < g.Timeout,
			"list durations below %sGATE_TIMEOUT, which is %s", Prefix, escalation.ShortDuration(g.Timeout))
	}
}
