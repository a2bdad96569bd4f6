package year

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
)

func agentActivities() []string { return activities.AgentActivities() }

func errorsAs[T error](err error) (T, bool) { return errors.AsType[T](err) }

// refusal is a way in which the provider says no. Its function ends the session, whose report has no cost yet: it
// changes the report, or returns the error of an attempt that may be repeated.
type refusal struct {
	name string
	end  func(report *activities.AgentReport) error
}

// refusals returns every way in which a session ends without its result because of the model, its provider or its
// account, and no result.
func refusals() []refusal {
	ways := []refusal{{"no verdict", func(report *activities.AgentReport) error {
		report.CostUSD = 0.01
		return nil
	}}}
	for _, ending := range escalation.Endings() {
		switch ending { //nolint:exhaustive // the others are of the provider
		case escalation.EndingNone, escalation.EndingUnusable, escalation.EndingOurLimit, escalation.EndingGuard, escalation.EndingNoResult:
			continue
		}
		ways = append(ways, refusal{string(ending), func(report *activities.AgentReport) error {
			report.Status, report.Ending, report.Error, report.CostUSD = escalation.SessionFailed, ending, "the provider says: "+string(ending), 0.01
			if ending == escalation.EndingLimited {
				return limitedUntil(time.Now().Add(2 * time.Hour).Truncate(time.Second)).end(report)
			}
			return nil
		}})
	}
	return ways
}

// limitedUntil returns the refusal of an account whose limit is used up until a time.
func limitedUntil(until time.Time) *refusal {
	return &refusal{string(escalation.EndingLimited), func(report *activities.AgentReport) error {
		report.Status, report.Ending, report.Error = escalation.SessionFailed, escalation.EndingLimited, "the limit is used up"
		report.LimitedUntil, report.CostUSD = until, 0
		return nil
	}}
}

// agents plays the agents of all hosts.
type agents struct {
	world *world
	mu    sync.Mutex
	// inputs holds what the sessions were told, by session.
	inputs map[string]activities.RunTierInput
	// conversations holds the sessions that have a conversation, and the number of the host that has it.
	conversations map[string]int
	host          int
	stopping      chan struct{} // is closed when the worker stops
	// paid is what the provider has billed, by the day on which the session began, and by session.
	paidDays     map[string]float64
	paidSessions map[string]float64
	ran          map[string]int // sessions, by tier or purpose
	refused      map[string]int // sessions, by the way of the refusal
	refusedAlone int            // sessions that were refused outside of the times in which all are
	refuses      int
	hectic       bool
	poisoned     map[string]int // the sessions that were refused because of a conversation, by the conversation
	paidRefusals map[string]int // by session and way
	limited      span           // from the first report of the account's limit until its end
	changes      map[string]*activities.Change
	answers      func(run activities.AgentRun, prompt string) escalation.TalkReply
	// recorded returns when a session was opened, and whether a person had it started in spite of a limit.
	recorded func(sessionID string) (opened time.Time, forced bool)
	problem  func(format string, args ...any)
	distorts func(way string, report *activities.AgentReport) // changes how a refusal is reported, for the tests of the invariants
	// looks holds the latest look of each chain, and repairs what agents have worked on. Those who look have seen
	// everything at the end.
	looks   map[string]span
	repairs []repair
}

// repair is the work of an agent at a service.
type repair struct {
	span

	chainID, service string
}

