package escalation

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// AdmissionRequest asks whether a session may start.
type AdmissionRequest struct {
	ChainID string `json:"chain_id"`
	// FirstRunID is the run ID with which the chain began. With ChainID it identifies the chain.
	FirstRunID string  `json:"first_run_id,omitempty"`
	Tier       Tier    `json:"tier"`
	Purpose    Purpose `json:"purpose,omitempty"`
	// At is the time of the request, by the workflow's clock.
	At time.Time `json:"at"`
	// Services holds the services to be repaired. A repair that names no service counts as working on all services.
	Services []string `json:"services,omitempty"`
	// ChainSpentUSD is the chain's own figure for its spending, in US dollars. After a reset the chain knows less than
	// the records.
	ChainSpentUSD float64 `json:"chain_spent_usd"`
	// Force overrides the cooldowns. Only an operator sets it.
	Force bool `json:"force,omitempty"`
	// Approved overrides the escalation limit. It is set after an operator's answer at a gate.
	Approved bool `json:"approved,omitempty"`
	// Incidents holds the IDs of the incidents that the chain works on, as far as the chain knows them.
	Incidents []string `json:"incidents,omitempty"`
	// WaitingSince is the time at which the chain began to wait for admission; zero if it has not waited.
	WaitingSince time.Time `json:"waiting_since,omitzero"`
}

// Repairs reports whether the session may change services under policy. All other sessions (dry runs, rechecks,
// handoffs, Tier 1) need only a budget.
func (r AdmissionRequest) Repairs(policy Policy) bool {
	return r.Tier >= TierSafeRepair && (r.Purpose == PurposeTier || r.Purpose == PurposeContinuation) && !policy.DryRun
}

// AdmissionFacts holds the facts outside of the chain on which an admission depends. They are read in one transaction.
type AdmissionFacts struct {
	// DaySpentUSD is the cost of the sessions of this day (UTC) that have ended. A session with unknown cost counts
	// with its reservation.
	DaySpentUSD float64 `json:"day_spent_usd"`
	// DayReservedUSD is the sum of the budgets of this day's running sessions.
	DayReservedUSD float64 `json:"day_reserved_usd,omitempty"`
	// ChainSpentUSD is the cost of all sessions of the chain that have ended, including sessions that a reset
	// discarded. A session with unknown cost counts with its reservation.
	ChainSpentUSD float64 `json:"chain_spent_usd"`
	// Services holds the cooldowns of the requested services and of all other services that were repaired
	// recently.
	Services []ServiceState `json:"services,omitempty"`
	// Escalations counts the other chains that have repaired a service within the window of the escalation
	// limit.
	Escalations int `json:"escalations"`
	// Escalated reports whether this chain has repaired a service before. If so, the escalation limit does not
	// apply to it again.
	Escalated bool `json:"escalated,omitempty"`
	// Busy lists the requested services that other chains are repairing. A chain that repairs without naming a service
	// counts as working on all services, so it is always listed. For a request without services, Busy lists every
	// service that another chain is repairing.
	Busy []BusyService `json:"busy,omitempty"`
}

// BusyService names a service and the chain that is repairing it.
type BusyService struct {
	// Service is the name of the service. It is empty if the chain has named no service, and so counts as working on
	// all of them.
	Service string `json:"service"`
	ChainID string `json:"chain_id"`
	// Namespace is the name of the chain's Temporal namespace if this is not the request's namespace; otherwise empty.
	Namespace string `json:"namespace,omitempty"`
}

// chain describes the chain for a sentence.
func (b BusyService) chain() string {
	if b.Namespace == "" {
		return "chain " + b.ChainID
	}
	return fmt.Sprintf("chain %s of another Temporal namespace (%s)", b.ChainID, b.Namespace)
}

// Admission is the answer to an AdmissionRequest.
type Admission struct {
	Granted bool `json:"granted"`
	// BudgetUSD is the session's budget in US dollars; 0 sets no cap.
	BudgetUSD float64 `json:"budget_usd,omitempty"`
	// Forced reports whether the request was granted only because an operator overrode a cooldown or the
	// escalation limit.
	Forced bool `json:"forced,omitempty"`
	// Rule is the rule that refused the request, or RuleAdmitted.
	Rule Rule `json:"rule"`
	// Reason explains the refusal in a sentence.
	Reason string `json:"reason,omitempty"`
	// WaitUntil is the time of the next attempt; zero if waiting does not help.
	WaitUntil time.Time `json:"wait_until,omitzero"`
}

// AdmissionResult is the result of opening a session: its record, or the refusal.
type AdmissionResult struct {
	// Session is the session as recorded; zero if the request was refused.
	Session Session `json:"session,omitzero"`
	// Refusal holds the refusal; nil if the session may start.
	Refusal *Admission `json:"refusal,omitempty"`
	// Services holds the cooldowns of the requested services and of all other services that were repaired
	// recently, sorted by name.
	Services []ServiceState `json:"services,omitempty"`
	IncidentBrief
}

// IncidentBrief informs an agent, and its chain, about incidents in the records.
type IncidentBrief struct {
	// Incidents holds all open incidents for TierObserve. For higher tiers, and for a refused session, it holds only the chain's
	// own incidents.
	Incidents []Incident `json:"incidents,omitempty"`
	// Repairs holds the latest repairs of the requested services by other chains, oldest first. For TierObserve it is
	// empty.
	Repairs []PastRepair `json:"repairs,omitempty"`
	// Healed holds the incidents that the chain's last session has ended.
	Healed []Incident `json:"healed,omitempty"`
}

