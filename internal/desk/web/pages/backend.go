package pages

import (
	"context"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
	"github.com/claudeops/claudeops/workflows"
)

// backend holds the operations that the pages use.
type backend struct {
	overview  overview
	chains    chains
	sessions  sessions
	gates     gates
	incidents incidents
	memories  memories
	services  services
	schedules schedules
	costs     costs
	policy    policy
	talks     talks
}

// talks are the operations on conversations. Those that change something take the name of the person.
type talks interface {
	talkReader
	Send(ctx context.Context, name, about string, message escalation.TalkMessage) (int, error)
	Stop(ctx context.Context, name string, turn int, actor string) (int, error)
	Confirm(ctx context.Context, name string, turn, number int, actor operations.Actor) (string, error)
}

type talkReader interface {
	List(
		ctx context.Context, may func(name string) bool, after string, limit int,
	) (rows []operations.ConversationRow, next string, err error)
	Get(ctx context.Context, name string) (operations.LiveConversation, error)
	History(ctx context.Context, name string, limit int) ([]escalation.TalkTurn, error)
}

type overview interface {
	Now(ctx context.Context) operations.Now
}

type sessions interface {
	Get(ctx context.Context, number int64) (operations.SessionDetail, error)
}

type services interface {
	List(ctx context.Context) (operations.ServiceList, error)
	Get(ctx context.Context, name string) (operations.ServiceDetail, error)
}

type costs interface {
	Report(ctx context.Context, f operations.CostFilter) (operations.CostReport, error)
}

type policy interface {
	Explain(tier escalation.Tier) (operations.Explanation, error)
	Try(call operations.Call, dir string) (operations.Decision, error)
}

type chains interface {
	List(ctx context.Context, f operations.ChainFilter) (operations.ChainPage, error)
	Get(ctx context.Context, id string) (operations.Snapshot, error)
	Escalate(ctx context.Context, id string, signal workflows.EscalateSignal) error
	Cancel(ctx context.Context, id string) error
}

type gates interface {
	List(ctx context.Context) (operations.GateList, error)
	Answer(ctx context.Context, chainID string, answer escalation.GateAnswer) (escalation.GateResolution, error)
}

type incidents interface {
	Page(ctx context.Context, f operations.IncidentFilter, after string) (operations.IncidentPage, error)
	Get(ctx context.Context, id string) (operations.Incident, error)
	Close(ctx context.Context, id string, closing operations.IncidentClosing) (operations.ClosedIncident, error)
	Acknowledge(ctx context.Context, given string, act operations.IncidentAcknowledging) (operations.Incident, error)
}

// memories are the operations on memories. Those that change one take the name of the person.
type memories interface {
	memoryReader
	Add(ctx context.Context, content escalation.MemoryProposal, actor string) (memory.Memory, error)
	Confirm(ctx context.Context, seen operations.SeenMemory, actor string) (memory.Memory, error)
	Edit(ctx context.Context, seen operations.SeenMemory, edit operations.MemoryEdit, actor string) (memory.Memory,
		error)
	Delete(ctx context.Context, seen operations.SeenMemory, actor string) (memory.Memory, error)
}

type memoryReader interface {
	Page(ctx context.Context, f operations.MemoryFilter, after string) (operations.MemoryPage, error)
	Get(ctx context.Context, id string) (memory.Memory, error)
}

type schedules interface {
	List(ctx context.Context) ([]operations.Schedule, error)
	Get(ctx context.Context, id string) (operations.ScheduleDetail, error)
	Pause(ctx context.Context, id, note string) error
	Resume(ctx context.Context, id, note string) error
	Trigger(ctx context.Context, id, overlap string) error
}

// backendOf returns the operations of o.
func backendOf(o *operations.Operations) backend {
	return backend{
		overview: o.Overview, chains: o.Chains, sessions: o.Sessions, gates: o.Gates, incidents: o.Incidents,
		memories: o.Memories, services: o.Services, schedules: o.Schedules, costs: o.Costs, policy: o.Policy,
		talks: o.Conversations,
	}
}
