package parts

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/internal/plaintext"
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

// Gates opens the gates of a workflow, one after the other, and waits at each until it is closed.
type Gates struct {
	log      *EventLog
	policy   *escalation.Policy
	sessions *Sessions
	people   *Notifier
	requests *EscalationRequests
	// incidents receives the findings of other chains about this workflow's incidents; nil if the workflow has no
	// incidents.
	incidents *Incidents
	// history describes the earlier repairs. A gate that opens before the first session shows it.
	History []string
	// reminded counts the reminders of the open gate that have become due.
	reminded int
}

// GateRequest describes a gate to open.
type GateRequest struct {
	// decision is the decision that would end the workflow if no gate opened.
	Decision escalation.Decision
	// tier is the tier of the step before the gate, whose session has ended or was refused.
	Tier    escalation.Tier
	Refused bool
	// phase is the phase of a plan at which the gate is; empty if it belongs to no plan.
	Phase string
	// stopped describes the session before the gate of a loop of author and reviewer; nil for other gates.
	Stopped *review.Stopped
	// commit is the commit that the answer override accepts; empty if there is none. open describes its open findings.
	Commit, Open string
	// NoRemote reports that nothing can be pushed.
	NoRemote bool
}

// Handle registers the query and the update with which people see and answer gates.
func (g *Gates) Handle(ctx workflow.Context) error {
	err := workflow.SetQueryHandler(ctx, GateQuery, func() (*escalation.Gate, error) {
		return g.log.Chain.OpenGate(),
			nil
	})
	if err != nil {
		return err
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, ResolveGate, g.resolve, workflow.UpdateHandlerOptions{
		Validator:   func(_ workflow.Context, reply GateReply) error { return g.check(reply) },
		Description: "answers the open gate: continue_session, fix, recheck, override or abort",
	})
}

// Open opens a gate, publishes and records it, and notifies people. If the workflow is cancelled, it opens no gate and
// returns false.
func (g *Gates) Open(ctx workflow.Context, request GateRequest) (bool, error) {
	gate := g.newGate(ctx, request)
	if gate == nil {
		return false, nil
	}
	g.log.Add(ctx, escalation.Event{
		Kind: escalation.EventGateOpened, SessionID: gate.SessionID, Severity: request.Decision.Severity(),
		Message: describeGate(*gate, workflow.Now(ctx)),
	})
	// From here on people can answer the gate, even while the database is unavailable.
	if err := g.log.Publish(ctx); err != nil {
		return false, err
	}
	kind, blocked := BlockedBy(request.Decision.Rule)
	if !blocked {
		kind = needsHuman(g.log.Chain)
	}
	g.people.Notify(ctx, kind, request.Decision.Reason)
	return true, g.log.StoreUnlessCancelled(ctx, "record "+gate.ID, false)
}

// newGate adds a gate to the visible state. If the workflow is cancelled, it returns nil. An answer counts only if it
// arrives after the gate has opened, so newGate refuses answers that arrived earlier as signals.
func (g *Gates) newGate(ctx workflow.Context, request GateRequest) *escalation.Gate {
	chain := &g.log.Chain
	opening := escalation.GateInput{
		Number: chain.Earlier.Gates + len(chain.Gates) + 1, Before: chain.Gates,
		Decision: request.Decision, Tier: request.Tier, Refused: request.Refused, Phase: request.Phase,
		Last: chain.Worked(), Transcript: escalation.TranscriptReachable,
		SpentUSD: chain.CostUSD, SpentEstimated: chain.CostEstimated(), SpentAtMostUSD: chain.SpentAtMostUSD(),
		Tried: tried(*chain), Incidents: chain.Incidents, Sessions: chain.Sessions,
		History: g.incidents.history(request.Decision), Commit: request.Commit,
		Open: request.Open, NoRemote: request.NoRemote,
	}
	if g.sessions.notes != nil {
		opening.Notes, g.sessions.notes = *g.sessions.notes, nil
	}
	if len(chain.Sessions) == 0 {
		opening.History = g.History
	}
	if chain.Plan != nil {
		opening.Plan, opening.Approved = chain.Plan.File, chain.Plan.Commit
	}
	g.offer(ctx, &opening, request.Stopped)
	if ctx.Err() != nil {
		return nil
	}
	g.ReceiveReplies(ctx)
	opening.At = workflow.Now(ctx)
	shortenGates(chain.Gates)
	chain.Gates = append(chain.Gates, escalation.NewGate(*g.policy, opening))
	g.reminded = 0
	return g.Latest()
}

