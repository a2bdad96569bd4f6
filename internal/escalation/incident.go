package escalation

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Incident is one fault of one or more services, from its first sight to its end. Several chains can work on an
// incident.
type Incident struct {
	// ID is "incident-" and a number. The store assigns it.
	ID string `json:"id"`
	// Services lists the affected services; empty if no verdict has named a service.
	Services []string `json:"services"`
	// Kind classifies the fault, such as down, disk_full or certificate; empty if no verdict has named a kind.
	Kind     string   `json:"kind,omitempty"`
	Summary  string   `json:"summary"`
	Severity Severity `json:"severity"`
	// State follows from ResolvedAt and Chains.
	State      IncidentState `json:"state"`
	OpenedAt   time.Time     `json:"opened_at"`
	LastSeenAt time.Time     `json:"last_seen_at"`
	// ReturnedAt holds the time at which the incident last came back; zero if it never did.
	ReturnedAt time.Time `json:"returned_at,omitzero"`
	// WorseAt holds the time at which the incident was first found to be worse; zero if it never was. When the incident
	// comes back, WorseAt begins anew.
	WorseAt time.Time `json:"worse_at,omitzero"`
	// ResolvedAt holds the time of the resolution; zero while the incident is open. ResolvedBy is the ID of the chain
	// that resolved the incident, or the name of the person.
	ResolvedAt time.Time `json:"resolved_at,omitzero"`
	ResolvedBy string    `json:"resolved_by,omitempty"`
	// ResolvedReason holds the reason of the person who closed the incident, in that person's words; empty if none was
	// given.
	ResolvedReason string      `json:"resolved_reason,omitempty"`
	Resolution     IncidentEnd `json:"resolution,omitempty"`
	// Returned counts how often the incident has come back after its resolution.
	Returned int `json:"returned"`
	// Returns holds the times at which the incident came back after a repair, oldest first. Only the latest times are
	// kept.
	Returns []time.Time `json:"returns,omitempty"`
	// Chains lists the chains that have worked on the incident, oldest first. Of the ended chains, only the latest are
	// listed.
	Chains []IncidentChain `json:"chains,omitempty"`
	// CostUSD is the cost of these chains, in US dollars. A chain with several incidents counts fully for each of them.
	CostUSD float64 `json:"cost_usd"`
}

// IncidentState is the state of an incident.
type IncidentState string

// IncidentStates returns all states.
func IncidentStates() []IncidentState {
	return []IncidentState{IncidentOpen, IncidentRepairing, IncidentWaiting, IncidentResolved}
}

// The states.
const (
	IncidentOpen      IncidentState = "open"      // no chain works on it
	IncidentRepairing IncidentState = "repairing" // a chain repairs it
	IncidentWaiting   IncidentState = "waiting"   // a chain waits for a person or a limit, or has ended because a person must act
	IncidentResolved  IncidentState = "resolved"  // the fault is gone
)

// IncidentEnd names the way in which an incident was resolved.
type IncidentEnd string

// The ends.
const (
	IncidentRepaired IncidentEnd = "repaired" // a chain repaired it
	IncidentHealed   IncidentEnd = "healed"   // a look found it gone, and no chain had repaired it
	IncidentClosed   IncidentEnd = "closed"   // a person closed it
)

// IncidentChain describes the work of one chain on an incident.
type IncidentChain struct {
	ChainID string `json:"chain_id"`
	// FirstRunID is the run ID with which the chain began. It distinguishes chains that had the same ID.
	FirstRunID string `json:"first_run_id,omitempty"`
	// NamespaceID is the ID of the chain's Temporal namespace.
	NamespaceID string `json:"namespace_id,omitempty"`
	ChainProgress
	// Tier is the highest tier of the chain that may have changed something; 0 if no tier has.
	Tier Tier `json:"tier,omitempty"`
	// Did describes the chain's last attempt to repair, in the words of its verdict.
	Did string `json:"did,omitempty"`
	// Since holds the time at which the chain first met the incident.
	Since   time.Time `json:"since"`
	CostUSD float64   `json:"cost_usd"`
}

// ChainRun identifies a chain within its namespace. Chains can have the same ID, one after the other.
type ChainRun struct {
	ChainID string
	// FirstRunID is the run ID with which the chain began.
	FirstRunID string
}

