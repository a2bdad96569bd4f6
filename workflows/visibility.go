package workflows

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
)

// The search attributes by which chains are listed.
var (
	TierAttribute     = temporal.NewSearchAttributeKeyInt64("ClaudeOpsTier")
	OutcomeAttribute  = temporal.NewSearchAttributeKeyKeyword("ClaudeOpsOutcome")
	GateAttribute     = temporal.NewSearchAttributeKeyKeyword("ClaudeOpsGate")
	ServicesAttribute = temporal.NewSearchAttributeKeyKeywordList("ClaudeOpsServices")
	CostAttribute     = temporal.NewSearchAttributeKeyFloat64("ClaudeOpsCostUSD")
	TriggerAttribute  = temporal.NewSearchAttributeKeyKeyword("ClaudeOpsTrigger")
)

// SearchAttributes lists every search attribute that a namespace must know.
func SearchAttributes() []temporal.SearchAttributeKey {
	return []temporal.SearchAttributeKey{
		TierAttribute, OutcomeAttribute, GateAttribute, ServicesAttribute, CostAttribute, TriggerAttribute,
	}
}

// show brings the current details up to date with the state. They are the memory of a run alone: a
// new one begins without any.
func (c *chainRun) show(ctx workflow.Context) {
	shown := details(c.state)
	if gate := c.state.OpenGate(); gate != nil {
		shown += gateDetails(*gate, c.state.ID)
	}
	workflow.SetCurrentDetails(ctx, shown)
}

// publish brings the search attributes and the current details up to date with the state.
func (c *chainRun) publish(ctx workflow.Context) error {
	c.show(ctx)
	gate := c.state.OpenGate()
	updates := []temporal.SearchAttributeUpdate{
		TriggerAttribute.ValueSet(string(c.state.Trigger)),
		TierAttribute.ValueSet(int64(c.state.Tier())),
		CostAttribute.ValueSet(c.state.CostWithIssuesUSD()),
	}
	if services := listed(c.state.AllServices()); len(services) > 0 {
		updates = append(updates, ServicesAttribute.ValueSet(services))
	}
	switch {
	case gate != nil:
		updates = append(updates, GateAttribute.ValueSet(gateOpen))
	case len(c.state.Gates) > 0:
		updates = append(updates, GateAttribute.ValueSet(gateClosed))
	}
	if c.state.Outcome != "" {
		updates = append(updates, OutcomeAttribute.ValueSet(string(c.state.Outcome)))
	}
	return workflow.UpsertTypedSearchAttributes(ctx, updates...)
}

// maxListedBytes keeps the services below Temporal's limit for the value of one search
// attribute, which is 2 KB as JSON. Beyond it the server ends the workflow.
const maxListedBytes = 1_900

// listed returns the first services, as many as fit into a search attribute.
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

// note adds an event to the visible state and to what the next record takes along. It
// fills in the key, the chain, the time and, if none is given, the severity. What is said at a gate is
// recorded in full; the state, which is handed from run to run, keeps its beginning.
func (c *chainRun) note(ctx workflow.Context, event escalation.Event) {
	// The run's id is in the key because a reset runs a part of the chain again: its
	// events are new ones.
	event.Key = fmt.Sprintf("%s/%d", workflow.GetInfo(ctx).WorkflowExecution.RunID, len(c.state.Events)+1)
	event.ChainID = c.state.ID
	event.Message = clipTo(event.Message, longestMessage(event.Kind))
	event.At = workflow.Now(ctx)
	if event.Severity == "" {
		event.Severity = escalation.SeverityInfo
	}
	c.unrecorded = append(c.unrecorded, event)
	event.Message = clip(event.Message)
	c.state.Events = append(c.state.Events, event)
	workflow.GetLogger(ctx).Info(event.Message, "kind", event.Kind, "session_id", event.SessionID)
}

// takeEvents returns the events that are not recorded yet and forgets them.
func (c *chainRun) takeEvents() []escalation.Event {
	events := c.unrecorded
	c.unrecorded = nil
	return events
}

