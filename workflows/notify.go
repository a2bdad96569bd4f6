package workflows

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
	"github.com/claudeops/claudeops/internal/plaintext"
)

// notifier notifies people of events in a workflow. The workflow does not wait while notifications are sent, except at
// its end.
type notifier struct {
	log    *eventLog
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
	kind escalation.NotificationKind
	sent workflow.Future
}

// notify starts a notification if the policy enables notifications. The method await waits until the notification is
// sent.
func (n *notifier) notify(ctx workflow.Context, kind escalation.NotificationKind, message string) {
	n.sent++
	// The key contains the run ID. After a reset, a new run repeats a part of the workflow, and its notifications need
	// new keys.
	n.notifyAs(ctx, fmt.Sprintf("%s/notification/%d", workflow.GetInfo(ctx).WorkflowExecution.RunID, n.sent), kind, message)
}

// notifyOnceADay is like notify, but the namespace sends at most one notification of this kind per day (UTC), over
// all its chains.
func (n *notifier) notifyOnceADay(ctx workflow.Context, kind escalation.NotificationKind, message string) {
	n.notifyAs(ctx, fmt.Sprintf("%s/%s", kind, workflow.Now(ctx).UTC().Format(time.DateOnly)), kind, message)
}

func (n *notifier) notifyAs(ctx workflow.Context, key string, kind escalation.NotificationKind, message string) {
	if !n.policy.Notify {
		return
	}
	chain := n.log.chain
	sent := sendNotification(ctx, escalation.Notification{
		Key:     key,
		Kind:    kind,
		ChainID: chain.ID,
		Title:   titleOf(kind, chain.Services),
		Text:    describeForPeople(chain, message),
	})
	n.pending = append(n.pending, pendingNotification{kind, sent})
}

// sendNotification starts the activity that sends a notification. Cancelling ctx does not stop it.
func sendNotification(ctx workflow.Context, notification escalation.Notification) workflow.Future {
	notification.Severity = notification.Kind.Severity()
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	var notifications *activities.Notifications
	return workflow.ExecuteActivity(withNotification(disconnected, "notify: "+notification.Kind.Headline()),
		notifications.Notify, activities.NotifyInput{Notification: notification})
}

// announce notifies people if the outcome of the workflow requires a notification. Then it waits until all notifications are
// sent or given up (see await). The argument problem is the error with which the workflow ends; nil if there is none.
func (n *notifier) announce(ctx workflow.Context, problem error, slow func(workflow.Context)) {
	switch {
	case problem != nil && n.log.chain.Outcome == "" && !temporal.IsCanceledError(problem):
		n.notify(ctx, escalation.NotifyFailed, "the chain broke off: "+rootMessage(problem))
	case problem == nil:
		if kind, notify := n.ending(); notify {
			n.notify(ctx, kind, n.log.chain.Reason)
		}
	}
	n.await(ctx, slow)
}

