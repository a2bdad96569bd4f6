package escalation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation/calendar"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// GateFact is something that a person needs to know at a gate. Every front end shows these facts in this order.
type GateFact struct {
	// Label is a word, such as Wrong or Tried.
	Label string
	Lines []GateLine
}

// The labels of the facts that a headline can say, too.
const (
	FactFound = "Found"
	FactWhy   = "Why"
)

// GateLine is a line of a GateFact. It can contain words of agents.
type GateLine struct {
	Text string
	// IncidentID and ChainID name what the line is about; empty if it is about neither.
	IncidentID, ChainID string
}

// Facts returns what a person needs to know at the gate: what is wrong and since when, what the last agent found, what
// was tried and what the guard has denied, and what is left. Times are shown as a clock in the zone of now.
func (g *Gate) Facts(now time.Time) []GateFact {
	var facts []GateFact
	add := func(label string, lines ...GateLine) {
		if len(lines) > 0 {
			facts = append(facts, GateFact{label, lines})
		}
	}
	say := func(label string, texts ...string) {
		lines := make([]GateLine, 0, len(texts))
		for _, text := range texts {
			if text != "" {
				lines = append(lines, GateLine{Text: text})
			}
		}
		add(label, lines...)
	}
	for _, fault := range g.Faults {
		add("Wrong", GateLine{Text: fault.describe(now), IncidentID: fault.ID})
	}
	if !slices.ContainsFunc(g.Faults, func(fault ChainIncident) bool { return fault.Summary == g.Found }) {
		say(FactFound, g.Found)
	}
	say(FactWhy, g.Reason)
	say("Tried", g.Tried...)
	say("Denied", g.denied()...)
	say("Earlier", g.History...)
	for _, news := range g.News {
		add("News", GateLine{Text: news.Describe(now), IncidentID: news.IncidentID, ChainID: news.ChainID})
	}
	say("Left", g.left(now)...)
	if g.NoContinuation != "" {
		say("Session", "cannot be continued: "+g.NoContinuation)
	}
	say("Cost", g.CostText()+" so far")
	open := "since " + calendar.Clock(g.OpenedAt, now)
	if !g.ExpiresAt.IsZero() {
		open += fmt.Sprintf("; if nobody answers until %s: %s", calendar.Clock(g.ExpiresAt, now), InWords(g.OnTimeout))
	}
	say("Open", open)
	return merged(facts)
}

// merged joins neighbours with the same label.
func merged(facts []GateFact) []GateFact {
	var joined []GateFact
	for _, fact := range facts {
		if last := len(joined) - 1; last >= 0 && joined[last].Label == fact.Label {
			joined[last].Lines = append(joined[last].Lines, fact.Lines...)
			continue
		}
		joined = append(joined, fact)
	}
	return joined
}

// Headline says in a sentence what is wrong: what the last agent found, or else why the gate is open.
func (g *Gate) Headline() string {
	switch {
	case g.Phase != "" || g.Found == "" && len(g.Faults) == 0:
		return g.Reason
	case g.Found == "":
		return g.Faults[0].Summary
	}
	return g.Found
}

// Severity returns the severity of the worst fault; warning if none is known.
func (g *Gate) Severity() Severity {
	if len(g.Faults) > 0 && g.Faults[0].Severity != "" {
		return g.Faults[0].Severity
	}
	return SeverityWarning
}

// describe says what is wrong, and since when.
func (i ChainIncident) describe(now time.Time) string {
	text := strings.TrimRight(i.Summary, ".")
	unnamed := slices.DeleteFunc(slices.Clone(i.Services), func(service string) bool {
		return strings.Contains(strings.ToLower(text), strings.ToLower(service))
	})
	if len(unnamed) > 0 {
		text = strings.Join(unnamed, ", ") + ": " + text
	}
	if !i.Since.IsZero() {
		text += ", since " + calendar.Clock(i.Since, now)
	}
	return text
}

// denied lists the calls that the guard has denied.
func (g *Gate) denied() []string {
	lines := g.DeniedCalls
	if more := g.Denied - len(lines); more > 0 && len(lines) > 0 {
		lines = append(slices.Clip(lines), fmt.Sprintf("and %d more", more))
	}
	return lines
}

