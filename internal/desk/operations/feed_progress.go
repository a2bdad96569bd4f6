package operations

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/activities"
)

// maxProgress limits the chains whose progress one look reads because somebody is interested in all.
const maxProgress = 32

// ProgressNews says what a running session does now.
type ProgressNews struct {
	// SessionID is empty before the first heartbeat.
	SessionID string `json:"session_id,omitempty"`
	// Attempt is the number of the attempt at the session, from 1, with its state.
	Attempt int          `json:"attempt"`
	State   AttemptState `json:"state"`
	Turns   int          `json:"turns,omitempty"`
	// CostUSD is the cost of the session so far over all its attempts, in US dollars. It is an estimate.
	CostUSD float64 `json:"cost_usd"`
	// Doing is one line: the latest call, or for what the session waits. It can contain words of agents.
	Doing string `json:"doing,omitempty"`
}

// progressWatch reads the heartbeats of running sessions. It asks Temporal alone, and no worker.
type progressWatch struct {
	next time.Time
	last map[string]ProgressNews // by the ID of the chain
}

// look returns the progress of the chains that has changed. The argument sessions gives the running session of each
// chain; empty if unknown. A chain whose progress cannot be read is left out: this look comes again.
func (p *progressWatch) look(ctx context.Context, b *backend, sessions map[string]string) []Change {
	now := b.Clock()
	if len(sessions) == 0 || now.Before(p.next) {
		return nil
	}
	connection, _, err := b.connect(ctx)
	if err != nil {
		return nil
	}
	p.next = now.Add(connection.watchInterval())
	ids := slices.Sorted(maps.Keys(sessions))
	found := make([]*ProgressNews, len(ids))
	var asking errgroup.Group
	asking.SetLimit(MaxQueries)
	for i, id := range ids {
		asking.Go(func() error {
			found[i] = progressNow(ctx, connection, id, sessions[id])
			return nil
		})
	}
	_ = asking.Wait() // the functions return no errors
	var changes []Change
	last := map[string]ProgressNews{}
	for i, id := range ids {
		if found[i] == nil {
			continue
		}
		last[id] = *found[i]
		if p.last[id] != last[id] {
			changes = append(changes, Change{ChangeProgress, id, now, last[id]})
		}
	}
	p.last = last
	return changes
}

// progressNow returns the progress of the running session of a chain; nil if it cannot be told. If sessionID is not
// empty, a heartbeat of another session does not count.
func progressNow(ctx context.Context, c Connection, chainID, sessionID string) *ProgressNews {
	ctx, cancel := context.WithTimeout(ctx, signalTimeout)
	defer cancel()
	described, err := c.DescribeWorkflowExecution(ctx, chainID, "")
	if err != nil || described.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return nil
	}
	for _, pending := range described.GetPendingActivities() {
		if !slices.Contains(activities.AgentActivities(), pending.GetActivityType().GetName()) {
			continue
		}
		attempt := NewAttempt(pending, c.Converter, time.Now())
		news := ProgressNews{Attempt: attempt.Number, State: attempt.State, Doing: attempt.Waits()}
		var heartbeat activities.TierProgress
		details := pending.GetHeartbeatDetails()
		if details == nil || c.Converter.FromPayloads(details, &heartbeat) != nil ||
			sessionID != "" && heartbeat.SessionID != sessionID {
			return &news
		}
		total := heartbeat.Total()
		news.SessionID, news.Turns, news.CostUSD = heartbeat.SessionID, total.Turns, total.CostUSD
		news.Doing = cmp.Or(news.Doing, doingNow(heartbeat.Now))
		return &news
	}
	return nil
}

// doingNow returns one line about what an agent does: for what it waits, or its latest call.
func doingNow(now activities.AgentProgress) string {
	if now.Waiting != "" {
		return line("waits: "+now.Waiting, maxSubject)
	}
	if len(now.Tools) == 0 {
		return ""
	}
	latest := now.Tools[len(now.Tools)-1]
	return line(latest.Name+"  "+latest.Input, maxSubject)
}
