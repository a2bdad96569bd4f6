package workflows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
)

const (
	// GateQuery is the query that returns the open gate as JSON. If no gate is open, it returns null.
	GateQuery = "gate"
	// ResolveGate is the name of both the update and the signal that answer a gate. The payload of both is an
	// escalation.GateAnswer. The update returns an escalation.GateResolution.
	ResolveGate = "resolve-gate"

	// GateOpen is the value of GateAttribute while a gate is open.
	GateOpen   = "open"
	gateClosed = "closed"
)

// gates opens the gates of a workflow, one after the other, and waits at each until it is closed.
type gates struct {
	log      *eventLog
	policy   *escalation.Policy
	sessions *sessions
	people   *notifier
	requests *escalationRequests
	// incidents receives the findings of other chains about this workflow's incidents; nil if the workflow has no
	// incidents.
	incidents *incidents
	// history describes the earlier repairs. A gate that opens before the first session shows it.
	history []string
	// reminded counts the reminders of the open gate that have become due.
	reminded int
}

// gateRequest describes a gate to open.
type gateRequest struct {
	// decision is the decision that would end the workflow if no gate opened.
	decision escalation.Decision
	// tier is the tier of the step before the gate, whose session has ended or was refused.
	tier    escalation.Tier
	refused bool
	// phase is the phase of a plan at which the gate is; empty if it belongs to no plan.
	phase string
	// stopped describes the session before the gate of a loop of author and reviewer; nil for other gates.
	stopped *review.Stopped
	// commit is the commit that the answer override accepts; empty if there is none. open describes its open findings.
	commit, open string
	// noRemote reports that nothing can be pushed.
	noRemote bool
}

// handle registers the query and the update with which people see and answer gates.
func (g *gates) handle(ctx workflow.Context) error {
	err := workflow.SetQueryHandler(ctx, GateQuery, func() (*escalation.Gate, error) { return g.log.chain.OpenGate(), nil })
	if err != nil {
		return err
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, ResolveGate, g.resolve, workflow.UpdateHandlerOptions{
		Validator:   func(_ workflow.Context, reply GateReply) error { return g.check(reply) },
		Description: "answers the open gate: continue_session, fix, override or abort",
	})
}

// open opens a gate, publishes and records it, and notifies people. If the workflow is cancelled, it opens no gate and
// returns false.
func (g *gates) open(ctx workflow.Context, request gateRequest) (bool, error) {
	gate := g.newGate(ctx, request)
	if gate == nil {
		return false, nil
	}
	g.log.add(ctx, escalation.Event{
		Kind: escalation.EventGateOpened, SessionID: gate.SessionID, Severity: request.decision.Severity(), Message: describeGate(*gate),
	})
	// From here on people can answer the gate, even while the database is unavailable.
	if err := g.log.publish(ctx); err != nil {
		return false, err
	}
	kind, blocked := blockedBy(request.decision.Rule)
	if !blocked {
		kind = needsHuman(g.log.chain)
	}
	g.people.notify(ctx, kind, request.decision.Reason)
	return true, g.log.storeUnlessCancelled(ctx, "record "+gate.ID, false)
}

// newGate adds a gate to the visible state. If the workflow is cancelled, it returns nil. An answer counts only if it
// arrives after the gate has opened, so newGate refuses answers that arrived earlier as signals.
func (g *gates) newGate(ctx workflow.Context, request gateRequest) *escalation.Gate {
	chain := &g.log.chain
	opening := escalation.GateInput{
		Number: chain.Earlier.Gates + len(chain.Gates) + 1, Before: chain.Gates,
		Decision: request.decision, Tier: request.tier, Refused: request.refused, Phase: request.phase,
		Last: chain.Worked(), Transcript: escalation.TranscriptReachable,
		SpentUSD: chain.CostUSD, SpentEstimated: chain.CostEstimated(), SpentAtMostUSD: chain.SpentAtMostUSD(), Tried: tried(*chain),
		History: g.incidents.history(request.decision), Commit: request.commit, Open: request.open, NoRemote: request.noRemote,
	}
	if len(chain.Sessions) == 0 {
		opening.History = g.history
	}
	if chain.Plan != nil {
		opening.Plan, opening.Approved = chain.Plan.File, chain.Plan.Commit
	}
	g.offer(ctx, &opening, request.stopped)
	if ctx.Err() != nil {
		return nil
	}
	g.receiveReplies(ctx)
	opening.At = workflow.Now(ctx)
	shortenGates(chain.Gates)
	chain.Gates = append(chain.Gates, escalation.NewGate(*g.policy, opening))
	g.reminded = 0
	return g.latest()
}

