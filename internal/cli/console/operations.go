package console

import (
	"context"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/operations"
	"github.com/claudeops/claudeops/workflows"
)

// Operations do what the commands are for, beside the worker or, if Server is set, through a server's API. Those that a server
// can do are interfaces, and hide the embedded ones.
type Operations struct {
	*operations.Operations

	// Server is the address of the server; empty if there is none.
	Server string

	Chains    Chains
	Gates     Gates
	Incidents Incidents
	Schedules Schedules
}

// Beside returns operations that take place beside the worker.
func Beside(o *operations.Operations) *Operations {
	return &Operations{Operations: o, Chains: o.Chains, Gates: o.Gates, Incidents: o.Incidents, Schedules: o.Schedules}
}

// Chains reads and directs chains.
type Chains interface {
	ChainReader
	ChainDirector
}

// ChainReader is described at operations.Chains.
type ChainReader interface {
	List(ctx context.Context, filter operations.ChainFilter) (operations.ChainPage, error)
	Get(ctx context.Context, id string) (operations.Snapshot, error)
	Session(ctx context.Context, number int64) (operations.Lineage, error)
	Follow(ctx context.Context, id string, observer operations.Observer) (escalation.Chain, error)
}

// ChainDirector is described at operations.Chains.
type ChainDirector interface {
	Start(ctx context.Context, id string, input workflows.ChainInput) (operations.Started, error)
	Escalate(ctx context.Context, id string, signal workflows.EscalateSignal) error
	Cancel(ctx context.Context, id string) error
}

// Gates is described at operations.Gates.
type Gates interface {
	List(ctx context.Context) (operations.GateList, error)
	Get(ctx context.Context, chainID string) (*escalation.Gate, error)
	Answer(ctx context.Context, chainID string, answer escalation.GateAnswer) (escalation.GateResolution, error)
}

// Incidents is described at operations.Incidents.
type Incidents interface {
	List(ctx context.Context, filter operations.IncidentFilter) ([]operations.Incident, error)
	Get(ctx context.Context, given string) (operations.Incident, error)
	Close(ctx context.Context, given string, closing operations.IncidentClosing) (operations.ClosedIncident, error)
}

// Schedules is described at operations.Schedules.
type Schedules interface {
	List(ctx context.Context) ([]operations.Schedule, error)
	Get(ctx context.Context, id string) (operations.ScheduleDetail, error)
	Pause(ctx context.Context, id, note string) error
	Resume(ctx context.Context, id, note string) error
	Trigger(ctx context.Context, id, overlap string) error
}