// checkRepair checks that no other agent works at a service, and that the chain has a reason to repair it: a person has
// said so, or the service was broken at some time since the chain's latest look began, and no other chain had repaired
// it before that look ended.
func (a *agents) checkRepair(input activities.RunTierInput, service string, now span) {
	for _, other := range a.repairs {
		if other.service == service && other.chainID != input.ChainID && other.to.After(now.from) && now.to.After(other.from) {
			a.problem("two agents work at %s: those of the chains %s and %s, at %s", service, other.chainID, input.ChainID, now.from)
		}
	}
	a.repairs = append(a.repairs, repair{now, input.ChainID, service})
	look, looked := a.looks[input.ChainID]
	if !looked { // an issue begins with the look of its parent
		parent, _, _ := strings.Cut(input.ChainID, "-issue-")
		look, looked = a.looks[parent]
	}
	if input.Guidance != "" || !looked || a.world.broken(service, now.from) != nil {
		return
	}
	found := ""
	for at := look.from; !at.After(now.from); at = at.Add(time.Minute) {
		one := a.world.broken(service, at)
		if one == nil {
			continue
		}
		if one.repairedAt.IsZero() || one.repairer == input.ChainID || !one.repairEnds.Before(look.to) {
			return
		}
		found = fmt.Sprintf("; chain %s had repaired it at %s", one.repairer, one.repairedAt)
	}
	a.problem("chain %s repairs %s at %s, which nobody had to: its look ended at %s%s", input.ChainID, service, now.from, look.to, found)
}

func newAgents(w *world, of life) *agents {
	return &agents{
		world: w, refuses: of.refuses, hectic: of.hectic, poisoned: map[string]int{}, paidRefusals: map[string]int{}, changes: map[string]*activities.Change{}, inputs: map[string]activities.RunTierInput{}, conversations: map[string]int{}, stopping: make(chan struct{}),
		paidDays: map[string]float64{}, paidSessions: map[string]float64{}, ran: map[string]int{}, refused: map[string]int{},
		looks: map[string]span{},
	}
}

// restart stops all agents. With a lost host, its conversations are gone.
func (a *agents) restart(lost bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.stopping)
	a.stopping = make(chan struct{})
	if lost {
		a.host++
	}
}

// HasConversation implements activities.Agent.
func (a *agents) HasConversation(_ context.Context, _, sessionID string) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	host, found := a.conversations[sessionID]
	return found && host == a.host, nil
}

// Concluded implements activities.Agent.
func (a *agents) Concluded(context.Context, string, string) (*activities.AgentReport, error) {
	return nil, nil
}

// Run implements activities.Agent.
func (a *agents) Run(
	ctx context.Context, run activities.AgentRun, observe func(activities.AgentProgress),
) (activities.AgentReport, error) {
	report := activities.AgentReport{Report: escalation.Report{Status: escalation.SessionCompleted, Attempts: 1}}
	prompt := run.Prompt
	if run.LatePrompt != nil {
		late, err := run.LatePrompt()
		if err != nil {
			return report, err
		}
		prompt = late
	}
	if run.Resume != "" && run.Resume != run.SessionID {
		if known, _ := a.HasConversation(ctx, "", run.Resume); !known {
			report.Status, report.Error = escalation.SessionTranscriptLost, "the transcript is gone"
			return report, nil
		}
	}
	if run.TextField != "" {
		a.answers(run, prompt)
	}
	began := time.Now()
	cost, takes, kind := a.plan(run)
	a.begin(run, kind)
	report.ReportedSessionID, report.ContextTokens, report.ContextWindow, report.Turns = run.SessionID, 10_000, 200_000, 3
	report.Tokens = escalation.TokenUsage{Input: 10_000, Output: 500}
	defer func() {
		if *verbose {
			fmt.Println("RAN", began.UTC().Format(time.DateTime), time.Since(began), run.SessionID, kind, report.Status, report.CostUSD, report.Error)
		}
		report.DurationMS = time.Since(began).Milliseconds()
		a.pay(run.SessionID, report.CostUSD)
	}()
	if refused := a.refusal(run, began); refused != nil {
		if err := a.work(ctx, run, min(20*time.Second, takes), &report, cost); err != nil || report.Status != escalation.SessionCompleted {
			a.askAgain(run.SessionID, refused.name)
			return report, err
		}
		err := refused.end(&report)
		a.checkRefusal(run, refused, &report)
		a.distorts(refused.name, &report)
		return report, err
	}
	observe(activities.AgentProgress{Turns: 1, CostUSD: cost / 2})
	if err := a.work(ctx, run, takes, &report, cost); err != nil || report.Status != escalation.SessionCompleted {
		return report, err
	}
	report.CostUSD = cost
	if limit := run.Policy.BudgetUSD; limit > 0 && cost > limit {
		report.CostUSD, report.Status, report.Error = limit, escalation.SessionBudgetExhausted, "its budget is spent"
		report.Ending = escalation.EndingOurLimit
		return report, nil
	}
	if limit := run.Policy.MaxTurns; limit > 0 && limit < report.Turns {
		report.Turns, report.Status, report.Error = limit, escalation.SessionBudgetExhausted, "its turns are used up"
		report.Ending = escalation.EndingOurLimit
		return report, nil
	}
	if run.LeavesHandoff {
		return report, nil // the agent forgets to write it
	}
	if run.Authoring != nil {
		report.Change = a.commit(run)
	}
	var err error
	report.Output, err = json.Marshal(a.conclude(run, prompt, span{began, time.Now()}))
	return report, err
}

