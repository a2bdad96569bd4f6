package escalation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation/calendar"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// AdmissionRequest asks whether a session may start.
type AdmissionRequest struct {
	ChainID string `json:"chain_id"`
	// FirstRunID is the run ID with which the chain began. ChainID and FirstRunID together identify the chain.
	FirstRunID string  `json:"first_run_id,omitempty"`
	Tier       Tier    `json:"tier"`
	Purpose    Purpose `json:"purpose,omitempty"`
	// At is the time of the request, by the workflow's clock.
	At time.Time `json:"at"`
	// Services holds the services to be repaired. If Services is empty, the repair counts as working on all services.
	Services []string `json:"services,omitempty"`
	// ChainSpentUSD is the spending of the chain in US dollars, as the workflow counts it. After a reset of the
	// workflow, this can be less than the spending in the records, because the records keep the discarded sessions.
	ChainSpentUSD float64 `json:"chain_spent_usd"`
	// Force overrides the cooldowns and the limit of the account. Only an operator sets Force.
	Force bool `json:"force,omitempty"`
	// Correction reports that the session corrects what its chain has committed, or goes on after a limit of the
	// account. It is not delayed by cooldowns, which the chain's own repair has started. Each restart of a service is
	// still charged.
	Correction bool `json:"correction,omitempty"`
	// Passes lists the rules that an operator has overridden at a gate: the cooldown, the escalation limit, the limit
	// of the account.
	Passes []Rule `json:"passes,omitempty"`
	// Incidents holds the IDs of the incidents that the chain works on, as far as its workflow knows them.
	Incidents []string `json:"incidents,omitempty"`
	// Actor is the person whose message a session of a conversation answers; empty for other sessions.
	Actor string `json:"actor,omitempty"`
	// WaitingSince is the time at which the chain began to wait for admission; zero if it has not waited.
	WaitingSince time.Time `json:"waiting_since,omitzero"`
	// Previous is the conversation ID of the chain's previous session; empty for the first session. That session must
	// be recorded and closed.
	Previous string `json:"previous,omitempty"`
	// Parent is the conversation ID of the session's parent; empty if the parent is unknown or has no record.
	// ParentChain is the chain of the parent; empty for the chain of the request. The number of a record is not enough:
	// after the records were restored from a backup, another record can have the same number.
	Parent      string `json:"parent,omitempty"`
	ParentChain string `json:"parent_chain,omitempty"`
}

// Repairs reports whether policy permits the session to change services. Dry runs, rechecks, handoffs, authors and Tier
// 1 must not change any service, so their admission depends only on the budgets.
func (r AdmissionRequest) Repairs(policy Policy) bool {
	return r.Tier >= TierSafeRepair && (r.Purpose == PurposeTier || r.Purpose == PurposeContinuation) && !policy.DryRun
}

// overrides reports whether an operator has overridden a rule for the session.
func (r AdmissionRequest) overrides(rule Rule) bool {
	return slices.Contains(r.Passes, rule) || r.Force && (rule == RuleCooldown || rule == RuleAccountLimit)
}

// AdmissionFacts holds facts from the records on which an admission depends. The facts are read in one transaction.
type AdmissionFacts struct {
	// LimitedUntil is the end of the limit of the account at the model's provider, if a session has met that limit;
	// zero if no limit that concerns the session's model is known to be used up. LimitedModel names the models that it
	// concerns; empty for all.
	LimitedUntil time.Time `json:"limited_until,omitzero"`
	LimitedModel string    `json:"limited_model,omitempty"`
	// DaySpentUSD is the cost of the ended sessions of this day (UTC). A session with unknown cost counts with its
	// reservation.
	DaySpentUSD float64 `json:"day_spent_usd"`
	// DayReservedUSD is the sum of the budgets of this day's running sessions.
	DayReservedUSD float64 `json:"day_reserved_usd,omitempty"`
	// ChainSpentUSD is the cost of all ended sessions of the chain, including sessions that a reset discarded. A
	// session with unknown cost counts with its reservation.
	ChainSpentUSD float64 `json:"chain_spent_usd"`
	// Services holds the cooldowns of the requested services, and of all other services with recent repairs.
	Services []ServiceState `json:"services,omitempty"`
	// Escalations counts the other chains that have repaired a service within the window of the escalation
	// limit.
	Escalations int `json:"escalations"`
	// Escalated reports whether this chain has repaired a service before. In that case the escalation limit does not
	// apply to this chain.
	Escalated bool `json:"escalated,omitempty"`
	// Busy lists the requested services that other chains are repairing. If the request names no service, Busy lists
	// every service that another chain is repairing. A repairing chain without a named service is always listed,
	// because it counts as working on all services.
	Busy []BusyService `json:"busy,omitempty"`
	// TalksOfActor counts the running sessions of other conversations that answer the same person.
	TalksOfActor int `json:"talks_of_actor,omitempty"`
}

