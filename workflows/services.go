package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
)

// listUnknown lists services that the workers' services file does not have, and adds an event about those that were not
// listed yet. sessionID names the conversation whose verdict has them; it is empty for the input.
func (c *chainRun) listUnknown(ctx workflow.Context, sessionID string, names []string) {
	chain := &c.log.chain
	var added []string
	for _, name := range names {
		if len(chain.UnknownServices) < escalation.MaxServices && !escalation.HasService(chain.UnknownServices, name) {
			chain.UnknownServices = append(chain.UnknownServices, name)
			added = append(added, fmt.Sprintf("%q", name))
		}
	}
	if len(added) == 0 {
		return
	}
	c.log.add(ctx, escalation.Event{
		Kind: escalation.EventUnknownService, Severity: escalation.SeverityWarning, SessionID: sessionID,
		Message: "CLAUDEOPS_SERVICES_FILE has no service of this name, so it counts as a service of its own: " + strings.Join(added, ", "),
	})
}
