package parts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/calendar"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// The search attributes of chains.
var (
	TierAttribute     = temporal.NewSearchAttributeKeyInt64("ClaudeOpsTier")
	OutcomeAttribute  = temporal.NewSearchAttributeKeyKeyword("ClaudeOpsOutcome")
	GateAttribute     = temporal.NewSearchAttributeKeyKeyword("ClaudeOpsGate")
	ServicesAttribute = temporal.NewSearchAttributeKeyKeywordList("ClaudeOpsServices")
	CostAttribute     = temporal.NewSearchAttributeKeyFloat64("ClaudeOpsCostUSD")
	IncidentAttribute = temporal.NewSearchAttributeKeyKeywordList("ClaudeOpsIncident")
	TriggerAttribute  = temporal.NewSearchAttributeKeyKeyword("ClaudeOpsTrigger")
)

// SearchAttributes lists every search attribute that a namespace must know.
func SearchAttributes() []temporal.SearchAttributeKey {
	return []temporal.SearchAttributeKey{
		TierAttribute, OutcomeAttribute, GateAttribute, ServicesAttribute, CostAttribute, TriggerAttribute,
		IncidentAttribute,
	}
}

// ChainQuery is the query that returns the whole chain as JSON.
const ChainQuery = "chain"

// view holds the state of a running workflow that people see in queries, search attributes and the current details of
// the Web UI.
type view struct {
	Chain escalation.Chain
	// policy is the chain's policy. Its list of tiers is empty until the policy is loaded.
	policy *escalation.Policy
	// describe returns the details for the Web UI; nil for those of a chain.
	Describe func(escalation.Chain) string
	// published maps the name of a search attribute to the value that this run published last.
	published map[string]string
}

func newView(chain escalation.Chain, policy *escalation.Policy) *view {
	return &view{Chain: chain, policy: policy, published: make(map[string]string)}
}

// Query answers ChainQuery.
func (v *view) Query() (escalation.Chain, error) { return v.Chain, nil }

// Show updates the current details in the Web UI. Temporal keeps the details for one run, so a new run begins without
// details.
func (v *view) Show(ctx workflow.Context) {
	if v.Describe != nil {
		workflow.SetCurrentDetails(ctx, v.Describe(v.Chain))
		return
	}
	shown := details(v.Chain)
	if gate := v.Chain.OpenGate(); gate != nil {
		shown += gateDetails(*gate, v.Chain.ID, workflow.Now(ctx).UTC())
	}
	workflow.SetCurrentDetails(ctx, shown)
}

// Publish updates the current details, and the search attributes that have changed.
func (v *view) Publish(ctx workflow.Context) error {
	v.Show(ctx)
	var updates []temporal.SearchAttributeUpdate
	set := func(name string, value any, update temporal.SearchAttributeUpdate) {
		if text := fmt.Sprintf("%#v", value); v.published[name] != text {
			v.published[name] = text
			updates = append(updates, update)
		}
	}
	trigger, tier, cost := string(v.Chain.Trigger), int64(v.Chain.Tier()), v.Chain.CostWithIssuesUSD()
	set(TriggerAttribute.GetName(), trigger, TriggerAttribute.ValueSet(trigger))
	set(TierAttribute.GetName(), tier, TierAttribute.ValueSet(tier))
	set(CostAttribute.GetName(), cost, CostAttribute.ValueSet(cost))
	if services := listed(v.Chain.AllServices()); len(services) > 0 && v.mayNameServices() {
		set(ServicesAttribute.GetName(), services, ServicesAttribute.ValueSet(services))
	}
	if incidents := incidentIDs(v.Chain); len(incidents) > 0 {
		set(IncidentAttribute.GetName(), incidents, IncidentAttribute.ValueSet(incidents))
	}
	if len(v.Chain.Gates) > 0 {
		gate := gateClosed
		if v.Chain.OpenGate() != nil {
			gate = GateOpen
		}
		set(GateAttribute.GetName(), gate, GateAttribute.ValueSet(gate))
	}
	if outcome := string(v.Chain.Outcome); outcome != "" {
		set(OutcomeAttribute.GetName(), outcome, OutcomeAttribute.ValueSet(outcome))
	}
	if len(updates) == 0 {
		return nil
	}
	return workflow.UpsertTypedSearchAttributes(ctx, updates...)
}