// ending returns the notification for the outcome. If notify is false, people get no notification. For the outcome
// needs_human, notify is false if people already know that an escalation is blocked or a budget is spent.
func (n *notifier) ending() (kind escalation.NotificationKind, notify bool) {
	switch chain := n.log.chain; chain.Outcome {
	case escalation.OutcomeNeedsHuman:
		return needsHuman(chain), !n.notified(escalation.NotifyBlocked) && !n.notified(escalation.NotifyBudgetSpent)
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
func (n *notifier) notified(kind escalation.NotificationKind) bool {
	return slices.Contains(n.before, kind) ||
		slices.ContainsFunc(n.pending, func(pending pendingNotification) bool { return pending.kind == kind })
}

// allSent reports whether every notification is sent or given up.
func (n *notifier) allSent() bool {
	return !slices.ContainsFunc(n.pending, func(pending pendingNotification) bool { return !pending.sent.IsReady() })
}

// notifyPatience is the time after which a chain that waits for its notifications no longer delays the next cycle of
// its schedule.
const notifyPatience = time.Minute

// await waits until all notifications are sent or given up. The outcome is already recorded and published. So an
// unavailable notification service only keeps the workflow open, for an hour at most. Cancelling the workflow ends
// the wait. If the wait takes longer than notifyPatience, await calls the function slow.
func (n *notifier) await(ctx workflow.Context, slow func(workflow.Context)) {
	if len(n.pending) == 0 {
		return
	}
	waiting, stop := workflow.WithCancel(ctx)
	defer stop() // stops the timer
	prompt, err := workflow.AwaitWithOptions(waiting, workflow.AwaitOptions{
		Timeout: notifyPatience, TimerOptions: workflow.TimerOptions{Summary: "waiting for notifications"},
	}, n.allSent)
	if err == nil && !prompt {
		slow(ctx)
		err = workflow.Await(ctx, n.allSent)
	}
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	n.settle(disconnected, err)
	n.log.recordRest(disconnected)
}

// settle adds an event for each pending notification that did not reach all targets. Then it clears pending. The
// argument unknown is the error for notifications that are still being sent.
func (n *notifier) settle(ctx workflow.Context, unknown error) {
	for _, pending := range n.pending {
		err := unknown
		if pending.sent.IsReady() {
			err = pending.sent.Get(ctx, nil)
		}
		if err != nil {
			n.log.add(ctx, escalation.Event{
				Kind: escalation.EventNotNotified, Severity: escalation.SeverityWarning,
				Message: fmt.Sprintf("not everybody was told that %s: %s", pending.kind.Headline(), notificationProblem(err)),
			})
		}
		if !slices.Contains(n.before, pending.kind) {
			n.before = append(n.before, pending.kind)
		}
	}
	n.pending = nil
}

// blockedBy returns the kind of notification for a rule that prevents the chain from continuing. For any other rule,
// the result tell is false.
func blockedBy(rule escalation.Rule) (kind escalation.NotificationKind, tell bool) {
	switch rule {
	case escalation.RuleMaxTier, escalation.RuleCooldown, escalation.RuleServiceBusy, escalation.RuleEscalationLimit,
		escalation.RuleHandoffInvalid:
		return escalation.NotifyBlocked, true
	case escalation.RuleChainBudget, escalation.RuleDayBudget:
		return escalation.NotifyBudgetSpent, true
	case escalation.RuleVerdict, escalation.RuleNoVerdict, escalation.RuleResumeFailed, escalation.RuleTranscriptLost,
		escalation.RuleDryRun, escalation.RuleOperator, escalation.RuleCancelled, escalation.RuleIssues, escalation.RuleAdmitted,
		escalation.RuleReview, escalation.RuleGateExpired, escalation.RuleKnown, escalation.RuleReturned, escalation.RuleHealed:
		return "", false
	}
	return "", false
}

// notificationProblem returns the innermost message of an error of sendNotification.
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

// titleOf returns the title of a notification.
func titleOf(kind escalation.NotificationKind, services []string) string {
	title := "Claude Ops: " + kind.Headline()
	if len(services) > 0 {
		title += " (" + listForPeople(services, 3) + ")"
	}
	return title
}

// describeForPeople returns the text of a notification: message, services, tried sessions, cost and the command that
// shows the chain. If a gate is open, it adds the command that answers the gate.
func describeForPeople(chain escalation.Chain, message string) string {
	lines := []string{plain(message)}
	if len(chain.Services) > 0 {
		lines = append(lines, "Services: "+listForPeople(chain.Services, 10))
	}
	for _, incident := range chain.Incidents[:min(len(chain.Incidents), maxToldIncidents)] {
		lines = append(lines, "Incident: "+plain(describeIncident(incident)))
	}
	latest := max(0, len(chain.Sessions)-maxTried)
	for i := range chain.Sessions[latest:] {
		lines = append(lines, describeTry(chain.Sessions[latest+i]))
	}
	if reviews := chain.Reviews; len(reviews) > 0 {
		done := reviews[len(reviews)-1]
		lines = append(lines, "Review: "+plain(done.Describe()))
		if done.PullRequest != "" {
			lines = append(lines, "Pull request: "+done.PullRequest) // an address that the supervisor has checked
		}
	}
	lines = append(lines, fmt.Sprintf("Cost so far: $%.2f", chain.CostUSD), lookAt(chain.ID))
	if gate := chain.OpenGate(); gate != nil {
		for _, line := range gate.History {
			lines = append(lines, "Earlier: "+plain(line))
		}
		until := gate.ExpiresAt.UTC().Format(time.RFC3339)
		lines = append(lines, fmt.Sprintf("Until %s, answer with: starter gate %s", until, Operand(chain.ID)))
	}
	return strings.Join(lines, "\n")
}

// maxToldIncidents limits the incidents in a notification.
const maxToldIncidents = 5

// describeTry describes a session in one line. It quotes what the agent says that it has tried; if it says nothing, what it has found.
func describeTry(session escalation.Session) string {
	who := session.Tier.String()
	if session.Purpose.HasRole() {
		who = string(session.Purpose)
	}
	if session.Phase != "" && session.Phase != escalation.PlanItself {
		who += ", phase " + session.Phase
	}
	line := fmt.Sprintf("%s (%s): %s, $%.2f", who, session.Model, session.Status, session.CostUSD)
	if session.Verdict != nil {
		did := ""
		if session.Verdict.Remediation != "" {
			did = "tried "
		}
		line += fmt.Sprintf(", verdict %s: %s“%s”", session.Verdict.Status, did, plain(session.Verdict.Attempt()))
	}
	// The commits of a plan's author are on the branch that the plan names.
	if left := session.Worktree.Describe(session.Host); left != "" && session.Purpose != escalation.PurposeAuthor {
		line += "; " + plain(left)
	}
	return line
}

// ordinaryID matches IDs that need no quotes in a shell.
var ordinaryID = regexp.MustCompile(`^[A-Za-z0-9._:-]+$`)

func lookAt(chainID string) string { return "Look at it with: starter chain " + Operand(chainID) }

// listForPeople lists at most the given number of services, and says how many services are left out.
func listForPeople(services []string, most int) string {
	if len(services) > most {
		return fmt.Sprintf("%s and %d more", plain(strings.Join(services[:most], ", ")), len(services)-most)
	}
	return plain(strings.Join(services, ", "))
}

// plain returns text by an agent as one line of printable text without markup.
func plain(text string) string { return clip(plaintext.ForChat(text)) }