// BusyService names a service and the chain that is repairing it.
type BusyService struct {
	// Service is the name of the service; empty if the chain has named no service. A chain that names no service counts
	// as working on all services.
	Service string `json:"service"`
	ChainID string `json:"chain_id"`
}

// Admission is the answer to an AdmissionRequest.
type Admission struct {
	Granted bool `json:"granted"`
	// BudgetUSD is the session's budget in US dollars. It is 0, no cap, only if neither the session nor its chain nor
	// the day has a budget.
	BudgetUSD float64 `json:"budget_usd,omitempty"`
	// Forced reports whether the request was granted only because an operator overrode the cooldowns or the escalation
	// limit.
	Forced bool `json:"forced,omitempty"`
	// Rule is the rule that refused the request; RuleAdmitted if the request was granted.
	Rule Rule `json:"rule"`
	// Reason explains the refusal in a sentence.
	Reason string `json:"reason,omitempty"`
	// WaitUntil is the time at which the chain should repeat a refused request; zero if waiting does not help, or if
	// the request was granted.
	WaitUntil time.Time `json:"wait_until,omitzero"`
	// EndsAt is the end of the limit that refused the request, as far as it is known; zero if not.
	EndsAt time.Time `json:"ends_at,omitzero"`
	// LimitedModel names the models that the limit of the account concerns; empty for all models, and for other rules.
	LimitedModel string `json:"limited_model,omitempty"`
}

// AdmissionResult is the result of opening a session. It contains either Session or Refusal.
type AdmissionResult struct {
	// Session is the session as recorded; zero if the request was refused.
	Session Session `json:"session,omitzero"`
	// Refusal holds the refusal; nil if the session may start.
	Refusal *Admission `json:"refusal,omitempty"`
	// Services holds the cooldowns of the requested services, and of the MaxOtherStates other services with the latest
	// repairs, sorted by name.
	Services []ServiceState `json:"services,omitempty"`
	IncidentBrief
}

// IncidentBrief informs an agent and its chain about incidents in the records.
type IncidentBrief struct {
	// Incidents holds the incidents that the chain works on, each with the work of other chains only. An admitted
	// session of TierObserve is an exception: for it, Incidents holds the most important open incidents of the
	// requested services, or of all services if the request names none.
	Incidents []Incident `json:"incidents,omitempty"`
	// Repairs holds the latest repairs of the requested services by other chains, oldest first; empty for TierObserve.
	Repairs []PastRepair `json:"repairs,omitempty"`
	// Healed holds the incidents that the chain's latest ended session has resolved, and on which other chains still
	// work.
	Healed []Incident `json:"healed,omitempty"`
	// Notes is for the gate that follows the chain's latest session; nil if none does.
	Notes *GateNotes `json:"notes,omitempty"`
}

