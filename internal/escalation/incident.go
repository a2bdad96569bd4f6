package escalation

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation/calendar"
)

// Incident is one fault of one or more services, from its first sighting to its end. Several chains can work on an
// incident.
type Incident struct {
	// ID is "incident-" and a number. The store assigns the number.
	ID string `json:"id"`
	// Services lists the affected services; empty if no verdict has named a service.
	Services []string `json:"services"`
	// Kind classifies the fault, such as down, disk_full or certificate, or KindLookFailed; empty if no verdict has
	// named a kind.
	Kind     string   `json:"kind,omitempty"`
	Summary  string   `json:"summary"`
	Severity Severity `json:"severity"`
	// State is derived from ResolvedAt and Chains.
	State      IncidentState `json:"state"`
	OpenedAt   time.Time     `json:"opened_at"`
	LastSeenAt time.Time     `json:"last_seen_at"`
	// ReturnedAt is the time of the incident's latest return; zero if the incident never came back.
	ReturnedAt time.Time `json:"returned_at,omitzero"`
	// WorseAt is the time at which another chain found that the incident has become worse; zero if no chain has. After
	// a further chain has begun to work on the incident, the first such finding replaces WorseAt. When the incident
	// comes back, WorseAt becomes zero.
	WorseAt time.Time `json:"worse_at,omitzero"`
	// ResolvedAt is the time of the resolution; zero while the incident is open. ResolvedBy is the ID of the chain that
	// resolved the incident, or the name of the person who closed it.
	ResolvedAt time.Time `json:"resolved_at,omitzero"`
	ResolvedBy string    `json:"resolved_by,omitempty"`
	// ResolvedVerified reports that the person had logged in under the name ResolvedBy.
	ResolvedVerified bool `json:"resolved_verified,omitempty"`
	// ResolvedReason holds the words of the person who closed the incident; empty if the person gave no reason.
	ResolvedReason string      `json:"resolved_reason,omitempty"`
	Resolution     IncidentEnd `json:"resolution,omitempty"`
	// Returned counts how often the incident has come back after its resolution.
	Returned int `json:"returned"`
	// Returns holds the times at which the incident came back after a repair, oldest first. Only the latest MaxReturns
	// times are kept.
	Returns []time.Time `json:"returns,omitempty"`
	// Acknowledged says who knows of the incident; nil if nobody has said so, or if that has ended.
	Acknowledged *Acknowledgement `json:"acknowledged,omitempty"`
	// Chains lists chains that have worked on the incident, oldest first. Shorten limits the list.
	Chains []IncidentChain `json:"chains,omitempty"`
	// Cost adds up all chains that have worked on the incident. A chain with several incidents counts fully for each of
	// them.
	Cost
}

// IncidentState is the state of an incident.
type IncidentState string

// IncidentStates returns all states.
func IncidentStates() []IncidentState {
	return []IncidentState{IncidentOpen, IncidentRepairing, IncidentWaiting, IncidentResolved}
}

// The states.
const (
	IncidentOpen      IncidentState = "open"      // no chain works on the incident
	IncidentRepairing IncidentState = "repairing" // a chain repairs the incident
	// IncidentWaiting: a chain waits for a person or a limit, or has ended because a person must act
	IncidentWaiting  IncidentState = "waiting"
	IncidentResolved IncidentState = "resolved" // the fault is gone
)

// IncidentEnd says how an incident was resolved.
type IncidentEnd string

// The ends.
const (
	IncidentRepaired IncidentEnd = "repaired" // a chain repaired the fault
	IncidentHealed   IncidentEnd = "healed"   // a look found the fault gone, and no chain had repaired it
	IncidentClosed   IncidentEnd = "closed"   // a person closed the incident
)

