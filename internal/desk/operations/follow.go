package operations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/workflows"
)

const (
	// localInterval is the time between two queries to a server on this host, where queries cost nothing. Heartbeats
	// come every second there.
	localInterval = 250 * time.Millisecond
	// remoteInterval is the time between two queries to any other server. Temporal Cloud bills each query, and
	// heartbeats come every 10 seconds there.
	remoteInterval = 5 * time.Second
	// notifyGrace limits how long Follow waits for the notifications of a chain whose outcome is known. A working
	// notification service needs less time. A service that is down can keep the chain open for an hour.
	notifyGrace = 5 * time.Second
	// quietTime is the time without news after which Follow says what a chain waits for, although nothing has failed.
	quietTime = 10 * time.Second
	// MaxQueries limits the number of concurrent queries, because each query occupies a worker.
	MaxQueries = 8
)

// Follower watches a chain until it has ended.
type Follower struct {
	Client client.Client
	// Converter decodes heartbeats and failures.
	Converter converter.DataConverter
	// Local reports that the server runs on this host, where queries cost nothing.
	Local bool

	Run client.WorkflowRun
	// Patience limits how long Follower waits for a worker's answer to a query.
	Patience time.Duration
}

// Snapshot is a chain at one moment.
type Snapshot struct {
	Chain escalation.Chain `json:"chain"`
	// Live reports whether Chain is an answer of the chain's workflow to a query. If so, and if Chain has no outcome,
	// the chain is running.
	Live bool `json:"live"`
	// Attempt is the current attempt at the running session; nil if unknown.
	Attempt *Attempt `json:"attempt,omitempty"`
	// Progress is the last heartbeat of the running session; nil if unknown.
	Progress *activities.TierProgress `json:"progress,omitempty"`
	// Issues holds the chains of the issues that have not ended, by the ID of the chain. It omits chains that did not
	// answer.
	Issues map[string]escalation.Chain `json:"issues,omitempty"`
	// Calls holds the decisions on calls of the chain's agents; nil if nobody has looked them up, or if this host
	// cannot read the records.
	Calls []escalation.CallDecision `json:"calls,omitzero"`
	// Notifying reports whether the chain waits only for slow notifications. Its outcome is then known.
	Notifying bool `json:"notifying,omitempty"`
	// Waits says for what the chain waits without another sign, such as the database; usually empty. What has failed is
	// named at once, and what nobody takes after quietTime.
	Waits string `json:"waits,omitempty"`
}

// CostUSD returns the cost of the chain, including the running session's cost so far.
func (s Snapshot) CostUSD() float64 { return s.Chain.CostUSD + s.SpentUSD() }

// CostEstimated reports whether a part of CostUSD is an estimate. The cost of a running session always is.
func (s Snapshot) CostEstimated() bool { return s.Chain.CostEstimated() || s.SpentUSD() > 0 }

// CostText returns CostUSD as text, as escalation.Chain.CostText does.
func (s Snapshot) CostText() string { return plaintext.Cost(s.CostUSD(), s.CostEstimated()) }

// SpentText returns SpentUSD as text.
func (s Snapshot) SpentText() string { return plaintext.Cost(s.SpentUSD(), true) }

// SpentUSD returns the cost of the running session so far, over all attempts at that session.
func (s Snapshot) SpentUSD() float64 {
	if s.Progress == nil {
		return 0
	}
	return s.Progress.Spent.CostUSD + s.Progress.Now.CostUSD
}

// Observer receives the snapshots of a Follower. All calls come from one goroutine.
type Observer interface {
	// Saw is called after every query that was answered, even if nothing has changed.
	Saw(now Snapshot)
	// SawNobody is called instead of Saw after a query without an answer, for example because no worker runs.
	SawNobody()
}

// interval returns the time between two queries.
func (f Follower) interval() time.Duration {
	if f.Local {
		return localInterval
	}
	return remoteInterval
}

// Follow reports snapshots of the chain until the chain has ended, and one more snapshot of the ended chain. Then it
// returns the chain. Follow does not wait for slow notifications. If ctx ends first, Follow returns ctx's error, and
// the chain continues.
func (f Follower) Follow(ctx context.Context, observer Observer) (escalation.Chain, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	var chain escalation.Chain
	go func() { ended <- f.Run.Get(ctx, &chain) }()
	quiet := news{since: time.Now()}
	var concluded time.Time // since when the chain waits only for notifications; zero if it waits for more
	ticker := time.NewTicker(f.interval())
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			if err != nil && ctx.Err() != nil {
				return chain, ctx.Err()
			}
			if chain, err = f.conclude(ctx, chain, err); err == nil {
				observer.Saw(Snapshot{Chain: chain})
			}
			return chain, err
		case <-ticker.C:
			now, seen := f.look(ctx, observer, &quiet)
			switch {
			case !seen:
			case !f.notifiesOnly(ctx, now.Chain):
				concluded = time.Time{}
			case concluded.IsZero():
				concluded = time.Now()
			case time.Since(concluded) > notifyGrace:
				now.Notifying = true
				observer.Saw(now)
				return now.Chain, nil
			}
		}
	}
}

