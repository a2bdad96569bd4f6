package store

import (
	"context"
	"errors"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/redact"
)

// Operation is an operation of a worker on the records, as metrics name it.
type Operation string

// The operations.
const (
	OpOpenSession  Operation = "open_session"
	OpCloseSession Operation = "close_session"
	OpReview       Operation = "review"
	OpRelease      Operation = "release_services"
	OpFindSession  Operation = "find_session"
	OpEvents       Operation = "append_events"
	OpIncidents    Operation = "incidents"
	OpMemories     Operation = "memories"
	OpDecisions    Operation = "append_decisions"
	OpCharge       Operation = "charge"
	OpSweep        Operation = "sweep"
	OpObserve      Operation = "observe"
	OpTalk         Operation = "conversations"
	OpAlerts       Operation = "alerts"
)

// Hooks say what a worker adds to its calls of the Store. Each can be nil.
type Hooks struct {
	// Mask masks the secrets in what is written.
	Mask *redact.Redactor
	// Failed is called with each operation that has failed.
	Failed func(operation Operation, err error)
	// Ended is called once with each session that is closed: repeated calls change nothing.
	Ended func(session escalation.Session)
	// Refused is called with each recorded decision that refuses a call.
	Refused func(decision escalation.CallDecision)
	// Recover records the sessions of the given chains again, which the records lack because they were restored from a
	// backup. It returns false if it cannot ask the chains. Without chains, it records those of the chain for which the
	// context is.
	Recover func(ctx context.Context, chains ...string) (bool, error)
	// HostTimes reports that a worker's host gives the times at which it sweeps and notifies. The time of a database
	// with a clock replaces them, so that the records of all hosts have one time.
	HostTimes bool
}

// With returns a Store of the same database whose calls have hooks.
func (s *Store) With(hooks Hooks) *Store {
	with := *s
	with.hooks = hooks
	return &with
}

// count reports the error of an operation to the worker.
func (s *Store) count(operation Operation, err *error) { //nolint:gocritic // a deferred call reads the error at the end
	if *err != nil && s.hooks.Failed != nil {
		s.hooks.Failed(operation, *err)
	}
}

// recovering calls do, which needs sessions of the given chains. If the records lack them, recovering has them recorded
// again and calls do once more. If a chain cannot be asked now, the error is transient.
func (s *Store) recovering(ctx context.Context, do func() error, chains ...string) error {
	err := do()
	if !errors.Is(err, ErrNotFound) || s.hooks.Recover == nil {
		return err
	}
	switch recovered, failure := s.hooks.Recover(ctx, chains...); {
	case failure != nil:
		return failure
	case recovered:
		return do()
	}
	return err
}

// at returns the time of an act of a worker, of which its host says that it is now.
func (s *Store) at(ctx context.Context, now time.Time) (time.Time, error) {
	if !s.hooks.HostTimes {
		return now, nil
	}
	return s.Now(ctx, now)
}
