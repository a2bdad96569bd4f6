package parts

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/calendar"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// Notifier notifies people of events in a workflow. The workflow does not wait while notifications are sent, except at
// its end.
type Notifier struct {
	log    *EventLog
	policy *escalation.Policy
	// pending holds the notifications that were started since the last call of settle.
	pending []pendingNotification
	// sent counts the notifications that this run has started.
	sent int
	// before holds the kinds of all settled notifications of this run and of earlier runs.
	before []escalation.NotificationKind
}

// pendingNotification is a notification that is being sent.
type pendingNotification struct {
	escalation.Notification
	sent workflow.Future
}

// failed reports whether the notification could not be sent in notifyPatience.
func (p pendingNotification) failed(ctx workflow.Context) bool {
	return p.sent.IsReady() && p.sent.Get(ctx, nil) != nil
}

// Notify starts a notification if the policy enables notifications and this is no dry run. The method Await waits until
// the notification is sent.
func (n *Notifier) Notify(ctx workflow.Context, kind escalation.NotificationKind, message string) {
	n.notifyAs(ctx, n.nextKey(ctx), kind, message, false)
}

// Remind is like Notify, but nobody is told while all incidents of the chain are acknowledged.
func (n *Notifier) Remind(ctx workflow.Context, kind escalation.NotificationKind, message string) {
	n.notifyAs(ctx, n.nextKey(ctx), kind, message, true)
}

// nextKey returns the key of the next notification. It contains the run ID: after a reset, a new run repeats a part of
// the workflow, and its notifications need new keys.
func (n *Notifier) nextKey(ctx workflow.Context) string {
	n.sent++
	return fmt.Sprintf("%s/notification/%d", workflow.GetInfo(ctx).WorkflowExecution.RunID, n.sent)
}

// NotifyOnceADay is like notify, but the namespace sends at most one notification of this kind per day (UTC), over
// all its chains.
func (n *Notifier) NotifyOnceADay(ctx workflow.Context, kind escalation.NotificationKind, message string) {
	n.notifyAs(ctx, fmt.Sprintf("%s/%s", kind, calendar.Of(workflow.Now(ctx).UTC())), kind, message, false)
}

// NotifyOfLimit tells once a day, over all chains of the namespace, that the limit of the account for a model is used
// up. It does nothing for other decisions.
func (n *Notifier) NotifyOfLimit(ctx workflow.Context, decision escalation.Decision) {
	if decision.Rule == escalation.RuleAccountLimit {
		// The end that a provider names differs by seconds, and some name none. The limit of a week can follow that of
		// some hours.
		day, until := calendar.Of(workflow.Now(ctx).UTC()), calendar.Of(decision.Until.UTC())
		key := fmt.Sprintf("%s/%s/%s/%s", escalation.NotifyLimited, decision.LimitedModel, day, until)
		n.notifyAs(ctx, key, escalation.NotifyLimited, decision.Reason, false)
	}
}

func (n *Notifier) notifyAs(
	ctx workflow.Context, key string, kind escalation.NotificationKind, message string, reminder bool,
) {
	if !n.policy.Notify || n.policy.DryRun {
		return
	}
	chain := n.log.Chain
	notification := escalation.Notification{
		Key:      key,
		Kind:     kind,
		Severity: kind.Severity(),
		Reminder: reminder,
		ChainID:  chain.ID,
		Title:    TitleOf(kind, chain.Services),
		Text:     describeForPeople(chain, message, workflow.Now(ctx)),
		Then:     whatToDo(chain),
	}
	n.pending = append(n.pending, pendingNotification{notification, SendNotification(ctx, notification)})
}

// SendNotification starts the activity that sends a notification. It ends in notifyPatience. Cancelling ctx does not
// stop it.
func SendNotification(ctx workflow.Context, notification escalation.Notification) workflow.Future {
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	var notifications *activities.Notifications
	return workflow.ExecuteActivity(withNotification(disconnected, "notify: "+notification.Kind.Headline()),
		notifications.Notify, activities.NotifyInput{Notification: notification})
}

// Announce notifies people if the outcome of the workflow requires a notification. Then it waits until all
// notifications are sent, or passed on (see await). The argument problem is the error with which the workflow ends; nil
// if there is none.
func (n *Notifier) Announce(ctx workflow.Context, problem error) {
	switch {
	case problem != nil && n.log.Chain.Outcome == "" && !temporal.IsCanceledError(problem):
		n.Notify(ctx, escalation.NotifyFailed, "the chain broke off: "+RootMessage(problem))
	case problem == nil:
		if kind, notify := n.ending(); notify {
			n.Notify(ctx, kind, n.log.Chain.Reason)
		}
	}
	n.Await(ctx)
}

