package parts

import (
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// DeliveryWorkflow is the workflow type of Delivery.
const DeliveryWorkflow = "Delivery"

// DeliveryInput is a notification that a workflow could not send in notifyPatience.
type DeliveryInput struct {
	escalation.Notification
	// FirstRunID is the run ID with which the workflow began, for the records.
	FirstRunID string `json:"first_run_id,omitempty"`
}

// SnoozeEnded returns the input of the Delivery that tells people that the snooze of an incident has ended. It belongs
// to the chain that met the incident last.
func SnoozeEnded(ended escalation.Incident) DeliveryInput {
	chain := ended.Chains[len(ended.Chains)-1]
	kind := escalation.NotifySnoozeEnded
	return DeliveryInput{
		FirstRunID: chain.FirstRunID,
		Notification: escalation.Notification{
			Key:  fmt.Sprintf("%s/snooze/%d", ended.ID, ended.Acknowledged.Until.UnixMilli()),
			Kind: kind, Severity: kind.Severity(), ChainID: chain.ChainID, IncidentID: ended.ID,
			Title: TitleOf(kind, ended.Services),
			Text: Plain(fmt.Sprintf("%s is still open: %s", ended.ID, ended.Summary)) + "\n" +
				Plain("Snoozed by "+ended.Acknowledged.Actor),
			Then: "Look at it with: claudeops incidents show " + ended.ID,
		},
	}
}

// lastAttempt is the time in which the last attempt of the workflow that passes on a notification ends and records whom
// it has reached.
const lastAttempt = 30 * time.Second

// Delivery sends a notification that its workflow could not send, for an hour. Then it records as an event of the chain
// whether it has reached everybody.
func Delivery(ctx workflow.Context, input DeliveryInput) error {
	waited := workflow.NewTimerWithOptions(ctx, lastAttempt, workflow.TimerOptions{Summary: "before the next attempt"})
	if err := waited.Get(ctx, nil); err != nil {
		return err
	}
	var notifications *activities.Notifications
	sending := withDelivery(ctx, "notify: "+input.Kind.Headline())
	event := escalation.Event{
		Kind: escalation.EventNotified, Severity: escalation.SeverityInfo,
		Message: fmt.Sprintf("everybody has been told now that %s", input.Kind.Headline()),
	}
	err := workflow.ExecuteActivity(sending, notifications.Notify,
		activities.NotifyInput{Notification: input.Notification}).Get(ctx, nil)
	if err != nil {
		event = notDelivered(input.Kind, notificationProblem(err)+"; it was tried for an hour, and is not tried again")
	}
	event.Key, event.ChainID, event.At = workflow.GetInfo(ctx).WorkflowExecution.RunID+"/1", input.ChainID,
		workflow.Now(ctx)
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	var records *activities.Records
	return workflow.ExecuteActivity(WithRecords(disconnected, "record whether everybody was told"),
		records.RecordEvents,
		activities.RecordEventsInput{
			ChainID: input.ChainID, FirstRunID: input.FirstRunID,
			Events: []escalation.Event{event},
		},
	).Get(disconnected, nil)
}

// startDelivery starts a Delivery that survives this workflow, also if this workflow is cancelled later. It returns
// when Temporal has started it.
func startDelivery(ctx workflow.Context, input DeliveryInput) error {
	detached, _ := workflow.NewDisconnectedContext(ctx)
	abandoned := workflow.WithChildOptions(detached, workflow.ChildWorkflowOptions{
		WorkflowID:        input.ChainID + "/delivery/" + input.Key,
		ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON,
		StaticSummary:     "notify: " + input.Kind.Headline(),
	})
	return workflow.ExecuteChildWorkflow(abandoned, DeliveryWorkflow, input).GetChildWorkflowExecution().Get(abandoned,
		nil)
}
