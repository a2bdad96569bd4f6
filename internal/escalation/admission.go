package escalation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// AdmissionRequest is a session that wants to start.
type AdmissionRequest struct {
	ChainID string  `json:"chain_id"`
	Tier    Tier    `json:"tier"`
	Purpose Purpose `json:"purpose,omitempty"`
	// At is when it wants to start, by the clock of the chain.
	At time.Time `json:"at"`
	// Services are those that the session is about; empty is not known.
	Services []string `json:"services,omitempty"`
	// ChainSpentUSD is what the chain has spent so far, in US dollars.
	ChainSpentUSD float64 `json:"chain_spent_usd"`
	// Force passes the cooldowns, because a person said so.
	Force bool `json:"force,omitempty"`
	// Approved passes the limit of escalations as well, because a person decided so at a gate.
	Approved bool `json:"approved,omitempty"`
	// WaitingSince is when the chain began to wait for admission; zero if it has not.
	WaitingSince time.Time `json:"waiting_since,omitzero"`
}

// Repairs reports whether the session may change something under policy. What only looks or
// writes is held by the budgets alone.
func (r AdmissionRequest) Repairs(policy Policy) bool {
	return r.Tier >= TierSafeRepair && (r.Purpose == PurposeTier || r.Purpose == PurposeContinuation) && !policy.DryRun
}

// AdmissionFacts is what an admission depends on beyond the chain itself, all seen at one moment.
type AdmissionFacts struct {
	// DaySpentUSD is what all sessions of this day (UTC) have cost, and for those that run, or whose
	// cost nobody knows, what is reserved for them.
	DaySpentUSD float64 `json:"day_spent_usd"`
	// Services holds the cooldowns of the services of the request, and of all others that
	// were repaired lately.
	Services []ServiceState `json:"services,omitempty"`
	// Escalations counts the other chains that have repaired within the window of the limit.
	Escalations int `json:"escalations"`
	// Escalated says that this chain has repaired already, and so counts already.
	Escalated bool `json:"escalated,omitempty"`
	// Busy are the services of the request that other chains are repairing.
	Busy []BusyService `json:"busy,omitempty"`
}

// BusyService is a service that a chain is repairing.
type BusyService struct {
	Service string `json:"service"`
	ChainID string `json:"chain_id"`
}

// Admission is whether a session may start, and with what.
type Admission struct {
	Granted bool `json:"granted"`
	// BudgetUSD is what the session may spend, in US dollars; 0 is no cap.
	BudgetUSD float64 `json:"budget_usd,omitempty"`
	// Forced says that a cooldown, or the limit of escalations, objects, and that a person passed it.
	Forced bool `json:"forced,omitempty"`
	// Rule is the one that refused; RuleAdmitted if none did.
	Rule Rule `json:"rule"`
	// Reason explains the refusal in a sentence.
	Reason string `json:"reason,omitempty"`
	// WaitUntil is when to ask again; zero if that is no use.
	WaitUntil time.Time `json:"wait_until,omitzero"`
}

// Opening is what came of a session that asked to start.
type Opening struct {
	// Session is the session as it is recorded; zero if it was refused.
	Session Session `json:"session,omitzero"`
	// Refusal says why the session may not start; nil if it may.
	Refusal *Admission `json:"refusal,omitempty"`
	// Services holds the cooldowns of the services of the request, and of all others that were
	// repaired lately, by name.
	Services []ServiceState `json:"services,omitempty"`
}

// Admit decides on request, in this order: the chain's budget, the day's, cooldowns, other chains
// at work on the same services, chains per window.
func Admit(policy Policy, request AdmissionRequest, facts AdmissionFacts) Admission {
	budget, refusal := admitSpending(policy, request, facts)
	if refusal != nil {
		return *refusal
	}
	granted := Admission{Granted: true, BudgetUSD: budget, Rule: RuleAdmitted}
	if !request.Repairs(policy) {
		return granted
	}
	for _, check := range []func(Policy, AdmissionRequest, AdmissionFacts) *Admission{
		admitCooldown, admitExclusion, admitEscalation,
	} {
		switch refusal := check(policy, request, facts); {
		case refusal == nil:
		case refusal.Rule == RuleCooldown && request.Force, refusal.Rule == RuleEscalationLimit && request.Approved:
			granted.Forced = true
		default:
			return *refusal
		}
	}
	return granted
}