// IncidentChain describes the work of one chain on an incident.
type IncidentChain struct {
	ChainID string `json:"chain_id"`
	// FirstRunID is the run ID with which the chain began. Several chains, one after the other, can have the same
	// workflow ID and differ in FirstRunID.
	FirstRunID string `json:"first_run_id,omitempty"`
	ChainProgress
	// Tier is the highest tier in which the chain may have changed something; 0 if the chain cannot have changed
	// anything.
	Tier Tier `json:"tier,omitempty"`
	// Did describes the latest repair that the chain attempted, in the words of the verdict.
	Did string `json:"did,omitempty"`
	// Since is the time at which the chain first met the incident.
	Since time.Time `json:"since"`
	Cost
}

// AtWork reports whether the chain repairs the incident, or waits before it repairs.
func (c *IncidentChain) AtWork() bool { return c.Status == ChainRepairing || c.Status == ChainWaiting }

// ChainRun identifies a chain. Several chains, one after the other, can have the same workflow ID. They differ in
// FirstRunID.
type ChainRun struct {
	ChainID string
	// FirstRunID is the run ID with which the chain began. No other chain has it.
	FirstRunID string
}

// ChainProgress describes the work of a chain on its incidents.
type ChainProgress struct {
	Status ChainStatus `json:"status"`
	// Rule and Reason come from the decision that makes the chain wait, or from the decision that ended the chain. If
	// the chain could not record its end itself, Rule is empty.
	Rule   Rule   `json:"rule,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Until is the end of the wait; zero if the chain does not wait.
	Until time.Time `json:"until,omitzero"`
	// Outcome is empty until the chain has ended.
	Outcome Outcome   `json:"outcome,omitempty"`
	At      time.Time `json:"at"`
	// MaxTier is the highest tier that the chain's policy allowed; 0 if that is not recorded.
	MaxTier Tier `json:"max_tier,omitempty"`
	// DryRun reports whether the chain is a dry run, which takes care of nothing.
	DryRun bool `json:"dry_run,omitempty"`
	// Owns holds the IDs of the chain's own incidents. For a chain that waits before its first session, the records
	// connect the chain with its incidents only by Owns.
	Owns []string `json:"owns,omitempty"`
	// Leaves holds the IDs of the incidents that the chain has met and leaves to other chains.
	Leaves []string `json:"leaves,omitempty"`
	// Only limits the progress to the incidents with these IDs. If Only is empty, the progress concerns all incidents
	// of the chain.
	Only []string `json:"only,omitempty"`
}

// ChainStatus is the state of the work of a chain on an incident.
type ChainStatus string

// The statuses.
const (
	ChainLooking   ChainStatus = "looking"   // the chain has found the fault, and nothing is decided
	ChainRepairing ChainStatus = "repairing" // the chain repairs, or is about to
	ChainWaiting   ChainStatus = "waiting"   // the chain waits for a person or a limit
	ChainEnded     ChainStatus = "ended"
)

// ProgressOf returns the progress of a chain after a decision. If the decision opens a gate, Until is the time at which
// the gate expires or, if it is earlier, from which other chains may repair.
func ProgressOf(policy Policy, decision Decision, at time.Time) ChainProgress {
	progress := ChainProgress{Status: ChainRepairing, At: at, MaxTier: policy.MaxTier, DryRun: policy.DryRun}
	switch decision.Action {
	case DecisionComplete:
		progress.Status, progress.Outcome = ChainEnded, decision.Outcome
	case DecisionGate:
		progress.Status, progress.Until = ChainWaiting, at.Add(policy.Gate.Timeout.Std())
		if !decision.Until.IsZero() {
			progress.Until = earlier(progress.Until, decision.Until)
		}
	case DecisionWait:
		progress.Status, progress.Until = ChainWaiting, decision.Until
	case DecisionEscalate, DecisionHandoff, DecisionSplit:
		return progress
	}
	rule := decision.Rule
	if decision.Action == DecisionComplete && decision.Refused.passes() {
		rule = decision.Refused
	}
	progress.Rule, progress.Reason = rule, cut(decision.Reason, maxIncidentText)
	return progress
}

// ProgressOfIssue returns the progress that a split chain records when the chain of one issue has ended. The progress
// concerns only the incident of that issue. Without this progress, the incident would count as being repaired until the
// chains of all issues have ended.
func ProgressOfIssue(policy Policy, issue IssueChain, at time.Time) ChainProgress {
	return ChainProgress{
		Status: ChainEnded, Outcome: issue.Outcome, Rule: cmp.Or(issue.Rule, RuleIssues),
		Reason: ClipIncidentText(issue.Reason), At: at, MaxTier: policy.MaxTier, DryRun: policy.DryRun,
		Only: []string{issue.IncidentID},
	}
}

const (
	// IncidentMemory is the longest time between the resolution of an incident and its return. If the same fault
	// appears later than that, it is a new incident.
	IncidentMemory = 30 * 24 * time.Hour
	// MaxIncidentChains limits how many ended chains an incident lists, besides those on which a decision depends.
	MaxIncidentChains = 10
	// MaxActiveChains limits how many chains that look or wait an incident lists: the first ones. A chain that repairs
	// is always listed. Without this limit, many chains that are forced to repair the same fault would each hold a list
	// of all others.
	MaxActiveChains = 20
	// MaxReturns limits how many returns an incident keeps. No limit on returns is higher.
	MaxReturns = 50
	// MaxClosingReason limits a person's reason for closing an incident, in characters.
	MaxClosingReason = 500
	// maxIncidentText limits each text of an incident, in characters.
	maxIncidentText = 500
)

// ClipIncidentText cuts a text from a verdict to maxIncidentText characters.
func ClipIncidentText(text string) string { return cut(strings.TrimSpace(text), maxIncidentText) }

// incidentPattern matches the ID of an incident.
var incidentPattern = regexp.MustCompile(`^incident-[1-9]\d{0,17}$`)

// CheckIncidentID returns an error if id does not have the form of an incident's ID. The error is one sentence.
func CheckIncidentID(id string) error {
	if !incidentPattern.MatchString(id) {
		return fmt.Errorf("%q is no incident: write incident- and its number", cut(id, 60))
	}
	return nil
}

// CompareUrgency compares two open incidents for sorting: the more severe one comes first, then the one that was seen
// later, then the older one.
func CompareUrgency(a, b *Incident) int {
	return cmp.Or(CompareSeverity(a.Severity, b.Severity), b.LastSeenAt.Compare(a.LastSeenAt),
		a.OpenedAt.Compare(b.OpenedAt))
}

// StateOf computes the state of an incident from its other fields.
func (i *Incident) StateOf() IncidentState {
	if !i.ResolvedAt.IsZero() {
		return IncidentResolved
	}
	state := IncidentOpen
	for _, chain := range i.Chains {
		switch {
		case chain.DryRun:
		case chain.Status == ChainRepairing:
			return IncidentRepairing
		case chain.Status == ChainWaiting:
			state = IncidentWaiting
		}
	}
	if latest, care := i.ended(i.Chains, time.Time{}); care == CareAsked && i.unchangedSince(latest) {
		state = IncidentWaiting
	}
	return state
}

// mayTry reports whether a chain that can run the tiers up to maxTier can try more than the earlier chains that ended
// because a person must act. Only chains that ended since the incident last changed count. If there are none, mayTry
// returns false.
func (i *Incident) mayTry(maxTier Tier) bool {
	var allowed Tier
	for _, chain := range i.Chains {
		if chain.asked() && i.unchangedSince(chain) {
			allowed = max(allowed, chain.MaxTier)
		}
	}
	return allowed > 0 && maxTier > allowed
}

// HighestTier returns the highest tier that has tried to repair the incident; 0 if no tier has.
func (i *Incident) HighestTier() Tier {
	var highest Tier
	for _, chain := range i.Chains {
		highest = max(highest, chain.Tier)
	}
	return highest
}

// ReturnsWithin returns how often the incident has come back after a repair, within limit.Window before the given time.
// If the incident is still recorded as resolved by a repair, the caller has just found it again, and this return
// counts, too.
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

// History describes the latest attempts of chains to repair the incident, at most the given number. It returns one line
// for each attempt, oldest first.
func (i *Incident) History(most int) []string {
	var lines []string
	for _, chain := range i.Chains {
		if chain.Tier == 0 {
			continue
		}
		line := fmt.Sprintf("%s: %s of chain %s", calendar.Clock(chain.At, time.Time{}), chain.Tier, chain.ChainID)
		if chain.Outcome != "" {
			line += fmt.Sprintf(" (%s)", InWords(chain.Outcome))
		}
		if chain.Did != "" {
			line += ": " + chain.Did
		}
		lines = append(lines, line)
	}
	return lines[max(0, len(lines)-most):]
}

// MostImportant selects at most MaxKnownIncidents incidents for the prompt of an agent. It prefers severe incidents to
// less severe ones and, if the severity is equal, incidents that were seen more recently. The order of the selected
// incidents does not change.
func MostImportant(incidents []Incident) []Incident {
	if len(incidents) <= MaxKnownIncidents {
		return incidents
	}
	byRank := slices.Clone(incidents)
	slices.SortStableFunc(byRank, func(a, b Incident) int {
		return cmp.Or(CompareSeverity(a.Severity, b.Severity), b.LastSeenAt.Compare(a.LastSeenAt))
	})
	kept := map[string]bool{}
	for i := range byRank[:MaxKnownIncidents] {
		kept[byRank[i].ID] = true
	}
	return slices.DeleteFunc(slices.Clone(incidents), func(incident Incident) bool { return !kept[incident.ID] })
}

// Describe describes the incident in a few words: its ID, services and summary.
func (i *Incident) Describe() string {
	return fmt.Sprintf("%s (%s: %s)", i.ID, DescribeServices(i.Services, i.Kind), cut(i.Summary, 120))
}

// PastRepair is an earlier session that may have changed a service.
type PastRepair struct {
	ChainID  string        `json:"chain_id"`
	Tier     Tier          `json:"tier"`
	At       time.Time     `json:"at"`
	Services []string      `json:"services,omitempty"`
	Status   SessionStatus `json:"status"`
	// Verdict is the status of the session's verdict; empty if the session left no verdict.
	Verdict VerdictStatus `json:"verdict,omitempty"`
	// Did describes the repair that the session attempted, and its result, in the words of the verdict.
	Did string `json:"did,omitempty"`
	// Actions lists the changes that the session made.
	Actions []string `json:"actions,omitempty"`
}

const (
	// MaxPastRepairs limits how many earlier repairs an agent's prompt describes.
	MaxPastRepairs = 6
	// maxPastActions limits how many changes of one earlier repair a prompt lists.
	maxPastActions = 6
)

// Closer returns the name of the person who closed the incident, and whether it was verified; "" if no person did.
func (i *Incident) Closer() string {
	if i.Resolution != IncidentClosed {
		return ""
	}
	return named(i.ResolvedBy, i.ResolvedVerified)
}

// NewPastRepair describes an ended session for the prompts of later agents.
func NewPastRepair(session Session) PastRepair {
	repair := PastRepair{
		ChainID: session.ChainID, Tier: session.Tier, At: session.EndedAt, Status: session.Status,
		Did: session.Error,
	}
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

// Attempt returns the verdict's description of the attempted repairs. If this description is empty, Attempt returns the
// summary.
func (v *Verdict) Attempt() string {
	if blank(v.Remediation) {
		return ClipIncidentText(v.Summary)
	}
	return ClipIncidentText(v.Remediation)
}

// KnownIncidents selects incidents by services and kind, or by IDs.
type KnownIncidents struct {
	// Services and Kind limit the incidents; empty for no limit.
	Services []string `json:"services,omitempty"`
	Kind     string   `json:"kind,omitempty"`
	// IDs adds the incidents with these IDs, whatever their services and kind.
	IDs []string  `json:"ids,omitempty"`
	At  time.Time `json:"at"`
}
