package console

import (
	"context"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
	"github.com/claudeops/claudeops/workflows"
)

// Operations do what the commands are for, beside the worker or, if Server is set, through a server's API. Those that a
// server can do are interfaces, and hide the embedded ones.
type Operations struct {
	*operations.Operations

	// Server is the address of the server; empty if there is none.
	Server string

	Chains    Chains
	Plans     Plans
	Gates     Gates
	Incidents Incidents
	Schedules Schedules
	Memories  Memories
	// Conversations has the conversations of people with the supervisor.
	Conversations Conversations
}

// Beside returns operations that take place beside the worker.
func Beside(o *operations.Operations) *Operations {
	return &Operations{
		Operations: o, Chains: o.Chains, Plans: o.Plans, Gates: o.Gates, Incidents: o.Incidents, Schedules: o.Schedules,
		Memories: o.Memories, Conversations: o.Conversations,
	}
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

// Plans is described at operations.Plans.
type Plans interface {
	Start(ctx context.Context, start operations.PlanStart) (operations.PlanStarted, error)
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
	Acknowledge(ctx context.Context, given string, act operations.IncidentAcknowledging) (operations.Incident, error)
}

// Schedules is described at operations.Schedules.
type Schedules interface {
	List(ctx context.Context) ([]operations.Schedule, error)
	Get(ctx context.Context, id string) (operations.ScheduleDetail, error)
	Pause(ctx context.Context, id, note string) error
	Resume(ctx context.Context, id, note string) error
	Trigger(ctx context.Context, id, overlap string) error
}

// Memories is described at operations.Memories.
type Memories interface {
	List(ctx context.Context, filter operations.MemoryFilter) ([]memory.Memory, error)
	Get(ctx context.Context, given string) (memory.Memory, error)
	Add(ctx context.Context, content escalation.MemoryProposal, actor string) (memory.Memory, error)
	MemoryDecider
}

// MemoryDecider is described at operations.Memories.
type MemoryDecider interface {
	Confirm(ctx context.Context, seen operations.SeenMemory, actor string) (memory.Memory, error)
	Edit(ctx context.Context, seen operations.SeenMemory, edit operations.MemoryEdit, actor string) (memory.Memory,
		error)
	Delete(ctx context.Context, seen operations.SeenMemory, actor string) (memory.Memory, error)
}

// Conversations reads and directs conversations.
type Conversations interface {
	TalkReader
	TalkDirector
}

// TalkReader is described at operations.Conversations.
type TalkReader interface {
	Get(ctx context.Context, name string) (operations.LiveConversation, error)
	History(ctx context.Context, name string, limit int) ([]escalation.TalkTurn, error)
	Turn(ctx context.Context, name string, turn int) (escalation.TalkTurn, error)
	Wait(ctx context.Context, name string, turn int) (escalation.TalkTurn, error)
}

// TalkDirector is described at operations.Conversations.
type TalkDirector interface {
	Send(ctx context.Context, name, about string, message escalation.TalkMessage) (int, error)
	Stop(ctx context.Context, name string, turn int, actor string) (int, error)
	End(ctx context.Context, name string) error
	Confirm(ctx context.Context, name string, turn, number int, actor operations.Actor) (string, error)
}
