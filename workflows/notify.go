package workflows

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

// pendingNotification is a notification on its way.
type pendingNotification struct {
	kind escalation.NotificationKind
	sent workflow.Future
}

// notify tells people something about the chain, if there is anybody to tell. It does not
// wait: the chain goes on while the notification is tried again for as long as it may take, and
// waits for it at its end, in announce.
func (c *chainRun) notify(ctx workflow.Context, kind escalation.NotificationKind, message string) {
	if !c.policy.Notify {
		return
	}
	c.notified++
	sent := sendNotification(ctx, escalation.Notification{
		// The run's id is in the key because a reset runs a part of the chain again.
		Key:     fmt.Sprintf("%s/notification/%d", workflow.GetInfo(ctx).WorkflowExecution.RunID, c.notified),
		Kind:    kind,
		ChainID: c.state.ID,
		Title:   titleOf(kind, c.state.Services),
		Text:    describeForPeople(c.state, message),
	})
	c.notifications = append(c.notifications, pendingNotification{kind, sent})
}

// sendNotification has a notification sent, also when ctx is cancelled.
func sendNotification(ctx workflow.Context, notification escalation.Notification) workflow.Future {
	notification.Severity = notification.Kind.Severity()
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	var notifications *activities.Notifications
	return workflow.ExecuteActivity(withNotification(disconnected, "notify: "+notification.Kind.Headline()),
		notifications.Notify, activities.NotifyInput{Notification: notification})
}

// announce tells people how the chain ended, if that is for them, and waits until all that the
// chain had to tell is told or given up. problem is what broke the chain off; nil if nothing did.
func (c *chainRun) announce(ctx workflow.Context, problem error) {
	switch {
	case problem != nil && c.state.Outcome == "" && !temporal.IsCanceledError(problem):
		c.notify(ctx, escalation.NotifyFailed, "the chain broke off: "+rootMessage(problem))
	case problem == nil:
		if kind, tell := c.ending(); tell {
			c.notify(ctx, kind, c.state.Reason)
		}
	}
	c.awaitNotifications(ctx)
}

// ending is the notification that the chain's outcome calls for. Whoever was told that an
// escalation was blocked or a budget is spent knows already that a person is needed.
func (c *chainRun) ending() (kind escalation.NotificationKind, tell bool) {
	switch c.state.Outcome {
	case escalation.OutcomeNeedsHuman:
		return c.needsHuman(), !c.told(escalation.NotifyBlocked) && !c.told(escalation.NotifyBudgetSpent)
	case escalation.OutcomeFailed:
		return escalation.NotifyFailed, true
	case escalation.OutcomeResolved:
		return escalation.NotifyResolved, c.state.Tier() >= escalation.TierSafeRepair
	case escalation.OutcomeHealthy, escalation.OutcomeSuppressed, escalation.OutcomeOverridden, escalation.OutcomeAborted:
		return "", false
	}
	return "", false
}

// needsHuman is how people are told that they are needed after the session that ran last.
func (c *chainRun) needsHuman() escalation.NotificationKind {
	if last := c.state.Last(); last != nil && last.Status == escalation.SessionBudgetExhausted {
		return escalation.NotifyBudgetSpent
	}
	return escalation.NotifyNeedsHuman
}

func (c *chainRun) told(kind escalation.NotificationKind) bool {
	return slices.Contains(c.toldBefore, kind) ||
		slices.ContainsFunc(c.notifications, func(pending pendingNotification) bool { return pending.kind == kind })
}

// notifyPatience is how long a chain that has ended waits for its notifications before it
// lets the next cycle of its schedule begin.
const notifyPatience = time.Minute

// awaitNotifications waits for what is on its way. The outcome is recorded and published by
// then, so a service that is away keeps only the workflow open, and not for ever; whoever
// cancels the chain ends the wait.
func (c *chainRun) awaitNotifications(ctx workflow.Context) {
	if len(c.notifications) == 0 {
		return
	}
	waiting, stop := workflow.WithCancel(ctx)
	defer stop() // the timer, which is not needed any more
	prompt, err := workflow.AwaitWithOptions(waiting, workflow.AwaitOptions{
		Timeout: notifyPatience, TimerOptions: workflow.TimerOptions{Summary: "notifications on their way"},
	}, c.allTold)
	if err == nil && !prompt {
		c.detach(ctx)
		err = workflow.Await(ctx, c.allTold)
	}
	recording, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	c.settleNotifications(recording, err)
	c.recordRest(recording)
}

// settleNotifications notes which notifications were not sent to everybody, and forgets them all.
// unknown is why those are given up of which nothing is known.
func (c *chainRun) settleNotifications(ctx workflow.Context, unknown error) {
	for _, pending := range c.notifications {
		err := unknown
		if pending.sent.IsReady() {
			err = pending.sent.Get(ctx, nil)
		}
		if err != nil {
			c.note(ctx, escalation.Event{
				Kind: escalation.EventNotNotified, Severity: escalation.SeverityWarning,
				Message: fmt.Sprintf("not everybody was told that %s: %s", pending.kind.Headline(), notificationProblem(err)),
			})
		}
		if !slices.Contains(c.toldBefore, pending.kind) {
			c.toldBefore = append(c.toldBefore, pending.kind)
		}
	}
	c.notifications = nil
}