// mayNameServices reports whether search attributes may contain the names of services. Temporal stores search
// attributes in clear.
func (v *view) mayNameServices() bool { return len(v.policy.Tiers) > 0 && !v.policy.Encrypted }

// incidentIDs returns the IDs of the incidents in the chain's visible state, as many as fit into a search attribute.
func incidentIDs(chain escalation.Chain) []string {
	var ids []string
	for _, incident := range chain.Incidents {
		ids = append(ids, incident.ID)
	}
	return listed(ids)
}

// maxListedBytes limits the services in one search attribute, in bytes of JSON. Temporal's limit is 2 KB. If a
// workflow exceeds Temporal's limit, the server ends the workflow.
const maxListedBytes = 1_900

// listed returns the first services of the list, as many as fit into a search attribute.
func listed(services []string) []string {
	size := len("[]")
	for i, service := range services {
		encoded, err := json.Marshal(service)
		if size += len(encoded) + len(","); err != nil || size > maxListedBytes {
			return services[:i]
		}
	}
	return services
}

// details returns the chain as a table for the Web UI, which renders Markdown.
func details(chain escalation.Chain) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**", Inline(headline(chain)))
	if len(chain.Services) > 0 {
		fmt.Fprintf(&b, " — %s", Inline(strings.Join(chain.Services, ", ")))
	}
	b.WriteString("\n\n| Session | Tier | Model | Context | Status | Cost | Duration " +
		"|\n|---|---|---|---|---|---|---|\n")
	for i := range chain.Sessions {
		s := &chain.Sessions[i]
		fmt.Fprintf(&b, "| #%d | %d | %s | %s | %s | %s | %s |\n", s.ID, s.Tier, s.Model, contextOf(*s),
			escalation.InWords(s.Status), s.CostText(), roundedDuration(s.DurationMS))
	}
	if earlier := chain.Earlier; earlier.Sessions > 0 {
		fmt.Fprintf(&b, "\n… %s, %s: see the records\n", plaintext.Count(earlier.Sessions, "earlier session"),
			earlier.CostText())
	}
	fmt.Fprintf(&b, "\nTotal: %s\n", chain.CostWithIssuesText())
	if chain.Wait != nil {
		fmt.Fprintf(&b, "\nWaiting until %s: %s\n", calendar.Clock(chain.Wait.Until, time.Time{}),
			Inline(chain.Wait.Reason))
	}
	for _, done := range chain.Reviews {
		fmt.Fprintf(&b, "- review of %s: %s\n", Inline(done.Branch), Inline(done.Describe()))
	}
	if totals := chain.Reviewed.Describe(); totals != "" {
		fmt.Fprintf(&b, "- reviews: %s\n", totals)
	}
	for _, incident := range chain.Incidents {
		fmt.Fprintf(&b, "- %s\n", Inline(describeIncident(incident)))
	}
	for _, issue := range chain.Issues {
		fmt.Fprintf(&b, "- issue %s (%s): %s, %s\n", Inline(issue.Summary), Inline(strings.Join(issue.Services, ", ")),
			cmp.Or(escalation.InWords(issue.Outcome), "running"), issue.CostText())
	}
	return b.String()
}

// describeIncident describes an incident of a chain in one line.
func describeIncident(incident escalation.ChainIncident) string {
	text := incident.ID
	if incident.Summary != "" {
		text += fmt.Sprintf(" (%s): %s", escalation.DescribeServices(incident.Services, incident.Kind),
			incident.Summary)
	}
	if incident.Handler != "" {
		text += " — known to chain " + incident.Handler
	}
	return text
}

