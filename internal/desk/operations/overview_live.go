package operations

import (
	"cmp"
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/records/store"
)

// askTimeout limits the time for one chain of an overview.
const askTimeout = 3 * time.Second

// liveChains is what Temporal knows of the running chains that do not wait at a gate.
type liveChains struct {
	Part

	chains []liveChain
	// running counts all running chains, also those at gates and those that were not asked.
	running int
}

// liveChain is a running chain.
type liveChain struct {
	row Row
	// chain is the chain's own answer; nil if no worker has answered in time.
	chain *escalation.Chain
	// attempt and progress are those of the running session; nil if unknown.
	attempt  *Attempt
	progress *activities.TierProgress
	// ended reports whether the chain has ended meanwhile.
	ended bool
	// queue is the task queue of the chain's workflow; empty if Temporal could not describe the chain.
	queue string
	// recorded is the open session of the chain in the records; nil if there is none.
	recorded *escalation.Session
}

// askChains asks the running chains what they do, a few at a time. It leaves out those that wait at a gate, because
// Gates.List asks these.
func (o Overview) askChains(ctx context.Context) liveChains {
	connection, _, err := o.connect(ctx)
	if err != nil {
		return liveChains{Part: o.problem(err)}
	}
	query := ChainFilter{Running: true}.query()
	counted, err := connection.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: connection.Namespace, Query: query,
	})
	if err != nil {
		return liveChains{Part: o.problem(fmt.Errorf("count chains: %w", err))}
	}
	live := liveChains{running: int(counted.GetCount())}
	rows, err := List(ctx, connection, query+" AND "+withoutGate, maxOverview)
	if err != nil {
		live.Part = o.problem(err)
		return live
	}
	live.chains = o.askRows(ctx, connection, rows)
	return live
}

// askRows asks the chains in rows, in this order.
func (b *backend) askRows(ctx context.Context, c Connection, rows []Row) []liveChain {
	chains := make([]liveChain, len(rows))
	var asking errgroup.Group
	asking.SetLimit(MaxQueries)
	for i, row := range rows {
		asking.Go(func() error {
			chains[i] = b.askOne(ctx, c, row)
			return nil
		})
	}
	_ = asking.Wait() // the functions return no errors
	return chains
}

// askOne asks Temporal and the chain's workflow. Without a worker, Temporal alone answers.
func (b *backend) askOne(ctx context.Context, c Connection, row Row) liveChain {
	ctx, cancel := context.WithTimeout(ctx, min(askTimeout, b.Patience))
	defer cancel()
	live := liveChain{row: row}
	if described, err := c.DescribeWorkflowExecution(ctx, row.ID, ""); err == nil {
		live.ended = described.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
		live.queue = described.GetWorkflowExecutionInfo().GetTaskQueue()
		live.attempt, live.progress = attemptIn(described.GetPendingActivities(), c, "")
	}
	if chain, err := Query(ctx, c, row.ID, ""); err == nil {
		live.chain = &chain
	}
	return live
}

// session returns the running session; nil if there is none.
func (l *liveChain) session() *escalation.Session {
	if l.chain == nil {
		return l.recorded
	}
	if last := l.chain.Last(); last != nil && last.Status == escalation.SessionRunning {
		return last
	}
	return nil
}

// services returns the services of the chain.
func (l *liveChain) services() []string {
	if l.chain != nil {
		return l.chain.AllServices()
	}
	return l.row.Services
}

// plan returns the path of the plan that the chain works on; empty if there is none, or if that is not known.
func (l *liveChain) plan() string {
	if l.chain != nil && l.chain.Plan != nil {
		return l.chain.Plan.File
	}
	return l.row.Plan
}

// cost returns the cost of the chain so far.
func (l *liveChain) cost() escalation.Cost {
	if l.chain == nil {
		return l.row.Cost
	}
	now := Snapshot{Chain: *l.chain, Progress: l.progress}
	return escalation.Cost{CostUSD: now.CostUSD(), CostEstimated: now.CostEstimated()}
}

// wait says because of what the chain waits; nil if it does not wait.
func (l *liveChain) wait(locks []store.ServiceLock, now time.Time) *WaitingChain {
	wait := &WaitingChain{
		ChainID: l.row.ID, Services: l.services(), Trigger: escalation.Trigger(l.row.Trigger), Plan: l.plan(),
	}
	wait.Cost = l.cost()
	switch {
	case l.ended:
		return nil
	case l.chain != nil && l.chain.OpenGate() != nil: // it was opened after the list was made
		wait.addGate(*l.chain.OpenGate())
	case l.chain != nil && l.chain.Wait != nil:
		own := *l.chain.Wait
		wait.Kind, wait.Rule, wait.Reason, wait.Since, wait.Until = kindOfRule(own.Rule), own.Rule, own.Reason,
			own.Since, own.Until
		wait.complete(locks, now)
	case l.attempt != nil && wait.addAttempt(*l.attempt):
	case l.progress != nil && l.progress.Now.Waiting != "" && l.session() != nil:
		wait.Kind, wait.Reason = WaitPlace, l.progress.Now.Waiting
	case l.chain == nil && l.attempt == nil:
		wait.Kind, wait.Queue = WaitWorker, l.queue
		wait.Reason = fmt.Sprintf("no worker answered for it within %s; is one running on task queue %s?", askTimeout,
			l.queue)
	default:
		return nil
	}
	wait.Reason, wait.Failure = line(wait.Reason, maxError), line(wait.Failure, maxError)
	return wait
}