// Admit grants or refuses request. It checks, in this order: the chain's budget, the day's budget, cooldowns,
// services that another chain is repairing, and the escalation limit.
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

// minBudgetUSD is the smallest budget with which a session is started. It is less than the cost of any API call.
// Smaller remainders are often rounding errors of float addition.
const minBudgetUSD = 0.001

// admitSpending returns the smallest of the budgets that are set, or a refusal if one of them is used up. Running
// sessions seldom spend all of their reservation. So if only reservations exceed a budget, the refusal holds the time
// of the next attempt.
func admitSpending(policy Policy, request AdmissionRequest, facts AdmissionFacts) (budget float64, refusal *Admission) {
	budget = policy.For(request.Tier).BudgetUSD
	for _, limit := range []struct {
		usd, spent, reserved float64
		rule                 Rule
		what                 string
	}{
		{policy.ChainBudgetUSD, max(request.ChainSpentUSD, facts.ChainSpentUSD), 0, RuleChainBudget, "the chain's budget"},
		{policy.DayBudgetUSD, facts.DaySpentUSD, facts.DayReservedUSD, RuleDayBudget, "the budget of all chains for this day (UTC)"},
	} {
		if limit.usd == 0 {
			continue
		}
		rest := limit.usd - limit.spent - limit.reserved
		if rest >= minBudgetUSD {
			budget = min(cmp.Or(budget, rest), rest)
			continue
		}
		refusal := &Admission{Rule: limit.rule, Reason: fmt.Sprintf("%s cannot start: %s of $%.2f is spent or reserved ($%.2f)",
			request.Tier, limit.what, limit.usd, limit.spent+limit.reserved)}
		if limit.usd-limit.spent >= minBudgetUSD {
			refusal.WaitUntil = request.nextPoll(policy)
		}
		return 0, refusal
	}
	return budget, nil
}

// admitCooldown refuses a repair if none of the requested services may be repaired now. One free service is enough,
// because the agent can read the cooldowns of the other services.
func admitCooldown(policy Policy, request AdmissionRequest, facts AdmissionFacts) *Admission {
	if len(request.Services) == 0 {
		return nil
	}
	var first time.Time
	for _, state := range facts.Services {
		if !HasService(request.Services, state.Service) {
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
	// busyPoll is the shortest interval at which a chain asks again for a service that another chain is
	// repairing. A repair takes minutes.
	busyPoll = time.Minute
	// busyPollMax is the longest interval at which a chain asks again. It ensures that a chain that has waited for
	// hours still starts soon after the service is free.
	busyPollMax = 15 * time.Minute
)

// admitExclusion refuses the repair of a service that another chain is repairing. A chain that names no service counts as
// repairing all of them.
func admitExclusion(policy Policy, request AdmissionRequest, facts AdmissionFacts) *Admission {
	if len(facts.Busy) == 0 {
		return nil
	}
	return &Admission{Rule: RuleServiceBusy, Reason: facts.Busy[0].reason(request), WaitUntil: request.nextPoll(policy)}
}

// reason explains in a sentence why the request must wait for the chain of the BusyService.
func (b BusyService) reason(request AdmissionRequest) string {
	const all = "names no service and so may be at any of them"
	switch {
	case b.Service != "" && len(request.Services) > 0:
		return fmt.Sprintf("%s may not repair %s now: %s is at it", request.Tier, b.Service, b.chain())
	case b.Service != "":
		return fmt.Sprintf("%s may not repair now, because it %s: %s is at %s", request.Tier, all, b.chain(), b.Service)
	case len(request.Services) > 0:
		return fmt.Sprintf("%s may not repair %s now: %s %s", request.Tier, strings.Join(request.Services, ", "), b.chain(), all)
	default:
		return fmt.Sprintf("%s may not repair now, because it names no service: %s repairs and names none either",
			request.Tier, b.chain())
	}
}

// admitEscalation refuses the first repair of a chain if the escalation limit is reached.
func admitEscalation(policy Policy, request AdmissionRequest, facts AdmissionFacts) *Admission {
	limit := policy.EscalationLimit
	if !limit.IsSet() || facts.Escalated || facts.Escalations < limit.Max {
		return nil
	}
	return &Admission{Rule: RuleEscalationLimit, Reason: fmt.Sprintf(
		"%s cannot start: %d chains have escalated within %s, and %d are allowed", request.Tier,
		facts.Escalations, ShortDuration(limit.Window.Std()), limit.Max)}
}

// nextPoll returns the time at which the request asks again for something that another chain holds. If the chain may
// not wait any longer, it returns zero.
func (r AdmissionRequest) nextPoll(policy Policy) time.Time {
	deadline := r.deadline(policy)
	if !deadline.After(r.At) {
		return time.Time{}
	}
	next := busyPoll
	if !r.WaitingSince.IsZero() {
		next = min(max(busyPoll, r.At.Sub(r.WaitingSince)/4), busyPollMax)
	}
	return earlier(r.At.Add(next), deadline)
}

// deadline returns the end of the time for which the request may wait.
func (r AdmissionRequest) deadline(policy Policy) time.Time {
	since := r.WaitingSince
	if since.IsZero() {
		since = r.At
	}
	return since.Add(policy.Cooldowns.MaxWait.Std())
}