// plan draws what a session costs and how long it takes.
func (a *agents) plan(run activities.AgentRun) (cost float64, takes time.Duration, kind string) {
	w := a.world
	kind, cost, takes = "look", 0.01, w.between(30*time.Second, 3*time.Minute, run.SessionID, "takes")
	switch {
	case run.Authoring != nil:
		kind, cost, takes = "author", 0.30, w.between(3*time.Minute, 20*time.Minute, run.SessionID, "takes")
	case run.Schema == review.Schema:
		kind, cost, takes = "review", 0.10, w.between(time.Minute, 5*time.Minute, run.SessionID, "takes")
	case run.TextField != "":
		kind, cost, takes = "talk", 0.04, w.between(3*time.Second, 40*time.Second, run.SessionID, "takes")
	case run.Tier == escalation.TierSafeRepair:
		kind, cost, takes = "tier 2", 0.20, w.between(3*time.Minute, 14*time.Minute, run.SessionID, "takes")
	case run.Tier == escalation.TierFullRepair:
		kind, cost, takes = "tier 3", 1.00, w.between(5*time.Minute, 25*time.Minute, run.SessionID, "takes")
	}
	if a.hectic && kind != "talk" {
		takes = 12 * time.Minute
	}
	return cost * (1 + float64(w.draw(300, run.SessionID, "cost"))/100), takes, kind
}

func (a *agents) begin(run activities.AgentRun, kind string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conversations[run.SessionID] = a.host
	a.ran[kind]++
}

func (a *agents) count(counts map[string]int, what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	counts[what]++
}

// sessions returns how many sessions have cost something.
func (a *agents) sessions() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.paidSessions)
}

// pay adds to the provider's bill.
func (a *agents) pay(sessionID string, usd float64) {
	opened, _ := a.recorded(sessionID)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.paidDays[opened.UTC().Format(time.DateOnly)] += usd
	a.paidSessions[sessionID] += usd
}

func (a *agents) forced(sessionID string) bool {
	_, forced := a.recorded(sessionID)
	return forced
}

// refusal returns how the provider refuses a call now; nil if it does not.
func (a *agents) refusal(run activities.AgentRun, at time.Time) *refusal {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.limited.to.After(at) {
		if at.Sub(a.limited.from) > 10*time.Minute && !a.forced(run.SessionID) { // those that had been admitted have begun by then
			a.problem("a session of %s begins at %s, although it is known that the account is limited until %s", run.ChainID,
				at.UTC().Format(time.RFC3339), a.limited.to.UTC().Format(time.RFC3339))
		}
		return limitedUntil(a.limited.to)
	}
	for i := range a.world.refusals {
		if one := &a.world.refusals[i]; !at.Before(one.from) && at.Before(one.to) &&
			strings.Contains(run.Policy.Model, one.model) {
			return &one.way
		}
	}
	if a.refuses == 0 {
		return nil
	}
	if run.Resume != "" && a.world.in(a.refuses, run.Resume, "is poisoned") {
		return &refusal{"poisoned", func(report *activities.AgentReport) error {
			report.Status, report.Ending, report.Error = escalation.SessionResumeFailed, escalation.EndingUnusable, "400: thinking blocks"
			return nil
		}}
	}
	if a.world.in(a.refuses, run.SessionID, run.Resume, "is refused") {
		ways := refusals()
		return &ways[a.world.draw(len(ways), run.SessionID, "way")]
	}
	return nil
}