// conclude returns the chain after its end. The argument err is the error of the chain's workflow. If the workflow has
// failed, conclude explains err.
func (f Follower) conclude(ctx context.Context, chain escalation.Chain, err error) (escalation.Chain, error) {
	id := f.Run.GetID()
	switch {
	case temporal.IsCanceledError(err): // a cancelled workflow has no result, but still answers queries
		if chain, err = Query(ctx, f.Client, id, f.Run.GetRunID()); err != nil {
			return chain, fmt.Errorf("chain %s was cancelled, and does not tell more: %w", id, err)
		}
		return chain, nil
	case isRefusal(err):
		return chain, Invalid(fmt.Errorf("chain %s: %w", id, RootCause(err)))
	case err != nil:
		return chain, fmt.Errorf("chain %s: %w", id, RootCause(err))
	}
	return chain, nil
}

// isRefusal reports whether err means that a chain has refused its input.
func isRefusal(err error) bool {
	refused, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && refused.Type() == workflows.ErrorTypeInput
}

// look queries the chain, passes a snapshot of it to observer, and returns the snapshot. If nobody answers, look
// returns false. It queries the latest run, because a chain with a long history continues in a new run.
func (f Follower) look(ctx context.Context, observer Observer, quiet *news) (Snapshot, bool) {
	ctx, cancel := context.WithTimeout(ctx, f.Patience)
	defer cancel()
	chain, err := Query(ctx, f.Client, f.Run.GetID(), "")
	switch {
	case err == nil:
		now := Snapshot{Chain: chain, Live: true, Issues: f.issues(ctx, chain)}
		now.Attempt, now.Progress = AttemptAt(ctx, Connection{Client: f.Client, Converter: f.Converter}, f.Run.GetID(),
			chain)
		now.Waits = waits(ctx, Connection{Client: f.Client, Converter: f.Converter}, now, quiet.longAgo(now))
		observer.Saw(now)
		return now, true
	case ctx.Err() == nil, errors.Is(ctx.Err(), context.DeadlineExceeded):
		observer.SawNobody()
	}
	return Snapshot{}, false
}

// news remembers when a chain has last changed.
type news struct {
	since time.Time
	seen  string
}

// longAgo reports whether a chain without a running agent and without an open gate has not changed for quietTime.
func (n *news) longAgo(now Snapshot) bool {
	seen := fmt.Sprint(now.Chain.Events, len(now.Chain.Sessions), now.Chain.Outcome)
	if seen != n.seen || now.Progress != nil || now.Chain.OpenGate() != nil {
		*n = news{since: time.Now(), seen: seen}
	}
	return time.Since(n.since) >= quietTime
}

// waits describes the activity on which the chain waits; "" if an agent works, a person is asked or the chain has
// ended, or if there is none that people need not know already. The argument quiet reports that the chain has not
// changed for quietTime.
func waits(ctx context.Context, c Connection, now Snapshot, quiet bool) string {
	stays := now.Progress != nil || now.Chain.OpenGate() != nil || now.Chain.Wait != nil
	if now.Chain.Outcome != "" || stays && !quiet {
		return ""
	}
	described, err := c.DescribeWorkflowExecution(ctx, now.Chain.ID, "")
	if err != nil {
		return ""
	}
	return waitsFor(described.GetPendingActivities(), c.Converter, time.Now(), quiet)
}

// waitsFor describes the first activity that has failed or, if it is quiet, that no worker has taken; "" if there is
// none. Agents and notifications have words of their own.
func waitsFor(
	pending []*workflowpb.PendingActivityInfo, data converter.DataConverter, now time.Time, quiet bool,
) string {
	for _, each := range pending {
		name := each.GetActivityType().GetName()
		if name == activities.NotifyActivity || slices.Contains(activities.AgentActivities(), name) {
			continue
		}
		attempt := NewAttempt(each, data, now)
		switch {
		case attempt.Failure != "":
			return name + ", which is tried again: " + attempt.Failure
		case !quiet:
		case attempt.State == AttemptQueued:
			return fmt.Sprintf("a worker that takes %s from the queue %s", name, attempt.Queue)
		case attempt.State == AttemptPaused:
			return name + ", which somebody has paused in Temporal"
		}
	}
	return ""
}

// notifiesOnly reports whether the chain's outcome is known and recorded, so that the chain waits only for
// notifications.
func (f Follower) notifiesOnly(ctx context.Context, chain escalation.Chain) bool {
	if chain.Outcome == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, f.Patience)
	defer cancel()
	described, err := f.Client.DescribeWorkflowExecution(ctx, f.Run.GetID(), "")
	if err != nil {
		return false
	}
	pending := described.GetPendingActivities()
	return len(pending) > 0 && !slices.ContainsFunc(pending, func(activity *workflowpb.PendingActivityInfo) bool {
		return activity.GetActivityType().GetName() != activities.NotifyActivity
	})
}

// issues queries the chains of issues that have not ended. It omits chains that do not answer.
func (f Follower) issues(ctx context.Context, chain escalation.Chain) map[string]escalation.Chain {
	answers := make(map[string]escalation.Chain)
	var mutex sync.Mutex
	var asking errgroup.Group
	asking.SetLimit(MaxQueries)
	for _, issue := range chain.Issues {
		if issue.ChainID == "" || issue.Outcome != "" {
			continue
		}
		asking.Go(func() error {
			answer, err := Query(ctx, f.Client, issue.ChainID, "")
			if err == nil {
				mutex.Lock()
				defer mutex.Unlock()
				answers[issue.ChainID] = answer
			}
			return nil
		})
	}
	_ = asking.Wait() // the functions return no errors
	return answers
}
