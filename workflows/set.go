package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// set holds the parts of one workflow, which share its state and its policy.
type set struct {
	policy   *escalation.Policy
	log      *eventLog
	sessions *sessions
	reviews  *reviews
	gates    *gates
	people   *notifier
	requests *escalationRequests
	// incidents is nil if the workflow has no incidents.
	incidents *incidents
}

// newSet returns the parts of a workflow whose visible state is chain. The policy stays empty until the workflow has read it.
func newSet(chain escalation.Chain) *set {
	policy := new(escalation.Policy)
	log := &eventLog{view: newView(chain, policy)}
	s := &set{
		policy: policy, log: log, people: &notifier{log: log, policy: policy}, requests: &escalationRequests{log: log, policy: policy},
	}
	s.sessions = &sessions{log: log, policy: policy, people: s.people}
	s.reviews = &reviews{log: log, policy: policy, sessions: s.sessions}
	s.gates = &gates{log: log, policy: policy, sessions: s.sessions, people: s.people, requests: s.requests}
	return s
}

// addIncidents connects the workflow with its incidents in the records.
func (s *set) addIncidents() {
	s.incidents = &incidents{log: s.log, policy: s.policy, people: s.people}
	s.sessions.incidents, s.gates.incidents = s.incidents, s.incidents
}

// handle registers the queries and the update with which people see the workflow and answer its gates.
func (s *set) handle(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, ChainQuery, s.log.query); err != nil {
		return err
	}
	return s.gates.handle(ctx)
}

// endRun notifies people of the end of the workflow, and refuses what has arrived too late. It returns the state and the error with which
// the workflow ends. A workflow that continues as new does not end.
func (s *set) endRun(ctx workflow.Context, err error) (escalation.Chain, error) {
	if !workflow.IsContinueAsNewError(err) {
		s.people.announce(ctx, err)
		s.gates.refuseLateReplies(ctx)
		s.requests.refuseLate(ctx)
		if s.incidents != nil {
			s.incidents.drop(ctx)
		}
	}
	if temporal.IsCanceledError(err) {
		err = cancelled(s.log.chain)
	}
	return s.log.chain, err
}

// carried is the state that the parts of a workflow pass to its next run. The functions trimmed and shortenGates limit the size of the
// state.
type carried struct {
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

// carry returns the state for the next run.
func (s *set) carry(ctx workflow.Context) carried {
	return carried{
		Policy: withWindows(*s.policy, s.sessions), FirstRunID: s.log.firstRun(ctx), Directory: s.sessions.directory,
		State: trimmed(s.log.chain), InFlight: s.sessions.inFlight, Reminded: s.gates.reminded, WaitingSince: s.sessions.waitingSince,
		Told: s.people.before,
	}
}

// restore returns the parts in the state in which the previous run has left them.
func (c *carried) restore() *set {
	s := newSet(c.State)
	*s.policy = c.Policy
	s.log.firstRunID, s.sessions.directory, s.sessions.inFlight = c.FirstRunID, c.Directory, c.InFlight
	s.gates.reminded, s.people.before, s.sessions.waitingSince = c.Reminded, c.Told, c.WaitingSince
	return s
}