// ending returns the notification for the outcome. If notify is false, people get no notification. For the outcome
// needs_human, notify is false if people already know the rule that blocks the chain: an escalation, a budget or a
// limit.
func (n *Notifier) ending() (kind escalation.NotificationKind, notify bool) {
	switch chain := n.log.Chain; chain.Outcome {
	case escalation.OutcomeNeedsHuman:
		kind, blocked := BlockedBy(chain.Rule)
		return needsHuman(chain), !blocked || !n.notified(kind)
	case escalation.OutcomeFailed:
		return escalation.NotifyFailed, true
	case escalation.OutcomeResolved:
		asked := len(chain.Gates) > 0 // then people wait for news
		return escalation.NotifyResolved, asked || chain.Tier() >= escalation.TierSafeRepair
	case escalation.OutcomeApproved:
		return escalation.NotifyApproved, true
	case escalation.OutcomeHealthy, escalation.OutcomeKnown, escalation.OutcomeSuppressed,
		escalation.OutcomeOverridden, escalation.OutcomeAborted:
		return "", false
	}
	return "", false
}

// notified reports whether a notification of this kind was started, in this run or in an earlier run.
func (n *Notifier) notified(kind escalation.NotificationKind) bool {
	return slices.Contains(n.before, kind) ||
		slices.ContainsFunc(n.pending, func(pending pendingNotification) bool { return pending.Kind == kind })
}

// allSent reports whether every notification is sent, or could not be sent in notifyPatience.
func (n *Notifier) allSent() bool {
	return !slices.ContainsFunc(n.pending, func(pending pendingNotification) bool { return !pending.sent.IsReady() })
}

// someFailed reports whether a notification could not be sent in notifyPatience.
func (n *Notifier) someFailed(ctx workflow.Context) bool {
	return slices.ContainsFunc(n.pending, func(pending pendingNotification) bool { return pending.failed(ctx) })
}

// notifyPatience is the time in which a workflow sends a notification itself. After that time a Delivery takes it over,
// so that a dead address keeps no workflow open. It is enough for a few attempts.
const notifyPatience = 20 * time.Second

// Await waits until all notifications are sent, for notifyPatience at most. Cancelling the workflow ends the wait. What
// is not sent by then is passed on.
func (n *Notifier) Await(ctx workflow.Context) {
	if len(n.pending) == 0 {
		return
	}
	waiting, stop := workflow.WithCancel(ctx)
	defer stop() // stops the timer
	_, err := workflow.AwaitWithOptions(waiting, workflow.AwaitOptions{
		Timeout: 2 * notifyPatience, TimerOptions: workflow.TimerOptions{Summary: "waiting for notifications"},
	}, n.allSent)
	if err != nil {
		workflow.GetLogger(ctx).Info("the workflow does not wait for its notifications", "error", err)
	}
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	n.Settle(disconnected)
	n.log.RecordRest(disconnected)
}

// Settle adds an event for each pending notification that did not reach all targets, and passes the notification on to
// a Delivery. Then it clears pending. Notifications that are still being sent count as failed: the Delivery sends them
// to nobody who has got them.
func (n *Notifier) Settle(ctx workflow.Context) {
	pending := n.pending
	n.pending = nil
	for _, each := range pending {
		n.settleOne(ctx, each)
	}
}

// settleFailed does the same as settle for the notifications that have failed.
func (n *Notifier) settleFailed(ctx workflow.Context) {
	pending := n.pending
	n.pending = nil
	for _, each := range pending {
		if each.failed(ctx) {
			n.settleOne(ctx, each)
		} else {
			n.pending = append(n.pending, each)
		}
	}
}

func (n *Notifier) settleOne(ctx workflow.Context, pending pendingNotification) {
	if !slices.Contains(n.before, pending.Kind) {
		n.before = append(n.before, pending.Kind)
	}
	why := "it was still being sent"
	if pending.sent.IsReady() {
		err := pending.sent.Get(ctx, nil)
		if err == nil {
			return
		}
		why = notificationProblem(err)
	}
	next := "it is tried again for an hour"
	if err := startDelivery(ctx, DeliveryInput{
		Notification: pending.Notification,
		FirstRunID:   n.log.FirstRun(ctx),
	}); err != nil {
		next = "it is not tried again: " + RootMessage(err)
	}
	n.log.Add(ctx, notDelivered(pending.Kind, why+"; "+next))
}

// notDelivered is the event of a notification that did not reach all targets.
func notDelivered(kind escalation.NotificationKind, why string) escalation.Event {
	return escalation.Event{
		Kind: escalation.EventNotNotified, Severity: escalation.SeverityWarning,
		Message: fmt.Sprintf("not everybody was told that %s: %s", kind.Headline(), why),
	}
}

// BlockedBy returns the kind of notification for a rule that prevents the chain from continuing. For any other rule,
// the result tell is false.
func BlockedBy(rule escalation.Rule) (kind escalation.NotificationKind, tell bool) {
	switch rule {
	case escalation.RuleMaxTier, escalation.RuleCooldown, escalation.RuleServiceBusy, escalation.RuleEscalationLimit,
		escalation.RuleHandoffInvalid:
		return escalation.NotifyBlocked, true
	case escalation.RuleChainBudget, escalation.RuleDayBudget:
		return escalation.NotifyBudgetSpent, true
	case escalation.RuleAccountLimit:
		return escalation.NotifyLimited, true
	case escalation.RuleVerdict, escalation.RuleNoVerdict, escalation.RuleResumeFailed, escalation.RuleTranscriptLost,
		escalation.RuleDryRun, escalation.RuleOperator, escalation.RuleCancelled, escalation.RuleIssues,
		escalation.RuleAdmitted, escalation.RuleReview, escalation.RuleGateExpired, escalation.RuleKnown,
		escalation.RuleReturned, escalation.RuleHealed,
		escalation.RuleTalksOfPerson, escalation.RuleProviderAway:
		return "", false
	}
	return "", false
}

