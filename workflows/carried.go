package workflows

import (
	"encoding/json"
	"errors"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

const (
	// maxHistory is how many events the history of a run has, about, before the chain goes on in a
	// new one, at a gate. A session and its gate take some forty; Temporal's own limit is 51,200.
	maxHistory = 2_000
	// longestHistory is how many it has before what is on its way to people is given up for that.
	longestHistory = 10_000
	// maxCarried is how many sessions, and how many gates, a chain takes along into a new run. The
	// others are in the records.
	maxCarried = 20
	// maxCarriedEvents is the same for events, of which a session and its gate make half a dozen.
	maxCarriedEvents = 100
)

// Carried is a chain that waits at a gate, as it hands itself to a new run. It is no input for
// people, and is bounded: see trimmed and shortenGates.
type Carried struct {
	Policy escalation.Policy `json:"policy"`
	// Directory is where the agents work; empty for the usual one.
	Directory string           `json:"directory,omitempty"`
	State     escalation.Chain `json:"state"`
	Step      CarriedStep      `json:"step"`
	// InFlight are the tool calls that the last session left without a result.
	InFlight []activities.ToolCall `json:"in_flight,omitempty"`
	// Reminded counts the reminders of the open gate that were due.
	Reminded int  `json:"reminded,omitempty"`
	Detached bool `json:"detached,omitempty"`
	// Order is the tier that a person asked for at the gate, if somebody did.
	Order *EscalateSignal `json:"order,omitempty"`
	// Told are the kinds of what people were told.
	Told []escalation.NotificationKind `json:"told,omitempty"`
}

// UnmarshalJSON reads what a run has handed over. While workers of two releases run, it may have been
// written by the newer one and be read by the older: what only that one knows is left out, where in
// a person's input it would be refused.
func (c *Carried) UnmarshalJSON(data []byte) error {
	type plain Carried // without methods, so that decoding does not come back here
	return json.Unmarshal(data, (*plain)(c))
}

// CarriedStep is the step at whose gate the chain waits.
type CarriedStep struct {
	Tier           escalation.Tier       `json:"tier"`
	Purpose        escalation.Purpose    `json:"purpose,omitempty"`
	Parent         *escalation.Session   `json:"parent,omitempty"`
	ResumeFailed   bool                  `json:"resume_failed,omitempty"`
	TranscriptLost bool                  `json:"transcript_lost,omitempty"`
	CutOff         *escalation.Session   `json:"cut_off,omitempty"`
	Left           []activities.ToolCall `json:"left,omitempty"`
	Handoff        *escalation.Handoff   `json:"handoff,omitempty"`
	Asked          bool                  `json:"asked,omitempty"`
	Floor          escalation.Tier       `json:"floor,omitempty"`
	Refused        bool                  `json:"refused,omitempty"`
	PassesCooldown bool                  `json:"passes_cooldown,omitempty"`
	PassesLimit    bool                  `json:"passes_limit,omitempty"`
}

// carry returns what a new run needs of a step that a gate holds. What a person said when asking for
// it, and the session that it went on with, are of the past: the gate decides on both anew, as it
// does on the patience for waits.
func (s step) carry() CarriedStep {
	return CarriedStep{
		Tier: s.tier, Purpose: s.purpose, Parent: s.parent, ResumeFailed: s.resumeFailed,
		TranscriptLost: s.transcriptLost, CutOff: s.cutOff, Left: s.left, Handoff: s.handoff,
		Asked: s.asked, Floor: s.floor, Refused: s.refused,
		PassesCooldown: s.passesCooldown, PassesLimit: s.passesLimit,
	}
}

func (s CarriedStep) step() step {
	return step{
		tier: s.Tier, purpose: s.Purpose, parent: s.Parent, resumeFailed: s.ResumeFailed,
		transcriptLost: s.TranscriptLost, cutOff: s.CutOff, left: s.Left, handoff: s.Handoff,
		asked: s.Asked, floor: s.Floor, refused: s.Refused,
		passesCooldown: s.PassesCooldown, passesLimit: s.PassesLimit,
	}
}

// errGivenUp is why a notification was given up that was still on its way.
var errGivenUp = errors.New("the chain went on in a new run before everybody could be told")

// mayGoOnAnew reports whether the history is long enough for a new run, and nothing of this one would
// be lost: no order waits for the next decision, no update is being answered, and no notification is
// on its way, unless that would keep the history growing.
func (c *chainRun) mayGoOnAnew(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	if info.CronSchedule != "" {
		return false // its new run could not be told from one that cron starts
	}
	length := info.GetCurrentHistoryLength()
	long := info.GetContinueAsNewSuggested() || length >= maxHistory
	ordered := workflow.GetSignalChannel(ctx, EscalateSignalName).Len() > 0
	return long && !ordered && (c.allTold() || length >= longestHistory) && workflow.AllHandlersFinished(ctx)
}

// goOnAnew returns the error that makes Temporal start a new run of the chain, at the same gate. It
// waits for nothing, so that every signal has been taken in: one that comes at this moment makes
// Temporal repeat the step with it.
func (c *chainRun) goOnAnew(ctx workflow.Context, at step) error {
	input := c.input
	input.Carried = &Carried{
		Policy: c.policy, Directory: c.directory, State: trimmed(c.state), Step: at.carry(), InFlight: c.inFlight,
		Reminded: c.reminded, Detached: c.detached, Order: c.order, Told: c.toldBefore,
	}
	workflow.GetLogger(ctx).Info("the history is long: the chain goes on in a new run", "gate", c.gate().ID)
	return workflow.NewContinueAsNewError(ctx, ChainWorkflow, input)
}

// chainRun is the chain as it goes on.
func (c *Carried) chainRun(input ChainInput) *chainRun {
	return &chainRun{
		input: input, policy: c.Policy, directory: c.Directory, state: c.State, inFlight: c.InFlight,
		reminded: c.Reminded, detached: c.Detached, order: c.Order, toldBefore: c.Told,
	}
}

// trimmed returns chain with the latest of its lists, and the rest counted. Of the sessions that are
// left only the last keeps its verdict in full.
func trimmed(chain escalation.Chain) escalation.Chain {
	if left := len(chain.Sessions) - maxCarried; left > 0 {
		chain.Earlier.Sessions += left
		chain.Earlier.CostUSD += escalation.TotalCostUSD(chain.Sessions[:left])
		chain.Earlier.UnknownUSD += escalation.UnknownUSD(chain.Sessions[:left])
		chain.Sessions = chain.Sessions[left:]
	}
	sessions := make([]escalation.Session, len(chain.Sessions))
	for i, session := range chain.Sessions {
		if i < len(sessions)-1 && session.Verdict != nil {
			session.Verdict = &escalation.Verdict{
				Status: session.Verdict.Status, Summary: clip(session.Verdict.Summary), Services: listed(session.Verdict.Services),
			}
		}
		session.Error = clip(session.Error)
		sessions[i] = session
	}
	chain.Sessions = sessions
	if left := len(chain.Gates) - maxCarried; left > 0 {
		chain.Earlier.Gates += left
		chain.Gates = chain.Gates[left:]
	}
	if left := len(chain.Events) - maxCarriedEvents; left > 0 {
		chain.Earlier.Events += left
		chain.Events = chain.Events[left:]
	}
	return chain
}

// shortenGates cuts what gates hold that the chain has left behind: what was said at them is in the
// records in full, and what had been tried the sessions tell. So nothing piles up from gate to gate.
func shortenGates(gates []escalation.Gate) {
	for i := range gates {
		gate := &gates[i]
		gate.Tried = nil
		if answer := gate.Answer; answer != nil && len(answer.Guidance) > maxMessage {
			short := *answer
			short.Guidance = clip(short.Guidance)
			gate.Answer = &short
		}
	}
}