// Admit grants or refuses request. It checks in this order: the limit of the account, the budget of the chain, the
// budget of the day, the conversations of a person, cooldowns, services that other chains are repairing, and the
// escalation limit.
func Admit(policy Policy, request AdmissionRequest, facts AdmissionFacts) Admission {
	limited := admitAccount(policy, request, facts)
	if limited != nil && !request.overrides(RuleAccountLimit) {
		return *limited
	}
	budget, refusal := admitSpending(policy, request, facts)
	if refusal != nil {
		return *refusal
	}
	granted := Admission{Granted: true, BudgetUSD: budget, Rule: RuleAdmitted, Forced: limited != nil}
	if request.Purpose == PurposeTalk && policy.TalksPerPerson > 0 && facts.TalksOfActor >= policy.TalksPerPerson {
		return Admission{Rule: RuleTalksOfPerson, WaitUntil: request.nextPoll(policy), Reason: fmt.Sprintf(
			"other conversations answer %s already, and a person has at most %d answered at the same time",
			plaintext.Line(request.Actor), policy.TalksPerPerson)}
	}
	if !request.Repairs(policy) {
		return granted
	}
	for _, check := range []func(Policy, AdmissionRequest, AdmissionFacts) *Admission{
		admitCooldown, admitExclusion, admitEscalation,
	} {
		switch refusal := check(policy, request, facts); {
		case refusal == nil:
		case refusal.Rule != RuleServiceBusy && request.overrides(refusal.Rule):
			granted.Forced = true
		default:
			return *refusal
		}
	}
	return granted
}

// admitAccount refuses every session that the limit of the account concerns until that limit ends, because it would end
// at once.
func admitAccount(policy Policy, request AdmissionRequest, facts AdmissionFacts) *Admission {
	if !facts.LimitedUntil.After(request.At) {
		return nil
	}
	refusal := &Admission{
		Rule: RuleAccountLimit, Reason: limitReason(facts.LimitedUntil, facts.LimitedModel),
		EndsAt: facts.LimitedUntil, LimitedModel: facts.LimitedModel,
	}
	if !facts.LimitedUntil.After(request.deadline(policy)) {
		refusal.WaitUntil = facts.LimitedUntil
	}
	return refusal
}

// limitReason describes the limit of the account, for all models or for those with a word in their names. It is the
// same for all sessions, so that people are told once.
func limitReason(until time.Time, model string) string {
	of, session := "", "no session"
	if model != "" {
		of, session = " for "+plaintext.Line(model), "no session with it"
	}
	return fmt.Sprintf("the limit of the account%s at the model's provider is used up, and %s starts before its end "+
		"at %s",
		of, session, calendar.Clock(until, time.Time{}))
}

// minBudgetUSD is the smallest budget with which a session can start. No API call costs less. A smaller remainder of a
// budget is often a rounding error of float addition.
const minBudgetUSD = 0.001

// minBudgetShare is the smallest part of a session's own budget with which it starts on the rest of another. With less,
// a session most likely ends without a result, which would look like a failure.
const minBudgetShare = 0.1

const day = 24 * time.Hour

// uncappedShare is the part of what is left of a day's budget that a session without a cap reserves. The day's budget
// holds, so this part is also the most that the session can spend. It is a quarter, so that work has room, and others
// can still start beside it: four such sessions leave a third.
const uncappedShare = 0.25

// leastUSD returns the least rest of a limit with which a session starts, in US dollars. The argument budget is the
// session's own budget; 0 if it has no cap. Less than a tenth of the budget most likely ends without a result.
func leastUSD(limit, budget float64) float64 {
	if budget == 0 {
		budget = uncappedShare * limit
	}
	return max(minBudgetUSD, minBudgetShare*min(budget, limit))
}

// admitSpending returns the session's budget: the smallest of its own budget and the remaining budgets of the chain and
// of the day. A session without a cap gets what is left of the chain's budget, because a chain runs one session at a
// time, or a part of what is left of the day's (see uncappedShare). If too little is left, admitSpending returns a
// refusal. If enough is left without the reservations of running sessions, the refusal holds the time of the next
// attempt. Running sessions seldom spend their whole reservations.
func admitSpending(policy Policy, request AdmissionRequest, facts AdmissionFacts) (budget float64, refusal *Admission) {
	own := policy.For(request.Tier).BudgetUSD
	budget = own
	if limit := policy.ChainBudgetUSD; limit > 0 {
		spent := max(request.ChainSpentUSD, facts.ChainSpentUSD)
		rest := limit - spent
		if rest < leastUSD(limit, own) {
			return 0, &Admission{Rule: RuleChainBudget, Reason: request.spent("the chain's budget", limit, spent)}
		}
		budget = min(cmp.Or(budget, rest), rest)
	}
	limit := policy.DayBudgetUSD
	if limit == 0 {
		return budget, nil
	}
	rest, least := limit-facts.DaySpentUSD-facts.DayReservedUSD, leastUSD(limit, own)
	switch {
	case rest >= least && budget == 0:
		return max(uncappedShare*rest, least), nil
	case rest >= least:
		return min(budget, rest), nil
	}
	refusal = &Admission{Rule: RuleDayBudget, EndsAt: request.At.UTC().Truncate(day).Add(day), Reason: request.spent(
		"the budget of all chains for this day (UTC)", limit, facts.DaySpentUSD+facts.DayReservedUSD)}
	if limit-facts.DaySpentUSD >= least {
		refusal.WaitUntil = request.nextPoll(policy)
	}
	return 0, refusal
}