// ChainProgress describes the work of a chain on its incidents.
type ChainProgress struct {
	Status ChainStatus `json:"status"`
	// Rule and Reason come from the decision that makes the chain wait, or that ended the chain.
	Rule   Rule   `json:"rule,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Until holds the end of the wait; zero if the chain does not wait.
	Until time.Time `json:"until,omitzero"`
	// Outcome is empty until the chain has ended.
	Outcome Outcome   `json:"outcome,omitempty"`
	At      time.Time `json:"at"`
	// Owns holds the IDs of the chain's own incidents. If a chain waits before its first session, it has no other
	// record of them.
	Owns []string `json:"owns,omitempty"`
	// Leaves holds the IDs of the incidents that the chain has met and leaves to other chains.
	Leaves []string `json:"leaves,omitempty"`
	// Only limits the progress to the incidents with these IDs. If Only is empty, the progress concerns all incidents
	// of the chain.
	Only []string `json:"only,omitempty"`
}

// ChainStatus is the state of a chain's work on an incident.
type ChainStatus string

// The statuses.
const (
	ChainLooking   ChainStatus = "looking"   // it has found the fault, and nothing is decided
	ChainRepairing ChainStatus = "repairing" // it repairs, or is about to
	ChainWaiting   ChainStatus = "waiting"   // it waits for a person or a limit
	ChainEnded     ChainStatus = "ended"
)

// ProgressOf returns the progress of a chain after decision. If the decision opens a gate, the wait ends after
// policy.Gate.Timeout at the latest.
func ProgressOf(policy Policy, decision Decision, at time.Time) ChainProgress {
	progress := ChainProgress{Status: ChainRepairing, At: at}
	switch decision.Action {
	case DecisionComplete:
		progress.Status, progress.Outcome = ChainEnded, decision.Outcome
	case DecisionGate:
		progress.Status, progress.Until = ChainWaiting, at.Add(policy.Gate.Timeout.Std())
	case DecisionWait:
		progress.Status, progress.Until = ChainWaiting, decision.Until
	case DecisionEscalate, DecisionHandoff, DecisionSplit:
		return progress
	}
	progress.Rule, progress.Reason = decision.Rule, cut(decision.Reason, maxIncidentText)
	return progress
}

// ProgressOfIssue returns the progress of a split chain after the chain of one issue has ended. It concerns only the
// incident of that issue. Without it, the incident would count as being repaired until the chains of all issues have
// ended.
func ProgressOfIssue(issue IssueChain, at time.Time) ChainProgress {
	return ChainProgress{
		Status: ChainEnded, Outcome: issue.Outcome, Rule: RuleIssues, Reason: cut(issue.Reason, maxIncidentText), At: at,
		Only: []string{issue.IncidentID},
	}
}

const (
	// IncidentMemory limits the time between the resolution of an incident and its return. If the same fault appears
	// later, it is a new incident.
	IncidentMemory = 30 * 24 * time.Hour
	// MaxIncidentChains limits the list of an incident's chains. Chains that have not ended are always listed.
	MaxIncidentChains = 10
	// MaxReturns limits the list of an incident's returns.
	MaxReturns = 50
	// MaxClosingReason limits the reason for which a person closes an incident, in characters.
	MaxClosingReason = 500
	// maxIncidentText limits a text of an incident, in characters.
	maxIncidentText = 500
	// lateEnd extends the time for which a chain counts as waiting beyond the end of its wait. It allows for workers
	// that are down.
	lateEnd = time.Hour
)

// ClipIncidentText cuts a text from a verdict to the maximum length of a text in an incident.
func ClipIncidentText(text string) string { return cut(strings.TrimSpace(text), maxIncidentText) }

// incidentPattern matches IDs of incidents.
var incidentPattern = regexp.MustCompile(`^incident-[1-9]\d{0,17}$`)

// CheckIncidentID checks the form of an incident's ID. The error is one sentence.
func CheckIncidentID(id string) error {
	if !incidentPattern.MatchString(id) {
		return fmt.Errorf("%q is no incident: write incident- and its number", cut(id, 60))
	}
	return nil
}

// StateOf computes the state of an incident from its other fields.
func (i *Incident) StateOf() IncidentState {
	if !i.ResolvedAt.IsZero() {
		return IncidentResolved
	}
	state := IncidentOpen
	var latest IncidentChain
	for _, chain := range i.Chains {
		switch chain.Status {
		case ChainRepairing:
			return IncidentRepairing
		case ChainWaiting:
			state = IncidentWaiting
		case ChainEnded:
			latest = chain
		case ChainLooking:
		}
	}
	if latest.unanswered() && i.unchangedSince(latest) {
		state = IncidentWaiting
	}
	return state
}

// unanswered reports whether the chain has ended because a person must act, and nobody has acted. If a limit refused
// the chain, no person need act: the limit passes, and then the next chain may repair.
func (c *IncidentChain) unanswered() bool {
	passes := c.Rule == RuleCooldown || c.Rule == RuleServiceBusy || c.Rule == RuleEscalationLimit || c.Rule == RuleDayBudget
	return c.Status == ChainEnded && !passes && (c.Outcome == OutcomeNeedsHuman || c.Rule == RuleGateExpired)
}

// unchangedSince reports whether the incident has neither become worse nor come back after the end of the chain ended.
func (i *Incident) unchangedSince(ended IncidentChain) bool {
	return !i.WorseAt.After(ended.At) && !ended.At.Before(i.ReturnedAt)
}

// Handler returns the chain that takes care of the incident at the time at. It ignores the chain with the ID except. If
// no chain takes care, it returns false.
//
// A chain takes care of an incident while it repairs or waits. An ended chain also takes care, if a person has accepted
// the state at its gate, or still has to act. This ends when another chain has worked on the incident, or when the
// incident becomes worse or comes back. So an unchanged fault is repaired once, and not after every look.
func (i *Incident) Handler(except string, at time.Time) (IncidentChain, bool) {
	var latest IncidentChain
	for _, chain := range slices.Backward(i.Chains) {
		if chain.ChainID == except {
			continue
		}
		waits := chain.Status == ChainWaiting && (chain.Until.IsZero() || at.Before(chain.Until.Add(lateEnd)))
		if waits || chain.Status == ChainRepairing {
			return chain, true
		}
		if latest.ChainID == "" && chain.Status == ChainEnded {
			latest = chain
		}
	}
	settled := latest.Outcome == OutcomeOverridden || latest.unanswered()
	return latest, settled && i.unchangedSince(latest)
}

// HighestTier returns the highest tier that has tried to repair the incident. If no tier has tried, it returns 0.
func (i *Incident) HighestTier() Tier {
	var highest Tier
	for _, chain := range i.Chains {
		highest = max(highest, chain.Tier)
	}
	return highest
}

// ReturnsWithin returns how often the incident has come back after a repair. It counts returns within the window of
// limit, and the window ends at the time at. If the incident is currently resolved by a repair, the caller has found it
// again. This return is counted, too.
func (i *Incident) ReturnsWithin(limit Limit, at time.Time) int {
	count := 0
	for _, returned := range i.Returns {
		if returned.After(at.Add(-limit.Window.Std())) {
			count++
		}
	}
	if !i.ResolvedAt.IsZero() && i.Resolution == IncidentRepaired {
		count++
	}
	return count
}

// History describes each chain's attempt to repair the incident, oldest first, one line for each. It describes at most
// the given number of attempts, the latest ones.
func (i *Incident) History(most int) []string {
	var lines []string
	for _, chain := range i.Chains {
		if chain.Tier == 0 {
			continue
		}
		line := fmt.Sprintf("%s: %s of chain %s", chain.At.UTC().Format(time.RFC3339), chain.Tier, chain.ChainID)
		if chain.Outcome != "" {
			line += fmt.Sprintf(" (%s)", chain.Outcome)
		}
		if chain.Did != "" {
			line += ": " + chain.Did
		}
		lines = append(lines, line)
	}
	return lines[max(0, len(lines)-most):]
}

// MostImportant selects the incidents for the prompt of an agent, at most MaxKnownIncidents. It prefers the most severe
// ones. Of equal severity, it prefers those that were seen last. The order stays the same.
func MostImportant(incidents []Incident) []Incident {
	if len(incidents) <= MaxKnownIncidents {
		return incidents
	}
	byRank := slices.Clone(incidents)
	slices.SortStableFunc(byRank, func(a, b Incident) int {
		if order := cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity)); order != 0 {
			return order
		}
		return b.LastSeenAt.Compare(a.LastSeenAt)
	})
	kept := map[string]bool{}
	for i := range byRank[:MaxKnownIncidents] {
		kept[byRank[i].ID] = true
	}
	return slices.DeleteFunc(slices.Clone(incidents), func(incident Incident) bool { return !kept[incident.ID] })
}

// Describe describes the incident in a few words: its ID, services and summary.
func (i *Incident) Describe() string {
	return fmt.Sprintf("%s (%s: %s)", i.ID, cmp.Or(strings.Join(i.Services, ", "), "no service named"), cut(i.Summary, 120))
}

// PastRepair is an earlier session that may have changed a service.
type PastRepair struct {
	ChainID  string        `json:"chain_id"`
	Tier     Tier          `json:"tier"`
	At       time.Time     `json:"at"`
	Services []string      `json:"services,omitempty"`
	Status   SessionStatus `json:"status"`
	// Verdict is the status of the session's verdict; empty if there was none.
	Verdict VerdictStatus `json:"verdict,omitempty"`
	// Did describes the attempted repair and its result, in the words of the verdict.
	Did string `json:"did,omitempty"`
	// Actions lists the changes.
	Actions []string `json:"actions,omitempty"`
}

const (
	// MaxPastRepairs limits the earlier repairs in an agent's prompt.
	MaxPastRepairs = 6
	// maxPastActions limits the changes that are listed for one earlier repair.
	maxPastActions = 6
)

// NewPastRepair describes an ended session for the prompts of later agents.
func NewPastRepair(session Session) PastRepair {
	repair := PastRepair{ChainID: session.ChainID, Tier: session.Tier, At: session.EndedAt, Status: session.Status, Did: session.Error}
	if verdict := session.Verdict; verdict != nil {
		repair.Verdict, repair.Services, repair.Did = verdict.Status, verdict.Services, verdict.Attempt()
		for _, action := range verdict.Actions[:min(len(verdict.Actions), maxPastActions)] {
			result := "failed"
			if action.Succeeded {
				result = "succeeded"
			}
			repair.Actions = append(repair.Actions, fmt.Sprintf("%s of %s, %s", action.Kind, action.Service, result))
		}
	}
	repair.Did = ClipIncidentText(repair.Did)
	return repair
}

// Attempt returns the verdict's description of attempted repairs. If the verdict has none, it returns the summary.
func (v *Verdict) Attempt() string {
	if blank(v.Remediation) {
		return ClipIncidentText(v.Summary)
	}
	return ClipIncidentText(v.Remediation)
}