// offer completes the input of a gate with what decides whether a session can be continued. It asks a worker for the
// transcript only if nothing else speaks against it.
func (g *gates) offer(ctx workflow.Context, opening *escalation.GateInput, stopped *review.Stopped) {
	if stopped != nil {
		opening.Last, opening.Loop = g.log.chain.Last(), stopped.Gate(opening.Transcript)
	}
	possible, _ := escalation.ContinuationOf(*opening)
	if possible == nil {
		return
	}
	opening.Transcript = g.sessions.transcript(ctx, possible.SessionID)
	if stopped != nil {
		opening.Loop = stopped.Gate(opening.Transcript)
	}
}

// renewLimits takes over the models and limits that are configured now, if a person lets work continue that one of them has stopped.
func (g *gates) renewLimits(ctx workflow.Context) error {
	gate := g.latest()
	if gate.Budget == "" || gate.Ends() || gate.Answer.Actor == "" && gate.Answer.ToTier == 0 {
		return nil
	}
	now, err := loadPolicy(ctx)
	if err == nil {
		*g.policy = g.policy.WithLimits(now, g.log.chain.SpentAtMostUSD())
		if last := g.log.chain.Last(); last != nil && last.Ending == escalation.EndingRequest {
			*g.policy = g.policy.WithModel(now, *last)
		}
	}
	return err
}

// latest returns the gate that was opened last.
func (g *gates) latest() *escalation.Gate { return &g.log.chain.Gates[len(g.log.chain.Gates)-1] }

// wait waits until the latest gate is closed. Five events close it: an answer, its expiry, cancellation of the
// workflow, a valid request for a tier, and news that all incidents have healed. The argument last limits the
// requests: a valid request names a higher tier. If the workflow should continue as new (see mayContinueAsNew), wait
// returns false. The caller must then continue as new at this gate. Signals that have arrived are kept.
func (g *gates) wait(ctx workflow.Context, last escalation.Tier) (closed bool, err error) {
	gate := g.latest()
	due := g.startTimer(ctx, gate)
	defer func() { due.stop() }()
	for {
		g.receive(ctx, gate, last)
		// Also continue as new at an answered gate, if the answer does not end the workflow. Otherwise, if every gate
		// were answered before its wait began, the workflow would never continue as new, and its history would grow
		// without limit.
		anew := ctx.Err() == nil && !gate.Ends() && g.mayContinueAsNew(ctx)
		switch {
		case anew:
			g.people.settle(ctx)
		case gate.Answer == nil && ctx.Err() == nil:
			g.people.settleFailed(ctx) // whoever looks at the gate must see that nobody was told
		}
		if len(g.log.unrecorded) > 0 && ctx.Err() == nil && (anew || gate.Answer == nil) {
			if err := g.log.storeUnlessCancelled(ctx, "record what came to "+gate.ID, false); err != nil {
				return false, err
			}
			continue // a signal may have arrived meanwhile
		}
		if anew {
			return false, nil
		}
		if gate.Answer != nil {
			g.logClosing(ctx, gate)
			return true, nil
		}
		err := workflow.Await(ctx, func() bool {
			return gate.Answer != nil || due.timer.IsReady() || g.signalled(ctx) || g.mayContinueAsNew(ctx) || g.people.someFailed(ctx)
		})
		switch {
		case gate.Answer != nil:
		case err != nil || ctx.Err() != nil: // cancellation makes the timer ready, too
			gate.Answer = &escalation.GateClosing{Action: escalation.GateAbort, Cancelled: true, At: workflow.Now(ctx)}
		case g.signalled(ctx): // read the signals first: an answer that arrives together with the expiry counts
		case due.timer.IsReady():
			g.remindOrExpire(ctx, gate)
			due = g.startTimer(ctx, gate)
		}
	}
}