// working describes a chain that does not wait; nil if it has ended.
func (l *liveChain) working() *WorkingChain {
	if l.ended {
		return nil
	}
	working := &WorkingChain{
		ChainID: l.row.ID, Services: l.services(), Trigger: escalation.Trigger(l.row.Trigger), Plan: l.plan(),
		StartedAt: l.row.StartedAt,
	}
	working.Cost = l.cost()
	if l.chain == nil {
		working.Problem = "no worker answered for it; what Temporal and the records know is shown"
	} else {
		working.DryRun = l.chain.DryRun
		for _, issue := range l.chain.Issues {
			if issue.ChainID != "" && issue.Outcome == "" {
				working.Issues++
			}
		}
	}
	session := l.session()
	switch {
	case session != nil:
		working.Session = sessionNow(*session, l.attempt, l.progress)
		working.Doing = doing(l.attempt, l.progress)
	case working.Issues > 0:
		working.Doing = "waits for the chains of " + plaintext.Count(working.Issues, "issue")
	case l.chain != nil && l.chain.Outcome != "":
		working.Doing = fmt.Sprintf("has ended %s, and tells people", l.chain.Outcome)
	default:
		working.Doing = "is between two steps"
	}
	return working
}

// sessionNow describes a running session. The arguments attempt and progress can be nil.
func sessionNow(session escalation.Session, attempt *Attempt, progress *activities.TierProgress) *WorkingSession {
	now := &WorkingSession{
		Number: session.ID, SessionID: session.SessionID, Tier: session.Tier, Model: session.Model,
		StartedAt: session.StartedAt, BudgetUSD: session.BudgetUSD, Purpose: session.Purpose, Phase: session.Phase,
	}
	if attempt != nil {
		now.Attempt, now.Failure = attempt.Number, line(attempt.Failure, maxError)
	}
	if progress != nil {
		total := progress.Total()
		now.Turns, now.CostUSD, now.Host = total.Turns, total.CostUSD, line(progress.Host, maxToolName)
	}
	return now
}

// kindOfRule returns the kind of a wait with a rule.
func kindOfRule(rule escalation.Rule) WaitKind {
	kinds := map[escalation.Rule]WaitKind{
		escalation.RuleCooldown: WaitCooldown, escalation.RuleServiceBusy: WaitService,
		escalation.RuleDayBudget: WaitBudget,
	}
	return cmp.Or(kinds[rule], WaitOther)
}

// complete adds the holders of services, and the begin of the next day's budget.
func (w *WaitingChain) complete(locks []store.ServiceLock, now time.Time) {
	if w.Kind == WaitBudget {
		w.ResetsAt = newDay(now).ResetsAt
	}
	for _, lock := range locks {
		holds := lock.Service == "" || len(w.Services) == 0 || escalation.HasService(w.Services, lock.Service)
		if w.Kind == WaitService && holds && lock.ChainID != w.ChainID {
			w.Holders = append(w.Holders, ServiceHolder{lock.Service, lock.ChainID, lock.Since})
		}
	}
}

// addAttempt describes the wait of an attempt. It returns false if the attempt does not wait.
func (w *WaitingChain) addAttempt(attempt Attempt) bool {
	switch attempt.State {
	case AttemptStarted:
		return false
	case AttemptScheduled:
		w.Kind, w.Until = WaitRetry, attempt.StartsAt
	case AttemptQueued:
		w.Kind, w.Queue = WaitWorker, attempt.Queue
	case AttemptPaused:
		w.Kind = WaitPaused
	}
	w.Attempt, w.Failure, w.Reason = attempt.Number, attempt.Failure, attempt.reason()
	return true
}

// reason explains in a sentence for what an attempt waits.
func (a *Attempt) reason() string {
	var reason string
	switch a.State {
	case AttemptStarted:
	case AttemptScheduled:
		reason = fmt.Sprintf("attempt %d starts at its time", a.Number)
	case AttemptQueued:
		reason = fmt.Sprintf("attempt %d waits for a free worker on task queue %s", a.Number, a.Queue)
	case AttemptPaused:
		reason = fmt.Sprintf("somebody has paused attempt %d in Temporal", a.Number)
	}
	if before := a.Before(); before != "" {
		reason += "; " + before
	}
	return reason
}

// addGate describes the wait at a gate.
func (w *WaitingChain) addGate(gate escalation.Gate) {
	w.Kind, w.Rule, w.Reason, w.Since, w.Until = WaitGate, gate.Rule, gate.Reason, gate.OpenedAt, gate.ExpiresAt
	w.Cost = gate.Cost
}

// gateWait describes the wait of a chain in the list of gates.
func gateWait(row GateRow) WaitingChain {
	wait := WaitingChain{
		ChainID: row.ChainID, Services: row.Services, Cost: row.Cost, Kind: WaitGate,
	}
	if row.Gate == nil {
		wait.Reason = "it waits for a person; its gate is unknown, because " + line(row.Problem, maxError)
		return wait
	}
	wait.addGate(*row.Gate)
	wait.Reason = line(wait.Reason, maxError)
	return wait
}
