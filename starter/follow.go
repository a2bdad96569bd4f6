package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// teller tells what a chain does in lines, each thing once.
type teller struct {
	app *app

	// event is the key of the event that was told last. A chain that has run for very long leaves
	// out its oldest ones, so their number says little.
	event string
	// session is the conversation whose tool calls were told up to number call.
	session string
	call    int
	// standing is where the session that runs was told to stand last, and ended the attempt of which
	// was told last that it ended.
	standing, ended string
	// gates are the open gates that were told, with the IDs of their chains.
	gates map[string]bool
	away  bool // no worker answered last time
}

var _ audience = (*teller)(nil)

// follow tells what the chain does until it has ended, but for notifications that take long, and
// returns it as it ended. When ctx ends first, the chain goes on without a spectator.
func (a *app) follow(ctx context.Context, c client.Client, run client.WorkflowRun) (escalation.Chain, error) {
	chain, err := spectator{c, run, a.patience}.follow(ctx, &teller{app: a, gates: make(map[string]bool)})
	if err != nil && ctx.Err() != nil {
		a.sayGoesOn(run.GetID())
	}
	return chain, err
}

// sawNobody implements audience. A worker or server that is away is told once and waited for.
func (t *teller) sawNobody() {
	if !t.away {
		t.app.say("%s  no worker answers yet", t.app.clock(t.app.now()))
	}
	t.away = true
}

// saw implements audience.
func (t *teller) saw(now sight) {
	t.away = false
	t.tellEvents(now.chain)
	t.tellGate(now.chain)
	for _, issue := range now.chain.Issues {
		if chain, ok := now.issues[issue.ChainID]; ok {
			t.tellGate(chain)
		}
	}
	t.tellAttempt(now)
	if now.progress != nil {
		t.tellTools(*now.progress)
	}
	if now.notifying {
		id := now.chain.ID
		t.app.say("The notifications of chain %s are still on their way. What becomes of them: %s",
			printable(id, maxChainID), lookCommand(id))
	}
}

func (t *teller) tellEvents(chain escalation.Chain) {
	last := slices.IndexFunc(chain.Events, func(event escalation.Event) bool { return event.Key == t.event })
	for _, event := range chain.Events[last+1:] {
		t.app.say("%s  %s", t.app.clock(event.At), printable(event.Message, 1_000))
		t.event = event.Key
	}
}

// tellGate tells that a chain waits for a person, and how they answer.
func (t *teller) tellGate(chain escalation.Chain) {
	gate := chain.OpenGate()
	if gate == nil || t.gates[chain.ID+" "+gate.ID] {
		return
	}
	t.gates[chain.ID+" "+gate.ID] = true
	at := t.app.clock(gate.OpenedAt)
	t.app.say("%s  chain %s waits for a person at %s: %s", at, printable(chain.ID, 200), gate.ID, printable(gate.Reason, 300))
	t.app.say("%s    answer with: %s", at, answerCommand(chain.ID))
}

// tellTools tells the tool calls of the tier that runs, as its heartbeat lists them.
func (t *teller) tellTools(progress activities.TierProgress) {
	if t.session != progress.SessionID {
		t.session, t.call = progress.SessionID, 0
	}
	t.tellCalls(progress.Now.Tools)
}

// tellAttempt tells why the attempt before ended, and where the session is at work or what it waits
// for, and again when that has changed.
func (t *teller) tellAttempt(now sight) {
	if before := now.attempt.before(); before != "" {
		ended := fmt.Sprintf("%s %d", now.chain.Last().SessionID, now.attempt.number)
		if ended != t.ended {
			t.ended = ended
			t.app.say("%s    %s", t.app.clock(t.app.now()), before)
		}
	}
	if standing := t.app.standing(now); standing != "" && standing != t.standing {
		t.standing = standing
		t.app.say("%s    %s", t.app.clock(t.app.now()), standing)
	}
}

// workerOf says where a tier is at work.
func workerOf(progress activities.TierProgress) string {
	return fmt.Sprintf("attempt %d, by worker process %d on %s", progress.Attempt, progress.WorkerPID, printable(progress.Host, 60))
}

// tellCalls tells the calls that are new. Their numbers begin again with each invocation of a session.
func (t *teller) tellCalls(calls []activities.ToolCall) {
	if len(calls) > 0 && calls[len(calls)-1].Number < t.call {
		t.call = 0
	}
	for _, call := range calls {
		if call.Number > t.call {
			t.call = call.Number
			t.app.say("%s    %s  %s", t.app.clock(t.app.now()), printable(call.Name, 40), printable(call.Input, 160))
		}
	}
}

// clock is the time of day at which something was.
func (a *app) clock(t time.Time) string { return t.In(a.now().Location()).Format(time.TimeOnly) }

// moment is when something was or will be, for a person.
func (a *app) moment(t time.Time) string {
	return t.In(a.now().Location()).Format("2006-01-02 15:04 MST")
}
