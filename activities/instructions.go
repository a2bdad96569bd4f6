package activities

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/prompts"
)

// maxInstructions limits the instructions in a prompt, in characters, because each session pays for them.
const maxInstructions = 24_000

// instructions returns what the operator has written about the chain's services: for a look the look files and the
// headings of the runbooks, for a repair the runbooks. A chain without services gets those of all services. The files
// are read anew for each session, so that a change counts without a restart.
func (t *Tiers) instructions(input RunTierInput) []prompts.Instruction {
	if t.Catalog == nil || t.ReadFile == nil {
		return nil
	}
	names := t.Catalog.CanonicalAll(slices.Concat(input.Affected, input.Services))
	looks := input.Tier == escalation.TierObserve || input.Recheck || input.Policy.DryRun
	var found []prompts.Instruction
	size, leftOut := 0, 0
	add := func(service, kind, path string, shorten func(string) string) {
		if path == "" {
			return
		}
		text, err := t.ReadFile(path)
		if err != nil {
			text = fmt.Sprintf("(This file cannot be read now: %v. Say so in your verdict.)", err)
		}
		if text = strings.TrimSpace(shorten(text)); text == "" {
			return
		}
		length := utf8.RuneCountInString(text)
		if size+length > maxInstructions {
			leftOut++
			return
		}
		size += length
		found = append(found, prompts.Instruction{Service: service, Kind: kind, Text: text})
	}
	for _, service := range t.Catalog.ByRelevance(names) {
		if len(names) > 0 && !slices.Contains(names, service.Name) {
			continue
		}
		if looks {
			add(service.Name, "how to look", service.LookFile, strings.TrimSpace)
			add(service.Name, "headings of the runbook, which agents that repair get", service.RunbookFile, headings)
		} else {
			add(service.Name, "runbook", service.RunbookFile, strings.TrimSpace)
		}
	}
	if leftOut > 0 {
		found = append(found, prompts.Instruction{Text: fmt.Sprintf("(%d more files are left out.)", leftOut)})
	}
	return found
}

// headings returns the headings of a text in Markdown.
func headings(text string) string {
	var found []string
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if !fenced && strings.HasPrefix(line, "#") {
			found = append(found, strings.TrimRight(line, "\r\n"))
		}
	}
	return strings.Join(found, "\n")
}