// logClosing adds the event that the gate is closed.
func (g *gates) logClosing(ctx workflow.Context, gate *escalation.Gate) {
	g.log.add(ctx, escalation.Event{Kind: escalation.EventGateClosed, SessionID: gate.SessionID, Message: describeClosing(*gate)})
}

// gateTimer fires at the next reminder of a gate, or at its expiry.
type gateTimer struct {
	timer workflow.Future
	stop  func()
}

// startTimer starts the timer for the next reminder or the expiry of an open gate.
func (g *gates) startTimer(ctx workflow.Context, gate *escalation.Gate) gateTimer {
	due, what := gate.ExpiresAt, fmt.Sprintf("%s expires: %s", gate.ID, gate.OnTimeout)
	if reminders := g.policy.Gate.Remind; g.reminded < len(reminders) {
		if at := gate.OpenedAt.Add(reminders[g.reminded].Std()); at.Before(due) {
			due, what = at, fmt.Sprintf("%s: reminder %d of %d", gate.ID, g.reminded+1, len(reminders))
		}
	}
	waiting, stop := workflow.WithCancel(ctx)
	timer := workflow.NewTimerWithOptions(waiting, due.Sub(workflow.Now(ctx)), workflow.TimerOptions{Summary: what})
	return gateTimer{timer: timer, stop: stop}
}

// remindOrExpire closes the gate if the gate has expired. Before the expiry, it reminds people. If several reminders
// became due while no worker ran, remindOrExpire reminds people only once.
func (g *gates) remindOrExpire(ctx workflow.Context, gate *escalation.Gate) {
	now := workflow.Now(ctx)
	age := now.Sub(gate.OpenedAt).Round(time.Second)
	if !now.Before(gate.ExpiresAt) {
		gate.Answer = &escalation.GateClosing{Action: gate.OnTimeout, At: now}
		g.people.notify(ctx, escalation.NotifyNeedsHuman, fmt.Sprintf("nobody has answered %s in %s: %s",
			gate.ID, escalation.ShortDuration(age), gate.Next(*gate.Answer)))
		return
	}
	reminders := g.policy.Gate.Remind
	for g.reminded < len(reminders) && !now.Before(gate.OpenedAt.Add(reminders[g.reminded].Std())) {
		g.reminded++
	}
	text := fmt.Sprintf("%s has been open for %s: %s", gate.ID, escalation.ShortDuration(age), gate.Reason)
	g.log.add(ctx, escalation.Event{
		Kind: escalation.EventGateReminder, SessionID: gate.SessionID, Severity: escalation.SeverityWarning, Message: text,
	})
	g.people.notify(ctx, escalation.NotifyNeedsHuman, text)
}

// check returns the reason why reply is invalid, as one sentence. If reply can close the open gate, check returns nil.
func (g *gates) check(reply GateReply) error {
	if reply.problem != nil {
		return reply.problem
	}
	if err := reply.Validate(); err != nil {
		return err
	}
	chain := &g.log.chain
	gate := chain.OpenGate()
	for i := range chain.Gates {
		if chain.Gates[i].ID == reply.GateID {
			gate = &chain.Gates[i]
		}
	}
	if gate == nil {
		return errors.New("the chain is at no gate")
	}
	if err := gate.Check(reply.GateAnswer); err != nil {
		return err
	}
	return g.policy.Gate.CheckMayAnswer(reply.GateAnswer, chain.Actor)
}

// resolve handles the update. If several updates pass the validator, the first one closes the gate.
func (g *gates) resolve(ctx workflow.Context, reply GateReply) (escalation.GateResolution, error) {
	if err := g.check(reply); err != nil {
		return escalation.GateResolution{}, err
	}
	return g.accept(ctx, reply), nil
}

// accept closes the open gate with a valid reply.
func (g *gates) accept(ctx workflow.Context, reply GateReply) escalation.GateResolution {
	gate := g.latest()
	gate.Answer = &escalation.GateClosing{
		Action: reply.Action, Guidance: strings.TrimSpace(reply.Guidance), Actor: strings.TrimSpace(reply.Actor),
		Verified: reply.Verified, At: workflow.Now(ctx),
	}
	return escalation.GateResolution{GateID: gate.ID, Action: reply.Action, Next: gate.Next(*gate.Answer)}
}

