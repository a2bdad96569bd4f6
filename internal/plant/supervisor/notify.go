package supervisor

import (
	"context"

	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/notify"
	"github.com/claudeops/claudeops/workflows"
)

// notifyTarget adapts a target of package notify to activities.NotifyTarget.
type notifyTarget struct{ notify.Target }

var _ activities.NotifyTarget = notifyTarget{}

// NotifyTargets returns the configured notification targets.
func NotifyTargets(settings config.Notify) ([]activities.NotifyTarget, error) {
	parsed, err := settings.Targets()
	if err != nil {
		return nil, err
	}
	targets := make([]activities.NotifyTarget, len(parsed))
	for i, target := range parsed {
		targets[i] = notifyTarget{target}
	}
	return targets, nil
}

// Send implements activities.NotifyTarget.
func (t notifyTarget) Send(ctx context.Context, notification escalation.Notification) error {
	return t.Target.Send(ctx, notify.Message{
		Title: notification.Title, Text: notification.Text, Then: notification.Then, Level: levelOf(notification),
	})
}

func levelOf(notification escalation.Notification) notify.Level {
	if notification.Kind == escalation.NotifyResolved || notification.Kind == escalation.NotifyApproved {
		return notify.LevelSuccess
	}
	switch notification.Severity {
	case escalation.SeverityInfo:
		return notify.LevelInfo
	case escalation.SeverityWarning:
		return notify.LevelWarning
	case escalation.SeverityCritical:
		return notify.LevelFailure
	}
	return notify.LevelInfo
}

// tellSnoozeEnded starts the workflow that tells people of the end of a snooze. Repeated calls start the same one, so
// nobody is told twice.
func (s *Supervisor) tellSnoozeEnded(ctx context.Context, c client.Client, ended escalation.Incident) error {
	if len(s.notifications.Targets) == 0 || len(ended.Chains) == 0 {
		return nil
	}
	input := workflows.SnoozeEnded(ended)
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: input.Key, TaskQueue: s.config.Worker.TaskQueue, StaticSummary: "notify: " + input.Kind.Headline(),
	}, workflows.DeliveryWorkflow, input)
	return err
}
