package workflows

import (
	"encoding/json"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

const (
	// maxHistory is the length of the history, in events, from which a chain at a gate continues as new. A session
	// and its gate take about thirty events. Temporal's own limit is 51,200 events.
	maxHistory = 2_000
	// longestHistory is the length of the history, in events, from which the chain continues as new even if
	// notifications are still being sent. The chain then gives up the notifications that are not sent yet.
	longestHistory = 10_000
	// maxCarried is the maximum number of sessions that a chain passes to its next run. The same maximum applies to its
	// gates. Older sessions and gates are only in the records.
	maxCarried = 20
	// maxCarriedEvents is the maximum number of events that a chain passes to its next run. A session and its gate add
	// about six events.
	maxCarriedEvents = 100
)

// Carried is the state that a chain at a gate passes to its next run. The functions trimmed and shortenGates limit the
// size of the state.
type Carried struct {
	Policy escalation.Policy `json:"policy"`
	// FirstRunID is the run ID with which the chain began, before it first continued as new.
	FirstRunID string `json:"first_run_id,omitempty"`
	// Directory is the agents' working directory; empty for the default one.
	Directory string           `json:"directory,omitempty"`
	State     escalation.Chain `json:"state"`
	// Step is the gate at which the chain waits.
	Step gateStep `json:"step"`
	// Proposed is the change of the chain; nil if it has committed nothing.
	Proposed *proposedChange `json:"proposed,omitempty"`
	// InFlight holds the tool calls that the last session left without a result.
	InFlight []activities.ToolCall `json:"in_flight,omitempty"`
	// Reminded counts the reminders of the open gate that have become due.
	Reminded int  `json:"reminded,omitempty"`
	Detached bool `json:"detached,omitempty"`
	// Request is a person's pending request for a tier; nil if there is none.
	Request *EscalateSignal `json:"request,omitempty"`
	// Told lists the kinds of all notifications that the chain has sent or given up so far.
	Told []escalation.NotificationKind `json:"told,omitempty"`
}

// UnmarshalJSON ignores unknown fields, because a newer worker may have written the state and an older worker may read
// it. Unknown fields elsewhere in an input remain errors.
func (c *Carried) UnmarshalJSON(data []byte) error {
	type plain Carried // has no UnmarshalJSON, which would call itself
	return json.Unmarshal(data, (*plain)(c))
}

// mayContinueAsNew reports whether the workflow has a reason to continue as new and would lose nothing by doing so.
// The reasons are a long history, and a change of the version in which new chains begin. mayContinueAsNew returns
// false while a signal is unread, an update is being handled or a notification is being sent. If the history has
// longestHistory events or more, mayContinueAsNew ignores notifications. Otherwise notifications could let the
// history grow without limit.
func (g *gates) mayContinueAsNew(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	if info.CronSchedule != "" {
		return false // isContinued cannot distinguish the new run from a run that cron starts
	}
	length := info.GetCurrentHistoryLength()
	due := info.GetContinueAsNewSuggested() || length >= maxHistory || info.GetTargetWorkerDeploymentVersionChanged()
	unread := g.requests.arrived(ctx) || g.incidents.arrived(ctx)
	return due && !unread && (g.people.allSent() || length >= longestHistory) && workflow.AllHandlersFinished(ctx)
}

// continueAsNew returns the error that makes Temporal start a new run of the chain at the same gate. It loses no
// signal, because the caller has received all signals, and continueAsNew does not block. If another signal arrives at
// this moment, Temporal repeats the workflow task with that signal.
//
// The new run begins in the version of the workers that is current at its start. If the workers have no versions, the
// option InitialVersioningBehavior has no effect.
func (c *chainRun) continueAsNew(ctx workflow.Context, at gateStep) error {
	input := c.input
	input.Carried = &Carried{
		Policy: withWindows(*c.policy, c.sessions), FirstRunID: c.log.firstRun(ctx), Directory: c.sessions.directory,
		State: trimmed(c.log.chain), Step: at, InFlight: c.sessions.inFlight,
		Proposed: c.proposed, Reminded: c.gates.reminded, Detached: c.parent.detached, Request: c.requests.pending, Told: c.people.before,
	}
	info := workflow.GetInfo(ctx)
	workflow.GetLogger(ctx).Info("the chain continues as new", "gate", c.gates.latest().ID,
		"events", info.GetCurrentHistoryLength(), "new_version", info.GetTargetWorkerDeploymentVersionChanged())
	return workflow.NewContinueAsNewErrorWithOptions(ctx, workflow.ContinueAsNewErrorOptions{
		InitialVersioningBehavior: workflow.ContinueAsNewVersioningBehaviorAutoUpgrade,
	}, ChainWorkflow, input)
}

// withWindows returns a policy with the context windows that the CLI has reported for the models of its tiers and roles, because the next
// run does not have all sessions.
func withWindows(policy escalation.Policy, s *sessions) escalation.Policy {
	policy.Tiers = slices.Clone(policy.Tiers)
	for i, tier := range policy.Tiers {
		policy.Tiers[i].ContextWindow = s.window(tier)
	}
	for _, role := range []*escalation.TierPolicy{&policy.Author.Role, &policy.Review.Reviewer} {
		role.ContextWindow = s.window(*role)
	}
	return policy
}

// chainRun returns the chain in the state in which its previous run ended.
func (c *Carried) chainRun(input ChainInput) *chainRun {
	chain := composeChain(input, c.State)
	*chain.policy = c.Policy
	chain.log.firstRunID, chain.sessions.directory, chain.sessions.inFlight = c.FirstRunID, c.Directory, c.InFlight
	chain.gates.reminded, chain.parent.detached, chain.proposed = c.Reminded, c.Detached, c.Proposed
	chain.requests.pending, chain.people.before = c.Request, c.Told
	if gate := c.State.OpenGate(); gate != nil {
		chain.incidents.news = slices.Clone(gate.News)
	}
	return chain
}

// trimmed returns chain with only its latest sessions, gates and events. The field Earlier of the result counts the
// dropped sessions, gates and events. The last session keeps its full verdict, and the other verdicts are shortened.
func trimmed(chain escalation.Chain) escalation.Chain {
	if left := len(chain.Sessions) - maxCarried; left > 0 {
		chain.Earlier.Sessions += left
		chain.Earlier.CostUSD += escalation.TotalCostUSD(chain.Sessions[:left])
		chain.Earlier.CostEstimated = chain.Earlier.CostEstimated || escalation.AnyEstimated(chain.Sessions[:left])
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

// shortenGates shortens closed gates, so that the state does not grow with each gate. It drops the lists of tried
// sessions and cuts long guidance. The records keep the full guidance. The chain's sessions still say what the agents
// did.
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
