package workflows

import (
	"encoding/json"
	"errors"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

const (
	// maxHistory is how many events the history of a run has, about, before the chain continues as new, at a gate. A session
	// and its gate take some thirty; Temporal's own limit is 51,200.
	maxHistory = 2_000
	// longestHistory is how many it has before notifications that are being sent are given up for that.
	longestHistory = 10_000
	// maxCarried is how many sessions, and how many gates, a chain hands to its next run. The others are in the records.
	maxCarried = 20
	// maxCarriedEvents is the same for events, of which a session and its gate make half a dozen.
	maxCarriedEvents = 100
)

// Carried is the state that a chain at a gate hands to its next run. It is no input for people, and is bounded: see
// trimmed and shortenGates.
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
	Request *EscalateSignal `json:"request,omitempty"`
	// Told are the kinds of the notifications that people got.
	Told []escalation.NotificationKind `json:"told,omitempty"`
}

// UnmarshalJSON reads the state leniently. While workers of two releases run, the newer one may have written it and the older
// one read it: unknown fields are ignored, where a person's input would be refused.
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
	MinTier        escalation.Tier       `json:"min_tier,omitempty"`
	Refused        bool                  `json:"refused,omitempty"`
	PassesCooldown bool                  `json:"passes_cooldown,omitempty"`
	PassesLimit    bool                  `json:"passes_limit,omitempty"`
}

// carry returns what the next run needs of a step at a gate. The request that led to the step, and the session that it
// continued, are left out: the gate decides on both anew.
func (s step) carry() CarriedStep {
	return CarriedStep{
		Tier: s.tier, Purpose: s.purpose, Parent: s.parent, ResumeFailed: s.resumeFailed,
		TranscriptLost: s.transcriptLost, CutOff: s.cutOff, Left: s.left, Handoff: s.handoff,
		Asked: s.asked, MinTier: s.minTier, Refused: s.refused,
		PassesCooldown: s.passesCooldown, PassesLimit: s.passesLimit,
	}
}

// step returns the step that waits at the open gate.
func (s CarriedStep) step() step {
	return step{
		action: stepGate,
		tier:   s.Tier, purpose: s.Purpose, parent: s.Parent, resumeFailed: s.ResumeFailed,
		transcriptLost: s.TranscriptLost, cutOff: s.CutOff, left: s.Left, handoff: s.Handoff,
		asked: s.Asked, minTier: s.MinTier, refused: s.Refused,
		passesCooldown: s.PassesCooldown, passesLimit: s.PassesLimit,
	}
}

// errGivenUp is the error of a notification that was still being sent when the chain continued as new.
var errGivenUp = errors.New("the chain went on in a new run before everybody could be told")

// mayContinueAsNew reports whether the history is long enough for a new run, and nothing of this one would be lost: no
// request for a tier has arrived unread, no update is being answered, and no notification is being sent, unless waiting
// for that would let the history grow without end.
func (g *gates) mayContinueAsNew(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	if info.CronSchedule != "" {
		return false // its new run could not be told from one that cron starts
	}
	length := info.GetCurrentHistoryLength()
	long := info.GetContinueAsNewSuggested() || length >= maxHistory
	return long && !g.requests.arrived(ctx) && (g.people.allSent() || length >= longestHistory) && workflow.AllHandlersFinished(ctx)
}

// continueAsNew returns the error that makes Temporal start a new run of the chain, at the same gate. It does not block, so
// every signal has been taken in: if one arrives at this moment, Temporal repeats the workflow task with it.
func (c *chainRun) continueAsNew(ctx workflow.Context, at step) error {
	input := c.input
	input.Carried = &Carried{
		Policy: *c.policy, Directory: c.sessions.directory, State: trimmed(c.log.chain), Step: at.carry(), InFlight: c.sessions.inFlight,
		Reminded: c.gates.reminded, Detached: c.parent.detached, Request: c.requests.pending, Told: c.people.before,
	}
	workflow.GetLogger(ctx).Info("the history is long: the chain continues as new", "gate", c.gates.latest().ID)
	return workflow.NewContinueAsNewError(ctx, ChainWorkflow, input)
}

// chainRun returns the chain as it continues.
func (c *Carried) chainRun(input ChainInput) *chainRun {
	chain := composeChain(input, c.State)
	*chain.policy = c.Policy
	chain.sessions.directory, chain.sessions.inFlight = c.Directory, c.InFlight
	chain.gates.reminded, chain.parent.detached = c.Reminded, c.Detached
	chain.requests.pending, chain.people.before = c.Request, c.Told
	return chain
}

// trimmed returns chain with the latest entries of its lists, and counts the rest. Only the last session keeps its verdict in
// full.
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

// shortenGates shortens gates that the chain has left, so that nothing piles up from gate to gate. The records have what was
// said at them in full, and the sessions what had been tried.
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