// Inline returns text as one plain line of Markdown. An attacker could have written the text, for example as the name
// of a service.
func Inline(text string) string { return plaintext.ForMarkdown(Clip(plaintext.Compact(text))) }

func headline(chain escalation.Chain) string {
	switch {
	case chain.Outcome != "" && chain.Reason != "":
		return fmt.Sprintf("%s: %s", escalation.InWords(chain.Outcome), chain.Reason)
	case chain.Reason != "":
		return chain.Reason
	default:
		return "running"
	}
}

func roundedDuration(milliseconds int64) time.Duration {
	return (time.Duration(milliseconds) * time.Millisecond).Round(100 * time.Millisecond)
}

const (
	// maxMessage limits an event's message, in characters. The session's record keeps the agent's full text.
	maxMessage = 500
	// maxGateMessage limits the messages for the opening and the closing of a gate, in characters. The limit is higher
	// than maxMessage, because only these messages record a person's text.
	maxGateMessage = escalation.MaxGuidance + 1_000
)

func longestMessage(kind escalation.EventKind) int {
	if kind == escalation.EventGateOpened || kind == escalation.EventGateClosed {
		return maxGateMessage
	}
	return maxMessage
}

// Clip shortens text to maxMessage characters.
func Clip(text string) string { return plaintext.Cut(text, maxMessage) }

func summarize(session escalation.Session) string {
	return fmt.Sprintf("%s, %s, %s", session.Tier, session.Model, contextOf(session))
}

// contextOf describes how a session gets its context. If the session's purpose is not the ordinary work of its tier,
// contextOf adds the purpose.
func contextOf(session escalation.Session) string {
	if session.Purpose == escalation.PurposeTier {
		return string(session.Continuity)
	}
	return fmt.Sprintf("%s, %s", session.Purpose, session.Continuity)
}

// DescribeStart describes the beginning of a chain.
func DescribeStart(chain escalation.Chain) string {
	text := fmt.Sprintf("chain started (%s), highest tier %d", chain.Trigger, chain.MaxTier)
	if chain.DryRun {
		text += ", dry run"
	}
	return text
}

func describeSession(session escalation.Session, request SessionRequest) string {
	if request.Continues {
		return fmt.Sprintf("%s goes on with session #%d, in a copy of its conversation, on %s (%s)",
			session.Tier, request.Origin.ID, session.Model, escalation.InWords(session.ContinuityReason))
	}
	return fmt.Sprintf("%s starts on %s, context: %s (%s)", session.Tier, session.Model, contextOf(session),
		escalation.InWords(session.ContinuityReason))
}

func describeEnd(session escalation.Session) string {
	text := fmt.Sprintf("%s ended after %s for %s", session.Tier, plaintext.Count(session.Turns, "turn"),
		session.CostText())
	if session.Status != escalation.SessionCompleted {
		text += ", " + escalation.InWords(session.Status)
	}
	if session.Verdict != nil {
		text += fmt.Sprintf(", %s: %s", escalation.InWords(session.Verdict.Status), session.Verdict.Summary)
	}
	if session.Error != "" {
		text += ": " + session.Error
	}
	return text
}

func describeDecision(decision escalation.Decision) string {
	action := string(decision.Action)
	if decision.Action == escalation.DecisionComplete {
		action = "end"
	}
	return fmt.Sprintf("%s (%s): %s", action, escalation.InWords(decision.Rule), decision.Reason)
}

// DescribeOutcome describes the end of a chain.
func DescribeOutcome(chain escalation.Chain) string {
	sessions := chain.Earlier.Sessions + len(chain.Sessions)
	text := fmt.Sprintf("chain ended after %s for %s: %s", plaintext.Count(sessions, "session"), chain.CostText(),
		escalation.InWords(chain.Outcome))
	if plan := chain.Plan; plan != nil && plan.Commit != "" && plan.Pushed == "" {
		text += fmt.Sprintf("; %s is approved on %s, and not pushed", plaintext.Cut(plan.Commit, 12), plan.Branch)
	}
	return text
}