// leastBudgetUSD is less than any call costs. A session that gets no more would only fail, and
// what is left over may be the dust of adding floats.
const leastBudgetUSD = 0.001

// admitSpending returns the least of the limits that are set, or the refusal of the one that is used up.
func admitSpending(policy Policy, request AdmissionRequest, facts AdmissionFacts) (budget float64, refusal *Admission) {
	budget = policy.For(request.Tier).BudgetUSD
	for _, limit := range []struct {
		usd, spent float64
		rule       Rule
		what       string
	}{
		{policy.ChainBudgetUSD, request.ChainSpentUSD, RuleChainBudget, "the chain's budget"},
		{policy.DayBudgetUSD, facts.DaySpentUSD, RuleDayBudget, "the budget of all chains for this day (UTC)"},
	} {
		if limit.usd == 0 {
			continue
		}
		rest := limit.usd - limit.spent
		if rest < leastBudgetUSD {
			return 0, &Admission{Rule: limit.rule, Reason: fmt.Sprintf("%s cannot start: %s of $%.2f is spent or reserved ($%.2f)",
				request.Tier, limit.what, limit.usd, limit.spent)}
		}
		budget = min(cmp.Or(budget, rest), rest)
	}
	return budget, nil
}

// admitCooldown refuses a repair when none of the services may be repaired now. One that may is
// reason enough: the agent is told about the others.
func admitCooldown(policy Policy, request AdmissionRequest, facts AdmissionFacts) *Admission {
	if len(request.Services) == 0 {
		return nil
	}
	var first time.Time
	for _, state := range facts.Services {
		if !slices.Contains(request.Services, state.Service) {
			continue
		}
		open, at := state.openFor(request.Tier)
		if open {
			return nil
		}
		first = earlier(first, at)
	}
	refusal := &Admission{Rule: RuleCooldown, Reason: fmt.Sprintf("%s may not repair %s now: its cooldown is not over",
		request.Tier, strings.Join(request.Services, ", "))}
	if !first.IsZero() && !first.After(request.deadline(policy)) {
		refusal.WaitUntil = first
	}
	return refusal
}

const (
	// busyPoll is the shortest time after which a chain asks again for a service that another
	// one repairs; a repair takes minutes.
	busyPoll = time.Minute
	// busyPollMax keeps a chain that has waited for hours from noticing too late.
	busyPollMax = 15 * time.Minute
)

// admitExclusion refuses to repair a service that another chain is repairing.
func admitExclusion(policy Policy, request AdmissionRequest, facts AdmissionFacts) *Admission {
	if len(facts.Busy) == 0 {
		return nil
	}
	busy := facts.Busy[0]
	refusal := &Admission{Rule: RuleServiceBusy, Reason: fmt.Sprintf("%s may not repair %s now: chain %s is at it",
		request.Tier, busy.Service, busy.ChainID)}
	next := busyPoll
	if !request.WaitingSince.IsZero() {
		next = min(max(busyPoll, request.At.Sub(request.WaitingSince)/4), busyPollMax)
	}
	if deadline := request.deadline(policy); deadline.After(request.At) {
		refusal.WaitUntil = earlier(request.At.Add(next), deadline)
	}
	return refusal
}

// admitEscalation refuses the first repair of a chain when too many chains have repaired lately.
func admitEscalation(policy Policy, request AdmissionRequest, facts AdmissionFacts) *Admission {
	limit := policy.EscalationLimit
	if !limit.IsSet() || facts.Escalated || facts.Escalations < limit.Max {
		return nil
	}
	return &Admission{Rule: RuleEscalationLimit, Reason: fmt.Sprintf(
		"%s cannot start: %d chains have escalated within %s, and %d are allowed", request.Tier,
		facts.Escalations, ShortDuration(limit.Window.Std()), limit.Max)}
}

// deadline is until when the request may wait.
func (r AdmissionRequest) deadline(policy Policy) time.Time {
	since := r.WaitingSince
	if since.IsZero() {
		since = r.At
	}
	return since.Add(policy.Cooldowns.MaxWait.Std())
}
