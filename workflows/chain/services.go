package chain

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
)

// listUnknown adds names to the chain's list of services that the workers' services file lacks. It also adds an event
// about the new entries of the list. The argument sessionID is the session whose verdict names the services; empty
// for services in the input.
func (c *chainRun) listUnknown(ctx workflow.Context, sessionID string, names []string) {
	chain := &c.Log.Chain
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
	c.Log.Add(ctx, escalation.Event{
		Kind: escalation.EventUnknownService, Severity: escalation.SeverityWarning, SessionID: sessionID,
		Message: "CLAUDEOPS_SERVICES_FILE has no service of this name, so it counts as a service of its own: " +
			strings.Join(added, ", "),
	})
}