// mayRefuse is how often one session is refused at most, by the way of the refusal. What is not here is refused for
// good, and once.
var mayRefuse = map[string]int{
	"no verdict":                      2, // it is asked again, once
	string(escalation.EndingTooLong):  2, // it is asked once for a shorter answer
	string(escalation.EndingUnknown):  3,
	string(escalation.EndingProvider): 10,
}

// checkRefusal checks that no session is paid twice for one refusal, and that no conversation is resumed that the
// provider has refused.
func (a *agents) checkRefusal(run activities.AgentRun, way *refusal, report *activities.AgentReport) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused[way.name]++
	a.refusedAlone++
	if *verbose {
		fmt.Println("REFUSED", time.Now().UTC().Format(time.DateTime), run.ChainID, run.SessionID, run.Resume, way.name, run.Tier)
	}
	if report.Ending == escalation.EndingLimited && !a.limited.to.After(time.Now()) {
		a.limited = span{time.Now(), report.LimitedUntil}
	}
	key := run.SessionID + " " + way.name
	a.paidRefusals[key]++
	if a.paidRefusals[key] > max(1, mayRefuse[way.name]) {
		a.problem("session %s of %s is paid for %d times, and refused each time: %s", run.SessionID, run.ChainID, a.paidRefusals[key], way.name)
	}
	if way.name != "poisoned" {
		return
	}
	a.poisoned[run.Resume]++
	if a.poisoned[run.Resume] > 1 {
		a.problem("the provider refuses the conversation %s for good, and %s resumes it for the %d. time", run.Resume, run.ChainID, a.poisoned[run.Resume])
	}
}

// askAgain lets a session that its worker has stopped be refused as often as a new one.
func (a *agents) askAgain(sessionID, way string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.paidRefusals, sessionID+" "+way)
}

// work waits until the work is done, or until something stops it.
func (a *agents) work(
	ctx context.Context, run activities.AgentRun, takes time.Duration, report *activities.AgentReport, cost float64,
) error {
	a.mu.Lock()
	stopping := a.stopping
	a.mu.Unlock()
	limit := time.Duration(run.Policy.Timeout)
	if limit <= 0 {
		limit = takes
	}
	select {
	case <-time.After(min(takes, limit)):
		if takes > limit {
			report.CostUSD, report.Status, report.Ending = cost/2, escalation.SessionTimedOut, escalation.EndingOurLimit
			report.Error = fmt.Sprintf("it ran for more than %s", limit)
		}
	case <-ctx.Done():
		report.CostUSD, report.Status, report.Error = cost/2, escalation.SessionStopped, "it was stopped"
	case <-stopping:
		report.CostUSD, report.Status, report.Error = cost/2, escalation.SessionStopped, "its worker stopped"
		return activities.ErrDraining
	}
	return nil
}

// conclude returns the structured output of a session.
func (a *agents) conclude(run activities.AgentRun, prompt string, of span) any {
	if run.TextField != "" {
		return a.answers(run, prompt)
	}
	if run.Authoring != nil {
		return review.Work{
			Status:  []review.WorkStatus{review.WorkComplete, review.WorkComplete, review.WorkComplete, review.WorkNeedsHuman}[a.world.draw(4, run.SessionID, "work")],
			Summary: "what was to do",
		}
	}
	if run.Schema == review.Schema {
		return a.review(run)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	input, found := a.inputs[run.SessionID]
	if !found {
		panic("nobody has told the session what to do: " + run.SessionID)
	}
	if run.Tier == escalation.TierObserve {
		a.looks[input.ChainID] = of
		return a.world.look(input, of.to)
	}
	for _, service := range a.world.repairs(input) {
		a.checkRepair(input, service, of)
	}
	return a.world.repair(input, of.to)
}
