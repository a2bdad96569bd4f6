package parts

import (
	"go.temporal.io/sdk/workflow"

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

// MayContinueAsNew reports whether the workflow has a reason to continue as new and would lose nothing by doing so.
// The reasons are a long history, and a change of the version in which new chains begin. MayContinueAsNew returns
// false while a signal is unread, an update is being handled or a notification is being sent. If the history has
// longestHistory events or more, MayContinueAsNew ignores notifications. Otherwise notifications could let the
// history grow without limit.
func (g *Gates) MayContinueAsNew(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	if info.CronSchedule != "" {
		return false // IsContinued cannot distinguish the new run from a run that cron starts
	}
	length := info.GetCurrentHistoryLength()
	due := info.GetContinueAsNewSuggested() || length >= maxHistory || info.GetTargetWorkerDeploymentVersionChanged()
	unread := g.requests.Arrived(ctx) || g.incidents.Arrived(ctx)
	return due && !unread && (g.people.allSent() || length >= longestHistory) && workflow.AllHandlersFinished(ctx)
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
				Status: session.Verdict.Status, Summary: Clip(session.Verdict.Summary),
				Services: listed(session.Verdict.Services),
			}
		}
		session.Error = Clip(session.Error)
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

// shortenGates shortens closed gates, so that the state does not grow with each gate. It drops the lists of what is
// wrong and was tried, and cuts long guidance. The records keep the full guidance. The chain's sessions still say what
// the agents did.
func shortenGates(gates []escalation.Gate) {
	for i := range gates {
		gate := &gates[i]
		gate.Tried, gate.Faults, gate.GateNotes = nil, nil, escalation.GateNotes{}
		if answer := gate.Answer; answer != nil && len(answer.Guidance) > maxMessage {
			short := *answer
			short.Guidance = Clip(short.Guidance)
			gate.Answer = &short
		}
	}
}

// Brief returns those fields of a session that the next turn needs.
func Brief(session escalation.Session) *escalation.Session {
	session.Verdict, session.Error, session.Worktree = nil, "", nil
	return &session
}
