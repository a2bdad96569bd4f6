package memory

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// Markdown writes memories as a document for people, by service.
func Markdown(memories []Memory) string {
	sorted := slices.Clone(memories)
	slices.SortStableFunc(sorted, func(a, b Memory) int {
		return strings.Compare(escalation.ServiceKey(a.Service), escalation.ServiceKey(b.Service))
	})
	var b strings.Builder
	b.WriteString("# Memories\n")
	for i := range sorted {
		one := &sorted[i]
		if i == 0 || !escalation.SameService(one.Service, sorted[i-1].Service) {
			service := "All services"
			if one.Service != "" {
				service = plaintext.ForMarkdown(one.Service)
			}
			fmt.Fprintf(&b, "\n## %s\n\n", service)
		}
		fmt.Fprintf(&b, "- **%s**, %s: %s (%s, %s)\n", plaintext.ForMarkdown(one.Subject), one.Kind,
			plaintext.ForMarkdown(one.Text),
			one.ID, one.Origin())
	}
	return b.String()
}