// spent says in a sentence that a budget does not suffice.
func (r AdmissionRequest) spent(what string, limit, usd float64) string {
	reason := fmt.Sprintf("%s cannot start: %s of %s is spent or reserved (%s)", r.Tier, what,
		plaintext.Dollars(limit), plaintext.Dollars(usd))
	if rest := limit - usd; rest >= minBudgetUSD {
		reason += fmt.Sprintf(", and %s is too little for a session", plaintext.Dollars(rest))
	}
	return reason
}

// admitCooldown refuses a repair if the cooldowns now forbid the repair of every requested service. If they permit the
// repair of at least one service, admitCooldown admits the session. Its agent can read the cooldowns of the other
// services.
func admitCooldown(policy Policy, request AdmissionRequest, facts AdmissionFacts) *Admission {
	if len(request.Services) == 0 || request.Correction {
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
	refusal := &Admission{
		Rule: RuleCooldown, EndsAt: first,
		Reason: fmt.Sprintf("%s may not repair %s now: its cooldown is not over",
			request.Tier, strings.Join(request.Services, ", ")),
	}
	if !first.IsZero() && !first.After(request.deadline(policy)) {
		refusal.WaitUntil = first
	}
	return refusal
}

const (
	// busyPoll is the shortest interval at which a chain asks again for a busy service. A shorter interval would not
	// help, because a repair takes minutes.
	busyPoll = time.Minute
	// busyPollMax is the longest interval at which a chain asks again for a busy service. Even a chain that has waited
	// for hours starts within this interval after the service is free.
	busyPollMax = 15 * time.Minute
)

// admitExclusion refuses the repair of a service that another chain is repairing. A chain that names no service counts
// as repairing all services.
func admitExclusion(policy Policy, request AdmissionRequest, facts AdmissionFacts) *Admission {
	if len(facts.Busy) == 0 {
		return nil
	}
	return &Admission{
		Rule: RuleServiceBusy, Reason: facts.Busy[0].reason(request), WaitUntil: request.nextPoll(policy),
		EndsAt: request.At,
	}
}

// reason explains in a sentence why the request must wait for the chain that b describes.
func (b BusyService) reason(request AdmissionRequest) string {
	const all = "names no service and so may be at any of them"
	switch {
	case b.Service != "" && len(request.Services) > 0:
		return fmt.Sprintf("%s may not repair %s now: chain %s is at it", request.Tier, b.Service, b.ChainID)
	case b.Service != "":
		return fmt.Sprintf("%s may not repair now, because it %s: chain %s is at %s", request.Tier, all, b.ChainID,
			b.Service)
	case len(request.Services) > 0:
		return fmt.Sprintf("%s may not repair %s now: chain %s %s", request.Tier, strings.Join(request.Services, ", "),
			b.ChainID, all)
	default:
		return fmt.Sprintf("%s may not repair now, because it names no service: chain %s repairs and names none either",
			request.Tier, b.ChainID)
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
		facts.Escalations, plaintext.Length(limit.Window.Std()), limit.Max)}
}

// nextPoll returns the time at which the chain repeats a request that was refused because of other chains. Those chains
// repair a service or have reserved a budget. If the chain must not wait any longer, nextPoll returns zero.
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

// deadline returns the time at which the chain must stop waiting for admission.
func (r AdmissionRequest) deadline(policy Policy) time.Time {
	since := r.WaitingSince
	if since.IsZero() {
		since = r.At
	}
	return since.Add(policy.Cooldowns.MaxWait.Std())
}