// details is the chain as a table, for the Web UI, which renders Markdown.
func details(chain escalation.Chain) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**", inline(headline(chain)))
	if len(chain.Services) > 0 {
		fmt.Fprintf(&b, " — %s", inline(strings.Join(chain.Services, ", ")))
	}
	b.WriteString("\n\n| Session | Tier | Model | Context | Status | Cost | Duration |\n|---|---|---|---|---|---|---|\n")
	for i := range chain.Sessions {
		s := &chain.Sessions[i]
		fmt.Fprintf(&b, "| #%d | %d | %s | %s | %s | $%.2f | %s |\n", s.ID, s.Tier, s.Model, contextOf(*s),
			s.Status, s.CostUSD, roundedDuration(s.DurationMS))
	}
	if earlier := chain.Earlier; earlier.Sessions > 0 {
		fmt.Fprintf(&b, "\n… %d earlier sessions, $%.2f: see the records\n", earlier.Sessions, earlier.CostUSD)
	}
	fmt.Fprintf(&b, "\nTotal: $%.2f\n", chain.CostWithIssuesUSD())
	if chain.Wait != nil {
		fmt.Fprintf(&b, "\nWaiting until %s: %s\n", chain.Wait.Until.UTC().Format(time.RFC3339), inline(chain.Wait.Reason))
	}
	for _, issue := range chain.Issues {
		fmt.Fprintf(&b, "- issue %s (%s): %s, $%.2f\n", inline(issue.Summary), inline(strings.Join(issue.Services, ", ")),
			cmp.Or(string(issue.Outcome), "running"), issue.CostUSD)
	}
	return b.String()
}

// markdown escapes what Markdown would obey. Agents' words and services' names are shown to
// people, and may have been written by someone else.
var markdown = strings.NewReplacer("\\", "\\\\", "`", "\\`", "*", "\\*", "[", "\\[", "]", "\\]",
	"<", "&lt;", ">", "&gt;", "|", "\\|", "!", "\\!", "#", "\\#")

// inline makes text one plain line of Markdown.
func inline(text string) string {
	return markdown.Replace(clip(strings.Join(strings.Fields(text), " ")))
}

func headline(chain escalation.Chain) string {
	switch {
	case chain.Outcome != "" && chain.Reason != "":
		return fmt.Sprintf("%s: %s", chain.Outcome, chain.Reason)
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
	// maxMessage is the length of an event's message in characters. An agent's own words are in
	// it; in full they are in the session's record.
	maxMessage = 500
	// maxGateMessage is the same for the opening and the closing of a gate: what a person has said
	// is recorded nowhere else.
	maxGateMessage = escalation.MaxGuidance + 1_000
)

func longestMessage(kind escalation.EventKind) int {
	if kind == escalation.EventGateOpened || kind == escalation.EventGateClosed {
		return maxGateMessage
	}
	return maxMessage
}

// clip cuts text that is too long for a message.
func clip(text string) string { return clipTo(text, maxMessage) }

// clipTo returns at most that many characters of text, the last of them a mark if that is not all.
func clipTo(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

func summarize(session escalation.Session) string {
	return fmt.Sprintf("%s, %s, %s", session.Tier, session.Model, contextOf(session))
}

// contextOf says what a session is for, if that is not its tier's work, and where its context is from.
func contextOf(session escalation.Session) string {
	if session.Purpose == escalation.PurposeTier {
		return string(session.Continuity)
	}
	return fmt.Sprintf("%s, %s", session.Purpose, session.Continuity)
}

func describeStart(chain escalation.Chain) string {
	text := fmt.Sprintf("chain started (%s), highest tier %d", chain.Trigger, chain.MaxTier)
	if chain.DryRun {
		text += ", dry run"
	}
	return text
}

func describeSession(session escalation.Session, continues *escalation.Session) string {
	if continues != nil {
		return fmt.Sprintf("%s goes on with session %s, in a copy of its conversation, on %s (%s)",
			session.Tier, continues.SessionID, session.Model, session.ContinuityReason)
	}
	return fmt.Sprintf("%s starts on %s, context: %s (%s)", session.Tier, session.Model, contextOf(session), session.ContinuityReason)
}

func describeEnd(session escalation.Session) string {
	text := fmt.Sprintf("%s ended %s after %d turns for $%.4f", session.Tier, session.Status, session.Turns, session.CostUSD)
	if session.Verdict != nil {
		text += fmt.Sprintf(", verdict %s: %s", session.Verdict.Status, session.Verdict.Summary)
	}
	if session.Error != "" {
		text += ": " + session.Error
	}
	return text
}

func describeDecision(decision escalation.Decision) string {
	return fmt.Sprintf("%s by rule %s: %s", decision.Action, decision.Rule, decision.Reason)
}

func describeOutcome(chain escalation.Chain) string {
	sessions := chain.Earlier.Sessions + len(chain.Sessions)
	return fmt.Sprintf("chain ended %s after %d sessions for $%.4f", chain.Outcome, sessions, chain.CostUSD)
}