// Describe says what has become of the incident, and who says so.
func (n GateNews) Describe(now time.Time) string {
	text := fmt.Sprintf("%s is %s, says chain %s, %s", n.IncidentID, InWords(n.Status), n.ChainID,
		calendar.Clock(n.At, now))
	if n.Actor != "" {
		text = fmt.Sprintf("%s was closed by %s, %s", n.IncidentID, n.Actor, calendar.Clock(n.At, now))
	}
	if n.Note != "" {
		text += ": " + n.Note
	}
	return text
}

// left says how many restarts and redeployments are left to the tier of the gate.
func (g *Gate) left(now time.Time) []string {
	if !g.repairs() {
		return nil
	}
	var lines []string
	for _, state := range g.Cooldowns {
		lines = append(lines, state.Restarts.left("restarts", state.Service, now))
		if g.Tier >= TierFullRepair {
			lines = append(lines, state.Redeployments.left("redeployments", state.Service, now))
		}
	}
	return lines
}

// left says how much of a limit is left; "" if there is no limit.
func (u Use) left(what, service string, now time.Time) string {
	if !u.Limit.IsSet() {
		return ""
	}
	text := fmt.Sprintf("%d of %d %s of %s in %s", max(u.Limit.Max-u.Used, 0), u.Limit.Max, what, service,
		plaintext.Length(u.Limit.Window.Std()))
	if !u.Free && u.FreeAt.After(now) {
		text += ", the next at " + calendar.Clock(u.FreeAt, now)
	}
	return text
}

// repairs reports whether a tier repairs services after the gate.
func (g *Gate) repairs() bool { return g.Phase == "" && g.Role == "" && g.Tier >= TierSafeRepair }

// UsedUp reports whether a session after the gate must wait, because all restarts of its services are used up, and
// until when; zero if that is not known. A person can let it start now (see GateAnswer.Force).
func (g *Gate) UsedUp(now time.Time) (until time.Time, usedUp bool) {
	if !g.repairs() || len(g.Cooldowns) == 0 || g.Rule == RuleCooldown {
		return time.Time{}, false
	}
	for _, state := range g.Cooldowns {
		open, at := state.openFor(g.Tier)
		if open || !at.IsZero() && !at.After(now) {
			return time.Time{}, false
		}
		until = earlier(until, at)
	}
	return until, true
}

// Meaning says what an answer at the gate does, and when, if that is not at once.
func (g *Gate) Meaning(action GateAction, now time.Time) string {
	text := InWords(action) + ": " + g.does(action)
	switch action {
	case GateContinue, GateFix:
		if until, usedUp := g.UsedUp(now); usedUp && until.IsZero() {
			text += "; its restarts are used up: only now anyway"
		} else if usedUp {
			text += fmt.Sprintf("; restarts are used up: goes on at %s, or now anyway", calendar.Clock(until, now))
		}
	case GateRecheck:
		text = "I fixed it, " + text
	case GateOverride:
		if g.Phase == "" {
			text += "; the incident stays open, and looks leave it"
		}
	case GateAbort:
		if g.Phase == "" {
			text += "; the incident stays open, and a look may repair it"
		}
	}
	return text
}

// Next describes in a sentence the next step of the chain after the gate was closed in the given way.
func (g *Gate) Next(closing GateClosing) string {
	if closing.ToTier != 0 {
		return closing.ToTier.String() + " runs" + g.told(closing)
	}
	switch closing.Action {
	case GateContinue, GateFix, GateRecheck:
		return g.does(closing.Action) + g.told(closing)
	case GateOverride, GateAbort:
	}
	return g.does(closing.Action)
}

// told says under which conditions a session starts after the gate.
func (g *Gate) told(closing GateClosing) string {
	text := ""
	ofTier := strings.Contains(g.Budget, fmt.Sprintf("CLAUDEOPS_TIER%d_", int(g.Tier)))
	if g.Budget != "" && (closing.ToTier == 0 || !ofTier) {
		text = " " + g.Budget
	}
	if !blank(closing.Guidance) {
		text += ", with the guidance"
	}
	if closing.Force {
		text += ", also if its restarts are used up"
	}
	if g.Rule == RuleAccountLimit && closing.Actor != "" {
		text += ", also before the end of the limit, in case the worker has another key"
	}
	return text
}

