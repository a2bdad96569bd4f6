package prompts

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

const (
	// maxKnown and maxKnownBytes limit the description of services in a prompt, because each session pays for this
	// text. The prompt describes the affected services before all others.
	maxKnown      = 40
	maxKnownBytes = 8_000
	// maxKnownText limits one text about a service, in characters.
	maxKnownText = 300
)

// know sets the descriptions of services in the view, in the given order. If the descriptions exceed maxKnown or
// maxKnownBytes, know only counts the remaining services.
func (v *view) know(services []escalation.Service) {
	v.Known, v.Unlisted = nil, 0
	size := 0
	for i, service := range services {
		line := describeService(service)
		size += len(line)
		if i == maxKnown || size > maxKnownBytes {
			v.Unlisted = len(services) - i
			return
		}
		v.Known = append(v.Known, line)
	}
}

// describeService describes a service on one line.
func describeService(service escalation.Service) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s", quote(service.Name), service.Criticality)
	if len(service.Aliases) > 0 {
		fmt.Fprintf(&b, "; also called %s", quoteAll(service.Aliases))
	}
	b.WriteString(")")
	if len(service.DependsOn) > 0 {
		fmt.Fprintf(&b, " depends on %s", quoteAll(service.DependsOn))
	}
	for _, part := range []struct{ label, text string }{
		{"look", service.Look}, {"runbook", service.Runbook}, {"owner", service.Owner},
	} {
		if text := plaintext.Compact(part.text); text != "" {
			fmt.Fprintf(&b, "; %s: %s", part.label, plaintext.Cut(text, maxKnownText))
		}
	}
	return b.String()
}

// quoteAll quotes the first names of a list and joins them.
func quoteAll(names []string) string {
	const most = 10
	quoted := make([]string, 0, most)
	for _, name := range names[:min(len(names), most)] {
		quoted = append(quoted, quote(name))
	}
	if len(names) > most {
		quoted = append(quoted, fmt.Sprintf("%d more", len(names)-most))
	}
	return strings.Join(quoted, ", ")
}
