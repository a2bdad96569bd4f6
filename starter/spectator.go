package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

const (
	// followInterval is how often a chain is looked at. Heartbeats come every second.
	followInterval = 250 * time.Millisecond
	// queryTimeout is how long a worker has to answer a question, so that nobody waits for one that is away.
	queryTimeout = 10 * time.Second
	// notifyGrace is how long a chain whose outcome is known is followed for its notifications. A
	// service that is well takes them within that; one that is away may keep the chain open for an hour.
	notifyGrace = 5 * time.Second
	// maxQueries is how many chains are asked at a time: each question occupies a worker.
	maxQueries = 8
)

// spectator looks at a chain until it has ended.
type spectator struct {
	client client.Client
	run    client.WorkflowRun
	// patience is how long a worker has to answer a question.
	patience time.Duration
}

// sight is what a spectator sees of a chain at one moment.
type sight struct {
	chain escalation.Chain
	// live says that the chain itself has answered, and so runs unless it has an outcome.
	live bool
	// attempt is the one at the session that runs; nil if there is none.
	attempt *tierAttempt
	// progress is the last heartbeat of that session; nil if there is none.
	progress *activities.TierProgress
	// issues are the chains of issues that have not ended, by their ID.
	issues map[string]escalation.Chain
	// calls are what was decided on calls of the chain's agents; nil if nobody looked, or the records are elsewhere.
	calls []escalation.CallDecision
	// everyCall has a tree list every call, not only those that were denied.
	everyCall bool
	// notifying says that the outcome is known, and that nobody waits for the rest: notifications
	// that take long.
	notifying bool
}

// costUSD is what the chain has spent, with what the session that runs has come to.
func (s sight) costUSD() float64 { return s.chain.CostUSD + spentBy(s.progress) }

// figures are what a session has cost, and how long it took; those of one that runs are until now.
func (s sight) figures(session *escalation.Session, now time.Time) (cost string, took time.Duration) {
	if session.Status == escalation.SessionRunning && s.live {
		return dollars(spentBy(s.progress)), max(now.Sub(session.StartedAt), 0)
	}
	return costOf(session), durationOf(session)
}

// spentBy is what a session that runs has spent, over all its attempts.
func spentBy(progress *activities.TierProgress) float64 {
	if progress == nil {
		return 0
	}
	return progress.Spent.CostUSD + progress.Now.CostUSD
}

// audience is told what a spectator sees. One goroutine calls it.
type audience interface {
	// saw is called every followInterval, whether or not anything is new.
	saw(now sight)
	// sawNobody is called instead when no worker, or no server, answers.
	sawNobody()
}

// follow tells what the chain does until it has ended, but for notifications that take long, and
// returns it as it ended, which is told, too. When ctx ends first, the chain goes on without a spectator, and the error is ctx's.
func (s spectator) follow(ctx context.Context, told audience) (escalation.Chain, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	var chain escalation.Chain
	go func() { ended <- s.run.Get(ctx, &chain) }()
	var concluded time.Time // since when nothing is left but notifications; zero if something is
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			if err != nil && ctx.Err() != nil {
				return chain, ctx.Err()
			}
			if chain, err = s.conclude(ctx, chain, err); err == nil {
				told.saw(sight{chain: chain})
			}
			return chain, err
		case <-ticker.C:
			now, seen := s.look(ctx, told)
			switch {
			case !seen:
			case !s.notifiesOnly(ctx, now.chain):
				concluded = time.Time{}
			case concluded.IsZero():
				concluded = time.Now()
			case time.Since(concluded) > notifyGrace:
				now.notifying = true
				told.saw(now)
				return now.chain, nil
			}
		}
	}
}

// conclude returns a chain that has ended with err.
func (s spectator) conclude(ctx context.Context, chain escalation.Chain, err error) (escalation.Chain, error) {
	id := s.run.GetID()
	switch {
	case temporal.IsCanceledError(err): // it has no result, but it can still be asked
		if chain, err = queryChain(ctx, s.client, id, s.run.GetRunID()); err != nil {
			return chain, fmt.Errorf("chain %s was cancelled, and does not tell more: %w", id, err)
		}
		return chain, nil
	case isRefusal(err):
		return chain, misuse(fmt.Errorf("chain %s: %w", id, rootCause(err)))
	case err != nil:
		return chain, fmt.Errorf("chain %s: %w", id, rootCause(err))
	}
	return chain, nil
}

// isRefusal reports whether a chain refused its input.
func isRefusal(err error) bool {
	refused, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && refused.Type() == workflows.ErrorTypeInput
}

// look tells what is to be seen now, and returns it; false if nobody answers. The run that is asked is the latest: a chain goes on in
// another one when its history has become long.
func (s spectator) look(ctx context.Context, told audience) (sight, bool) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	chain, err := queryChain(ctx, s.client, s.run.GetID(), "")
	switch {
	case err == nil:
		now := sight{chain: chain, live: true, issues: s.issues(ctx, chain)}
		now.attempt, now.progress = attemptAt(ctx, s.client, s.run.GetID(), chain)
		told.saw(now)
		return now, true
	case ctx.Err() == nil, errors.Is(ctx.Err(), context.DeadlineExceeded):
		told.sawNobody()
	}
	return sight{}, false
}

// notifiesOnly reports whether the chain's outcome is known and recorded, and nothing is left to do
// but to tell people.
func (s spectator) notifiesOnly(ctx context.Context, chain escalation.Chain) bool {
	if chain.Outcome == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	described, err := s.client.DescribeWorkflowExecution(ctx, s.run.GetID(), "")
	if err != nil {
		return false
	}
	pending := described.GetPendingActivities()
	return len(pending) > 0 && !slices.ContainsFunc(pending, func(activity *workflowpb.PendingActivityInfo) bool {
		return activity.GetActivityType().GetName() != activities.NotifyActivity
	})
}

// issues asks the chains of issues that have not ended. One that does not answer is left out.
func (s spectator) issues(ctx context.Context, chain escalation.Chain) map[string]escalation.Chain {
	answers := make(map[string]escalation.Chain)
	var mutex sync.Mutex
	var asking errgroup.Group
	asking.SetLimit(maxQueries)
	for _, issue := range chain.Issues {
		if issue.ChainID == "" || issue.Outcome != "" {
			continue
		}
		asking.Go(func() error {
			answer, err := queryChain(ctx, s.client, issue.ChainID, "")
			if err == nil {
				mutex.Lock()
				defer mutex.Unlock()
				answers[issue.ChainID] = answer
			}
			return nil
		})
	}
	_ = asking.Wait() // no question returns an error
	return answers
}

// queryChain asks the workflow for the chain.
func queryChain(ctx context.Context, c client.Client, id, runID string) (escalation.Chain, error) {
	var chain escalation.Chain
	answer, err := c.QueryWorkflow(ctx, id, runID, workflows.ChainQuery)
	if err != nil {
		return chain, err
	}
	err = answer.Get(&chain)
	return chain, err
}