// blockedBy is the notification that people get when a rule of the policy ends a chain that would
// have gone on.
func blockedBy(rule escalation.Rule) (kind escalation.NotificationKind, tell bool) {
	switch rule {
	case escalation.RuleMaxTier, escalation.RuleCooldown, escalation.RuleServiceBusy, escalation.RuleEscalationLimit,
		escalation.RuleHandoffInvalid:
		return escalation.NotifyBlocked, true
	case escalation.RuleChainBudget, escalation.RuleDayBudget:
		return escalation.NotifyBudgetSpent, true
	case escalation.RuleVerdict, escalation.RuleNoVerdict, escalation.RuleResumeFailed, escalation.RuleTranscriptLost,
		escalation.RuleDryRun, escalation.RuleOperator, escalation.RuleCancelled, escalation.RuleIssues, escalation.RuleAdmitted,
		escalation.RuleGateExpired:
		return "", false
	}
	return "", false
}

// allTold reports whether nothing is on its way any more.
func (c *chainRun) allTold() bool {
	return !slices.ContainsFunc(c.notifications, func(pending pendingNotification) bool { return !pending.sent.IsReady() })
}

// recordRest stores the events that no record took along. A chain that has ended does not fail
// for them: what they say is in its result, too.
func (c *chainRun) recordRest(ctx workflow.Context) {
	if len(c.unrecorded) == 0 {
		return
	}
	if err := c.recordEvents(ctx, "record events", false); err != nil {
		workflow.GetLogger(ctx).Error("events were not recorded", "error", err)
	}
}

// notificationProblem is the sentence at the bottom of an error of sendNotification.
func notificationProblem(err error) string {
	if temporal.IsCanceledError(err) {
		return "the chain was cancelled before it was told"
	}
	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		if cause := errors.Unwrap(timeout); cause != nil {
			return notificationProblem(cause)
		}
		return "no worker did it in time"
	}
	return rootMessage(err)
}

// titleOf is what a notification is about in a line.
func titleOf(kind escalation.NotificationKind, services []string) string {
	title := "Claude Ops: " + kind.Headline()
	if len(services) > 0 {
		title += " (" + listForPeople(services, 3) + ")"
	}
	return title
}

// describeForPeople says what happened to whom, what was tried, what it cost and where to look.
func describeForPeople(chain escalation.Chain, message string) string {
	lines := []string{plain(message)}
	if len(chain.Services) > 0 {
		lines = append(lines, "Services: "+listForPeople(chain.Services, 10))
	}
	latest := max(0, len(chain.Sessions)-maxTried)
	for i := range chain.Sessions[latest:] {
		lines = append(lines, describeTry(chain.Sessions[latest+i]))
	}
	lines = append(lines, fmt.Sprintf("Cost so far: $%.2f", chain.CostUSD), lookAt(chain.ID))
	if gate := chain.OpenGate(); gate != nil {
		until := gate.ExpiresAt.UTC().Format(time.RFC3339)
		lines = append(lines, fmt.Sprintf("Until %s, answer with: starter gate %s", until, Operand(chain.ID)))
	}
	return strings.Join(lines, "\n")
}

// describeTry is one session in a line. What its agent said of it is quoted.
func describeTry(session escalation.Session) string {
	line := fmt.Sprintf("%s (%s): %s, $%.2f", session.Tier, session.Model, session.Status, session.CostUSD)
	if session.Verdict != nil {
		line += fmt.Sprintf(", verdict %s: “%s”", session.Verdict.Status, plain(session.Verdict.Summary))
	}
	return line
}

// ordinaryID is an ID that a shell takes as it is.
var ordinaryID = regexp.MustCompile(`^[A-Za-z0-9._:-]+$`)

func lookAt(chainID string) string { return "Look at it with: starter chain " + Operand(chainID) }

// listForPeople lists the first services.
func listForPeople(services []string, most int) string {
	if len(services) > most {
		return fmt.Sprintf("%s and %d more", plain(strings.Join(services[:most], ", ")), len(services)-most)
	}
	return plain(strings.Join(services, ", "))
}

// harmless takes from a text what chat services make links, markup or calls for attention of.
var harmless = strings.NewReplacer("://", ": //", "[", "(", "]", ")", "<", "(", ">", ")", "@", "(at)",
	"`", "'", "*", "·", "|", "/", "#", "No. ", "\\", "/")

// plain makes agents' words one line that is text and nothing else, wherever it is shown.
func plain(text string) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
	return clip(harmless.Replace(strings.Join(strings.Fields(printable), " ")))
}