// does says what an answer does.
func (g *Gate) does(action GateAction) string {
	switch action {
	case GateContinue:
		return g.NextRunner() + " goes on and keeps what it knows"
	case GateFix:
		return g.doesFix()
	case GateRecheck:
		if g.Commit != "" {
			return fmt.Sprintf("%s looks, and if all is well, only %s is left to settle", TierObserve,
				shortCommit(g.Commit))
		}
		return fmt.Sprintf("%s looks, and the chain ends as resolved if all is well", TierObserve)
	case GateOverride:
		return g.doesOverride()
	case GateAbort:
		return g.doesAbort()
	}
	return ""
}

// doesFix says what the answer fix does.
func (g *Gate) doesFix() string {
	switch {
	case g.MaxTier != 0:
		return fmt.Sprintf("%s repairs it: your answer raises the limit of this chain, %s; the workers' "+
			"CLAUDEOPS_MAX_TIER must allow it, too (set it in claudeops.env, and start them anew, before you answer)",
			g.Tier, g.MaxTier)
	case g.Fresh:
		return g.Tier.String() + " starts fresh, without the conversation that cannot be used"
	case g.Repeats() != "":
		return g.Repeats()
	}
	return g.NextRunner() + " starts fresh"
}

// doesOverride says what the answer override does.
func (g *Gate) doesOverride() string {
	switch {
	case g.pushes():
		return "nothing is pushed, the commits stay on their branch, and the work ends"
	case g.Phase == PlanItself && g.Commit != "":
		return fmt.Sprintf("the plan is accepted as %s has it%s, which %s", shortCommit(g.Commit), g.accepting(),
			g.pushed())
	case g.Phase == PlanItself:
		return "the plan is accepted as it is" + g.accepting()
	case g.Phase != "" && g.Commit == "":
		return fmt.Sprintf("phase %s is passed over without a commit, and the work on the plan goes on", g.Phase)
	case g.Phase != "":
		return fmt.Sprintf("phase %s is accepted as %s has it%s, and the work on the plan goes on",
			g.Phase, shortCommit(g.Commit), g.accepting())
	case g.Commit != "":
		return fmt.Sprintf("%s %s as it is%s, and the chain ends", shortCommit(g.Commit), g.pushed(), g.accepting())
	}
	return "the state is accepted, and the chain ends"
}

// doesAbort says what the answer abort does.
func (g *Gate) doesAbort() string {
	switch {
	case g.Approved != "" && g.Commit != "" && g.Commit != g.Approved:
		return fmt.Sprintf("the chain ends, and what was approved, up to %s, and %s stay on their branch without a "+
			"push", shortCommit(g.Approved), shortCommit(g.Commit))
	case g.Approved != "":
		return "the chain ends, and what was approved, up to " + shortCommit(g.Approved) +
			", stays on its branch without a push"
	case g.Commit != "":
		return "the chain ends, and " + shortCommit(g.Commit) + " stays on its branch without a push"
	}
	return "the chain ends"
}

// pushed says what becomes of an accepted commit.
func (g *Gate) pushed() string {
	if g.NoRemote {
		return "stays on its branch (the repository has no remote)"
	}
	return "is pushed"
}

// shortCommit names a commit by the beginning of its hash.
func shortCommit(commit string) string { return "commit " + commit[:min(len(commit), 12)] }

// accepting names what the action override accepts besides the commit; empty if there is nothing.
func (g *Gate) accepting() string {
	if g.Open == "" {
		return ""
	}
	return " with what is open (" + g.Open + ")"
}

// NextRunner names whose session the actions continue_session and fix start: a tier, the author or the reviewer.
func (g *Gate) NextRunner() string {
	if g.Role != "" {
		return "the " + g.Role
	}
	return g.Tier.String()
}

// Place names the tier of the gate, or the phase of a plan at which it is.
func (g *Gate) Place() string {
	switch g.Phase {
	case "":
		return g.Tier.String()
	case PlanItself:
		return "the plan"
	}
	return "phase " + g.Phase
}

// pushes reports whether all phases of a plan are approved, and their commits could not be pushed.
func (g *Gate) pushes() bool { return g.Phase != "" && g.Resume == "approved" }

// Repeats says what the action fix repeats at the gate of a plan if no session runs next; empty if one does.
func (g *Gate) Repeats() string {
	switch {
	case g.Role != "" || g.Resume == "":
		return ""
	case g.Resume == "approved":
		return "what is approved is pushed again"
	case g.Phase == "":
		return ""
	default:
		return "the checks run again"
	}
}