// offer completes the input of a gate with what decides whether a session can be continued. It asks a worker for the
// transcript only if nothing else speaks against it.
func (g *Gates) offer(ctx workflow.Context, opening *escalation.GateInput, stopped *review.Stopped) {
	if stopped != nil {
		opening.Last, opening.Loop = g.log.Chain.Last(), stopped.Gate(opening.Transcript)
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

// RenewLimits takes over the models and limits that are configured now, if a person lets work continue that one of them
// has stopped: the highest tier, too, as far as the person has asked for it.
func (g *Gates) RenewLimits(ctx workflow.Context) error {
	gate := g.Latest()
	raises := gate.MaxTier != 0 && gate.Answer.Action == escalation.GateFix
	if gate.Budget == "" && !raises || gate.Ends() || gate.Answer.Actor == "" && gate.Answer.ToTier == 0 {
		return nil
	}
	now, err := LoadPolicy(ctx)
	if err == nil && raises {
		g.policy.MaxTier = max(g.policy.MaxTier, min(now.MaxTier, gate.Tier))
		g.log.Chain.MaxTier = g.policy.MaxTier
	}
	if err == nil && gate.Budget != "" {
		*g.policy = g.policy.WithLimits(now, g.log.Chain.SpentAtMostUSD())
		if last := g.log.Chain.Last(); last != nil && last.Ending == escalation.EndingRequest {
			*g.policy = g.policy.WithModel(now, *last)
		}
	}
	return err
}

// Latest returns the gate that was opened last.
func (g *Gates) Latest() *escalation.Gate { return &g.log.Chain.Gates[len(g.log.Chain.Gates)-1] }

// Wait waits until the latest gate is closed. Five events close it: an answer, its expiry, cancellation of the
// workflow, a valid request for a tier, and news that all incidents have healed. The argument last limits the
// requests: a valid request names a higher tier. If the workflow should continue as new (see MayContinueAsNew), Wait
// returns false. The caller must then continue as new at this gate. Signals that have arrived are kept.
func (g *Gates) Wait(ctx workflow.Context, last escalation.Tier) (closed bool, err error) {
	gate := g.Latest()
	due := g.startTimer(ctx, gate)
	defer func() { due.stop() }()
	for {
		g.receive(ctx, gate, last)
		// Also continue as new at an answered gate, if the answer does not end the workflow. Otherwise, if every gate
		// were answered before its wait began, the workflow would never continue as new, and its history would grow
		// without limit.
		anew := ctx.Err() == nil && !gate.Ends() && g.MayContinueAsNew(ctx)
		switch {
		case anew:
			g.people.Settle(ctx)
		case gate.Answer == nil && ctx.Err() == nil:
			g.people.settleFailed(ctx) // whoever looks at the gate must see that nobody was told
		}
		if len(g.log.unrecorded) > 0 && ctx.Err() == nil && (anew || gate.Answer == nil) {
			if err := g.log.StoreUnlessCancelled(ctx, "record what came to "+gate.ID, false); err != nil {
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
			return gate.Answer != nil || due.timer.IsReady() || g.signalled(ctx) || g.MayContinueAsNew(ctx) ||
				g.people.someFailed(ctx)
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
func (g *Gates) logClosing(ctx workflow.Context, gate *escalation.Gate) {
	g.log.Add(ctx, escalation.Event{
		Kind: escalation.EventGateClosed, SessionID: gate.SessionID,
		Message: describeClosing(*gate),
	})
}

// gateTimer fires at the next reminder of a gate, or at its expiry.
type gateTimer struct {
	timer workflow.Future
	stop  func()
}

// startTimer starts the timer for the next reminder or the expiry of an open gate.
func (g *Gates) startTimer(ctx workflow.Context, gate *escalation.Gate) gateTimer {
	due, what := gate.ExpiresAt, fmt.Sprintf("%s expires: %s", gate.ID, escalation.InWords(gate.OnTimeout))
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
func (g *Gates) remindOrExpire(ctx workflow.Context, gate *escalation.Gate) {
	now := workflow.Now(ctx)
	age := now.Sub(gate.OpenedAt)
	if !now.Before(gate.ExpiresAt) {
		gate.Answer = &escalation.GateClosing{Action: gate.OnTimeout, At: now}
		g.people.Notify(ctx, escalation.NotifyNeedsHuman, fmt.Sprintf("nobody has answered %s in %s: %s",
			gate.ID, plaintext.About(age), gate.Next(*gate.Answer)))
		return
	}
	reminders := g.policy.Gate.Remind
	for g.reminded < len(reminders) && !now.Before(gate.OpenedAt.Add(reminders[g.reminded].Std())) {
		g.reminded++
	}
	text := fmt.Sprintf("%s has been open for %s: %s", gate.ID, plaintext.About(age), gate.Reason)
	g.log.Add(ctx, escalation.Event{
		Kind: escalation.EventGateReminder, SessionID: gate.SessionID, Severity: escalation.SeverityWarning,
		Message: text,
	})
	g.people.Remind(ctx, escalation.NotifyNeedsHuman, text)
}

// check returns the reason why reply is invalid, as one sentence. If reply can close the open gate, check returns nil.
func (g *Gates) check(reply GateReply) error {
	if reply.problem != nil {
		return reply.problem
	}
	if err := reply.Validate(); err != nil {
		return err
	}
	chain := &g.log.Chain
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
func (g *Gates) resolve(ctx workflow.Context, reply GateReply) (escalation.GateResolution, error) {
	if err := g.check(reply); err != nil {
		return escalation.GateResolution{}, err
	}
	return g.accept(ctx, reply), nil
}

// accept closes the open gate with a valid reply.
func (g *Gates) accept(ctx workflow.Context, reply GateReply) escalation.GateResolution {
	gate := g.Latest()
	gate.Answer = &escalation.GateClosing{
		Action: reply.Action, Guidance: strings.TrimSpace(reply.Guidance), Actor: strings.TrimSpace(reply.Actor),
		Force: reply.Force, Verified: reply.Verified, At: workflow.Now(ctx),
	}
	return escalation.GateResolution{GateID: gate.ID, Action: reply.Action, Next: gate.Next(*gate.Answer)}
}

// receive reads the signals that have arrived at an open gate. It reads all answers before it reads the requests for
// a tier. The argument last limits the requests: a valid request names a higher tier. For each invalid signal,
// receive adds an event.
func (g *Gates) receive(ctx workflow.Context, gate *escalation.Gate, last escalation.Tier) {
	g.ReceiveReplies(ctx)
	if gate.Answer != nil {
		return
	}
	if news := g.incidents.Receive(ctx); !slices.Equal(news, gate.News) {
		gate.News = news
		g.log.Show(ctx)
	}
	if g.policy.Gate.Restricts() {
		g.requests.RefuseAll(ctx, errNameless)
	}
	g.requests.Receive(ctx, last)
	request := g.requests.Pending
	switch {
	case request == nil && g.healed():
		gate.Answer = &escalation.GateClosing{Action: escalation.GateRecheck, At: workflow.Now(ctx)}
	case request != nil:
		gate.Answer = &escalation.GateClosing{ToTier: request.ToTier, Guidance: request.Guidance, At: workflow.Now(ctx)}
	}
}

// healed reports whether other chains have found all incidents at the open gate healed, so that this chain looks
// itself.
func (g *Gates) healed() bool {
	return g.incidents.Healed() && escalation.MayRecheck(g.log.Chain.Gates[:len(g.log.Chain.Gates)-1])
}

// ReceiveReplies reads the answers that arrived as signals. The sender of a signal gets no reply, so ReceiveReplies
// adds an event for each invalid answer.
//
// A signal waits in its channel until ReceiveReplies reads it. newGate calls ReceiveReplies just before a gate opens.
// So later calls read only answers that arrived while the gate was open. Updates do not wait in a channel. The SDK
// validates and runs an update in the workflow task that delivers the update.
func (g *Gates) ReceiveReplies(ctx workflow.Context) {
	refuse := func(message string) {
		g.log.Add(ctx, escalation.Event{
			Kind: escalation.EventGateRefused, Severity: escalation.SeverityWarning, Message: "signal " + message,
		})
	}
	ReceiveSignals(workflow.GetSignalChannel(ctx, ResolveGate), func(reply GateReply) {
		if err := g.check(reply); err != nil {
			refuse(DescribeRefusedReply(reply, err))
			return
		}
		g.accept(ctx, reply)
	}, func() { refuse(fmt.Sprintf("%s is refused: %s", ResolveGate, ErrUnreadable)) })
}

// refuseLateReplies adds an event for each answer that arrived as a signal while the workflow ended.
func (g *Gates) refuseLateReplies(ctx workflow.Context) {
	if workflow.GetSignalChannel(ctx, ResolveGate).Len() == 0 {
		return
	}
	g.ReceiveReplies(ctx)
	g.log.RecordRest(ctx)
}

// signalled reports whether an answer, or a request for a tier, has arrived as a signal.
func (g *Gates) signalled(ctx workflow.Context) bool {
	return workflow.GetSignalChannel(ctx, ResolveGate).Len() > 0 || g.requests.Arrived(ctx) || g.incidents.Arrived(ctx)
}

// MaxTried limits the number of sessions that a gate lists. A chain without gates never has so many sessions.
const MaxTried = 10

// tried describes the latest sessions and the answers of people between them, oldest first.
func tried(chain escalation.Chain) []string {
	latest := chain.Sessions[max(0, len(chain.Sessions)-MaxTried):]
	described := make([]string, 0, len(latest))
	answers := answered(chain.Gates)
	for i := range latest {
		for len(answers) > 0 && !answers[0].Answer.At.After(latest[i].StartedAt) {
			if i > 0 {
				described = append(described, describeAnswer(answers[0]))
			}
			answers = answers[1:]
		}
		// Gate.Found says what the last one has found
		described = append(described, describeTry(latest[i], i < len(latest)-1))
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