// notificationProblem returns the innermost message of an error of SendNotification.
func notificationProblem(err error) string {
	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		if cause := errors.Unwrap(timeout); cause != nil {
			return notificationProblem(cause)
		}
		return "no worker did it in time"
	}
	return RootMessage(err)
}

// TitleOf returns the title of a notification.
func TitleOf(kind escalation.NotificationKind, services []string) string {
	title := "Claude Ops: " + kind.Headline()
	if len(services) > 0 {
		title += " (" + listForPeople(services, 3) + ")"
	}
	return title
}

// describeForPeople returns the text of a notification. At an open gate it says what people see there. Otherwise it
// lists services, incidents, cost, and what was tried, the latest last.
func describeForPeople(chain escalation.Chain, message string, now time.Time) string {
	if gate := chain.OpenGate(); gate != nil {
		if gate.Found != "" {
			message = strings.TrimRight(message, ".") + ": " + gate.Found
		}
		lines := slices.DeleteFunc(describeFacts(*gate, now), func(line string) bool {
			return strings.HasPrefix(line, escalation.FactFound+": ") // the first line says it
		})
		return strings.Join(slices.Concat([]string{Plain(message)}, lines, describeAnswers(*gate, now)), "\n")
	}
	lines := []string{Plain(message)}
	if len(chain.Services) > 0 {
		lines = append(lines, "Services: "+listForPeople(chain.Services, 10))
	}
	for _, incident := range chain.Incidents[:min(len(chain.Incidents), escalation.MaxGateFaults)] {
		lines = append(lines, "Incident: "+Plain(describeIncident(incident)))
	}
	lines = append(lines, "Cost so far: "+chain.CostText())
	latest := max(0, len(chain.Sessions)-MaxTried)
	for i := range chain.Sessions[latest:] {
		lines = append(lines, describeTry(chain.Sessions[latest+i], true))
	}
	if reviews := chain.Reviews; len(reviews) > 0 {
		done := reviews[len(reviews)-1]
		lines = append(lines, "Review: "+Plain(done.Describe()))
		if done.PullRequest != "" {
			lines = append(lines, "Pull request: "+done.PullRequest) // an address that the supervisor has checked
		}
	}
	return strings.Join(lines, "\n")
}

// whatToDo returns the commands for people: what answers an open gate, and what shows the chain.
func whatToDo(chain escalation.Chain) string {
	if gate := chain.OpenGate(); gate != nil {
		until := calendar.Clock(gate.ExpiresAt, time.Time{})
		return fmt.Sprintf("Until %s, answer with: claudeops gate %s\n", until, Operand(chain.ID)) + lookAt(chain.ID)
	}
	return lookAt(chain.ID)
}

// describeTry describes a session in one line. It quotes what the agent says that it has tried; if it says nothing, and
// quotes is true, what it has found.
func describeTry(session escalation.Session, quotes bool) string {
	who := session.Tier.String()
	if session.Purpose.HasRole() {
		who = string(session.Purpose)
	}
	if session.Phase != "" && session.Phase != escalation.PlanItself {
		who += ", phase " + session.Phase
	}
	line := fmt.Sprintf("%s (%s), %s: ", who, session.Model, session.CostText())
	verdict := session.Verdict
	switch {
	case verdict == nil:
		line += escalation.InWords(session.Status)
	case verdict.Remediation != "":
		line += fmt.Sprintf("%s, tried “%s”", escalation.InWords(verdict.Status), Plain(verdict.Attempt()))
	case quotes:
		line += fmt.Sprintf("%s, found “%s”", escalation.InWords(verdict.Status), Plain(verdict.Attempt()))
	default:
		line += escalation.InWords(verdict.Status)
	}
	// The commits of a plan's author are on the branch that the plan names.
	if left := session.Worktree.Describe(session.Host); left != "" && session.Purpose != escalation.PurposeAuthor {
		line += "; " + Plain(left)
	}
	return line
}

// ordinaryID matches IDs that need no quotes in a shell.
var ordinaryID = regexp.MustCompile(`^[A-Za-z0-9._:-]+$`)

func lookAt(chainID string) string { return "Look at it with: claudeops chain " + Operand(chainID) }

// listForPeople lists at most the given number of services, and says how many services are left out.
func listForPeople(services []string, most int) string {
	if len(services) > most {
		return fmt.Sprintf("%s and %d more", Plain(strings.Join(services[:most], ", ")), len(services)-most)
	}
	return Plain(strings.Join(services, ", "))
}

// Plain returns text by an agent as one line of printable text without markup.
func Plain(text string) string { return Clip(plaintext.ForChat(text)) }