// receive reads the signals that have arrived at an open gate. It reads all answers before it reads the requests for
// a tier. The argument last limits the requests: a valid request names a higher tier. For each invalid signal,
// receive adds an event.
func (g *gates) receive(ctx workflow.Context, gate *escalation.Gate, last escalation.Tier) {
	g.receiveReplies(ctx)
	if gate.Answer != nil {
		return
	}
	if news := g.incidents.receive(ctx); !slices.Equal(news, gate.News) {
		gate.News = news
		g.log.show(ctx)
	}
	if g.policy.Gate.Restricts() {
		g.requests.refuseAll(ctx, errNameless)
	}
	g.requests.receive(ctx, last)
	request := g.requests.pending
	switch {
	case request == nil && g.healed():
		gate.Answer = &escalation.GateClosing{Action: escalation.GateRecheck, At: workflow.Now(ctx)}
	case request != nil:
		gate.Answer = &escalation.GateClosing{ToTier: request.ToTier, Guidance: request.Guidance, At: workflow.Now(ctx)}
	}
}

// healed reports whether other chains have found all incidents at the open gate healed, so that this chain looks itself.
func (g *gates) healed() bool {
	return g.incidents.healed() && escalation.MayRecheck(g.log.chain.Gates[:len(g.log.chain.Gates)-1])
}

// receiveReplies reads the answers that arrived as signals. The sender of a signal gets no reply, so receiveReplies
// adds an event for each invalid answer.
//
// A signal waits in its channel until receiveReplies reads it. newGate calls receiveReplies just before a gate opens.
// So later calls read only answers that arrived while the gate was open. Updates do not wait in a channel. The SDK
// validates and runs an update in the workflow task that delivers the update.
func (g *gates) receiveReplies(ctx workflow.Context) {
	refuse := func(message string) {
		g.log.add(ctx, escalation.Event{
			Kind: escalation.EventGateRefused, Severity: escalation.SeverityWarning, Message: "signal " + message,
		})
	}
	receiveSignals(workflow.GetSignalChannel(ctx, ResolveGate), func(reply GateReply) {
		if err := g.check(reply); err != nil {
			refuse(DescribeRefusedReply(reply, err))
			return
		}
		g.accept(ctx, reply)
	}, func() { refuse(fmt.Sprintf("%s is refused: %s", ResolveGate, errUnreadable)) })
}

// refuseLateReplies adds an event for each answer that arrived as a signal while the workflow ended.
func (g *gates) refuseLateReplies(ctx workflow.Context) {
	if workflow.GetSignalChannel(ctx, ResolveGate).Len() == 0 {
		return
	}
	g.receiveReplies(ctx)
	g.log.recordRest(ctx)
}

// signalled reports whether an answer, or a request for a tier, has arrived as a signal.
func (g *gates) signalled(ctx workflow.Context) bool {
	return workflow.GetSignalChannel(ctx, ResolveGate).Len() > 0 || g.requests.arrived(ctx) || g.incidents.arrived(ctx)
}

// maxTried limits the number of sessions that a gate lists. A chain without gates never has so many sessions.
const maxTried = 10

// tried describes the latest sessions and the answers of people between them, oldest first.
func tried(chain escalation.Chain) []string {
	latest := chain.Sessions[max(0, len(chain.Sessions)-maxTried):]
	described := make([]string, 0, len(latest))
	answers := answered(chain.Gates)
	for i := range latest {
		for len(answers) > 0 && !answers[0].Answer.At.After(latest[i].StartedAt) {
			if i > 0 {
				described = append(described, describeAnswer(answers[0]))
			}
			answers = answers[1:]
		}
		described = append(described, describeTry(latest[i]))
	}
	return described
}

// answered returns the gates that people have answered.
func answered(gates []escalation.Gate) []escalation.Gate {
	return slices.DeleteFunc(slices.Clone(gates), func(gate escalation.Gate) bool {
		return gate.Answer == nil || gate.Answer.Actor == ""
	})
}

// needsHuman returns the notification with which a chain asks for a person. If the last session exhausted its budget,
// this is NotifyBudgetSpent. In all other cases it is NotifyNeedsHuman.
func needsHuman(chain escalation.Chain) escalation.NotificationKind {
	if last := chain.Worked(); last != nil && last.Status == escalation.SessionBudgetExhausted {
		return escalation.NotifyBudgetSpent
	}
	return escalation.NotifyNeedsHuman
}
