package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows/chain"
	"github.com/claudeops/claudeops/workflows/parts"
	"github.com/claudeops/claudeops/workflows/plan"
	"github.com/claudeops/claudeops/workflows/talk"
)

// EscalationChain runs one chain until it has an outcome. Normally it begins with Tier 1 and escalates to higher tiers.
// The input can name another first tier.
func EscalationChain(ctx workflow.Context, input ChainInput) (ChainResult, error) {
	return chain.EscalationChain(ctx, input)
}

// Cycle runs one chain for a schedule. It ends when the chain ends, or signals a long wait. If the chain failed, the
// cycle fails.
func Cycle(ctx workflow.Context, input ChainInput) (CycleResult, error) {
	return chain.Cycle(ctx, input)
}

// PlanReview has a plan reviewed, and amended until it is approved. Its state is an escalation.Chain.
func PlanReview(ctx workflow.Context, input PlanInput) (ChainResult, error) {
	return plan.Review(ctx, input)
}

// PhaseExecution has the phases of a plan carried out by an author, one after the other. Its state is an
// escalation.Chain.
func PhaseExecution(ctx workflow.Context, input PlanInput) (ChainResult, error) {
	return plan.PhaseExecution(ctx, input)
}

// Conversation answers the messages of a person or a channel, one at a time. It ends if it is cancelled, or if nobody
// writes for a week.
func Conversation(ctx workflow.Context, input ConversationInput) error {
	return talk.Conversation(ctx, input)
}

// NewConversation returns a workflow like Conversation that continues as new from a history of the given length, in
// events.
func NewConversation(limit int) func(workflow.Context, ConversationInput) error {
	return talk.NewConversation(limit)
}

// Delivery sends a notification that its workflow could not send, for an hour.
func Delivery(ctx workflow.Context, input DeliveryInput) error { return parts.Delivery(ctx, input) }

// SnoozeEnded returns the input of the Delivery that tells people that the snooze of an incident has ended.
func SnoozeEnded(ended escalation.Incident) DeliveryInput { return parts.SnoozeEnded(ended) }

// The types of the workflows, under which workers register them.
const (
	ChainWorkflow          = chain.Workflow
	CycleWorkflow          = chain.CycleWorkflow
	PlanReviewWorkflow     = plan.ReviewWorkflow
	PhaseExecutionWorkflow = plan.PhaseExecutionWorkflow
	ConversationWorkflow   = talk.ConversationWorkflow
	DeliveryWorkflow       = parts.DeliveryWorkflow
)

// ChainWorkflows lists the workflow types whose state is an escalation.Chain, and whose gates people answer.
func ChainWorkflows() []string {
	return []string{ChainWorkflow, PlanReviewWorkflow, PhaseExecutionWorkflow}
}

type (
	// ChainInput is the input of EscalationChain and Cycle.
	ChainInput = chain.Input
	// ResumeFrom names an earlier conversation.
	ResumeFrom = chain.ResumeFrom
	// AskInput says why a chain must ask a person first.
	AskInput = chain.AskInput
	// ChainResult is the final state of a chain or of the work on a plan.
	ChainResult = escalation.Chain
	// CycleResult is the result of Cycle.
	CycleResult = chain.CycleResult
	// PlanInput is the input of PlanReview and PhaseExecution.
	PlanInput = plan.Input
	// CarriedPlan is the state that the work on a plan passes to its next run.
	CarriedPlan = plan.Carried
	// ConversationInput is the input of Conversation.
	ConversationInput = talk.ConversationInput
	// DeliveryInput is the input of Delivery.
	DeliveryInput = parts.DeliveryInput
)

// The queries, the updates and the signals.
const (
	ChainQuery         = parts.ChainQuery
	GateQuery          = parts.GateQuery
	ResolveGate        = parts.ResolveGate
	EscalateSignalName = parts.EscalateSignalName
	IncidentSignalName = parts.IncidentSignalName
	WaitingSignal      = parts.WaitingSignal
	ConversationQuery  = talk.ConversationQuery
	SendMessage        = talk.SendMessage
	StopTurn           = talk.StopTurn
)

type (
	// EscalateSignal requests a higher tier.
	EscalateSignal = parts.EscalateSignal
	// IncidentSignal has news about an incident.
	IncidentSignal = parts.IncidentSignal
	// GateReply answers a gate.
	GateReply = parts.GateReply
	// ConversationState is the result of ConversationQuery.
	ConversationState = talk.ConversationState
	// ConversationTurn is one turn of a ConversationState.
	ConversationTurn = talk.ConversationTurn
	// TurnRequest names a turn to stop.
	TurnRequest = talk.TurnRequest
	// Sent is the result of SendMessage and StopTurn.
	Sent = talk.Sent
)

// The types of the application errors of workflows and updates.
const (
	ErrorTypeInput       = parts.ErrorTypeInput
	ErrorTypeChainFailed = chain.ErrorTypeChainFailed
	ErrorTypeBusy        = talk.ErrorTypeBusy
	ErrorTypeOther       = talk.ErrorTypeOther
	ErrorTypeStopping    = talk.ErrorTypeStopping
)

// The search attributes of chains.
var (
	TierAttribute     = parts.TierAttribute
	OutcomeAttribute  = parts.OutcomeAttribute
	GateAttribute     = parts.GateAttribute
	ServicesAttribute = parts.ServicesAttribute
	CostAttribute     = parts.CostAttribute
	IncidentAttribute = parts.IncidentAttribute
	TriggerAttribute  = parts.TriggerAttribute
	SearchAttributes  = parts.SearchAttributes
)

// GateOpen is the value of GateAttribute while a gate is open.
const GateOpen = parts.GateOpen

// These name workflows and task queues, and describe what a chain has refused.
var (
	CycleWorkflowID        = chain.CycleWorkflowID
	ChainOfCycle           = chain.OfCycle
	ConversationWorkflowID = talk.ConversationWorkflowID
	AgentsTaskQueue        = parts.AgentsTaskQueue
	TalksTaskQueue         = parts.TalksTaskQueue
	Operand                = parts.Operand
	DescribeRefusedReply   = parts.DescribeRefusedReply
)
