package parts

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// Set holds the parts of one workflow, which share its state and its policy.
type Set struct {
	Policy   *escalation.Policy
	Log      *EventLog
	Sessions *Sessions
	Reviews  *Reviews
	Gates    *Gates
	People   *Notifier
	Requests *EscalationRequests
	// incidents is nil if the workflow has no incidents.
	Incidents *Incidents
}

// NewSet returns the parts of a workflow whose visible state is chain. The policy stays empty until the workflow has
// read it.
func NewSet(chain escalation.Chain) *Set {
	policy := new(escalation.Policy)
	log := &EventLog{view: newView(chain, policy)}
	s := &Set{
		Policy: policy, Log: log, People: &Notifier{log: log, policy: policy},
		Requests: &EscalationRequests{log: log, policy: policy},
	}
	s.Sessions = &Sessions{Log: log, Policy: policy, people: s.People}
	s.Reviews = &Reviews{log: log, policy: policy, sessions: s.Sessions}
	s.Gates = &Gates{log: log, policy: policy, sessions: s.Sessions, people: s.People, requests: s.Requests}
	return s
}

// AddIncidents connects the workflow with its incidents in the records.
func (s *Set) AddIncidents() {
	s.Incidents = &Incidents{log: s.Log, policy: s.Policy, people: s.People}
	s.Sessions.incidents, s.Gates.incidents = s.Incidents, s.Incidents
}

// Handle registers the queries and the update with which people see the workflow and answer its gates.
func (s *Set) Handle(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, ChainQuery, s.Log.Query); err != nil {
		return err
	}
	return s.Gates.Handle(ctx)
}

// EndRun notifies people of the end of the workflow, and refuses what has arrived too late. It returns the state and
// the error with which the workflow ends. A workflow that continues as new does not end.
func (s *Set) EndRun(ctx workflow.Context, err error) (escalation.Chain, error) {
	if !workflow.IsContinueAsNewError(err) {
		s.People.Announce(ctx, err)
		s.Gates.refuseLateReplies(ctx)
		s.Requests.refuseLate(ctx)
		if s.Incidents != nil {
			s.Incidents.drop(ctx)
		}
	}
	if temporal.IsCanceledError(err) {
		err = cancelled(s.Log.Chain)
	}
	return s.Log.Chain, err
}

// Carried is the state that the parts of a workflow pass to its next run. The functions trimmed and shortenGates limit
// the size of the state.
type Carried struct {
	Policy escalation.Policy `json:"policy"`
	// FirstRunID is the run ID with which the workflow began, before it first continued as new.
	FirstRunID string `json:"first_run_id,omitempty"`
	// Directory is the agents' working directory; empty for the default one.
	Directory string           `json:"directory,omitempty"`
	State     escalation.Chain `json:"state"`
	// InFlight holds the tool calls that the last session left without a result.
	InFlight []activities.ToolCall `json:"in_flight,omitempty"`
	// Reminded counts the reminders of the open gate that have become due.
	Reminded int `json:"reminded,omitempty"`
	// WaitingSince is the time at which an author's or a reviewer's session began to wait; zero if none waits.
	WaitingSince time.Time `json:"waiting_since,omitzero"`
	// Told lists the kinds of all notifications that were sent or given up so far.
	Told []escalation.NotificationKind `json:"told,omitempty"`
}

// Carry returns the state for the next run.
func (s *Set) Carry(ctx workflow.Context) Carried {
	return Carried{
		Policy: withWindows(*s.Policy, s.Sessions), FirstRunID: s.Log.FirstRun(ctx), Directory: s.Sessions.Directory,
		State: trimmed(s.Log.Chain), InFlight: s.Sessions.InFlight, Reminded: s.Gates.reminded,
		WaitingSince: s.Sessions.WaitingSince, Told: s.People.before,
	}
}

// Restore returns the parts in the state in which the previous run has left them.
func (c *Carried) Restore() *Set {
	s := NewSet(c.State)
	*s.Policy = c.Policy
	s.Log.FirstRunID, s.Sessions.Directory, s.Sessions.InFlight = c.FirstRunID, c.Directory, c.InFlight
	s.Gates.reminded, s.People.before, s.Sessions.WaitingSince = c.Reminded, c.Told, c.WaitingSince
	return s
}
