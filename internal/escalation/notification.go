package escalation

// NotificationKind names the reason for a notification.
type NotificationKind string

// The kinds.
const (
	NotifyNeedsHuman  NotificationKind = "needs_human"  // a chain waits at a gate or has ended, and needs an operator
	NotifyFailed      NotificationKind = "failed"       // a chain ended because a tier could not do its work
	NotifyResolved    NotificationKind = "resolved"     // a repair tier resolved the problem
	NotifyApproved    NotificationKind = "approved"     // a plan, or all that was done for it, was approved
	NotifyBlocked     NotificationKind = "blocked"      // the policy blocked an escalation
	NotifyBudgetSpent NotificationKind = "budget_spent" // the budget does not suffice for the next session
	NotifyLimited     NotificationKind = "limited"      // the limit of the account at the model's provider is used up
	NotifyWorse       NotificationKind = "worse"        // an incident of a waiting chain has become worse
	NotifyCycleMissed NotificationKind = "cycle_missed" // cycles of a schedule were skipped
	NotifySnoozeEnded NotificationKind = "snooze_ended" // the snooze of an open incident has ended
)

// Severity returns the severity of notifications of the kind k.
func (k NotificationKind) Severity() Severity {
	switch k {
	case NotifyFailed:
		return SeverityCritical
	case NotifyNeedsHuman, NotifyBlocked, NotifyBudgetSpent, NotifyLimited, NotifyWorse, NotifyCycleMissed,
		NotifySnoozeEnded:
		return SeverityWarning
	case NotifyResolved, NotifyApproved:
		return SeverityInfo
	}
	return SeverityWarning
}

// Headline returns the kind in words.
func (k NotificationKind) Headline() string {
	switch k {
	case NotifyNeedsHuman:
		return "a person is needed"
	case NotifyFailed:
		return "a chain failed"
	case NotifyResolved:
		return "a problem was resolved"
	case NotifyApproved:
		return "a plan was approved"
	case NotifyBlocked:
		return "an escalation was blocked"
	case NotifyBudgetSpent:
		return "a budget is spent"
	case NotifyLimited:
		return "the account's limit is used up"
	case NotifyWorse:
		return "an incident became worse"
	case NotifyCycleMissed:
		return "scheduled cycles did not take place"
	case NotifySnoozeEnded:
		return "a snooze has ended"
	}
	return string(k)
}

// Notification is a message to people in plain text.
type Notification struct {
	// Key identifies the notification. Of the notifications with one key, each target receives only the first.
	Key      string           `json:"key"`
	Kind     NotificationKind `json:"kind"`
	Severity Severity         `json:"severity"`
	// ChainID is the workflow ID of the chain or cycle that the notification concerns.
	ChainID string `json:"chain_id"`
	// IncidentID is the incident that the notification concerns; empty if it concerns the chain.
	IncidentID string `json:"incident_id,omitempty"`
	// Reminder reports that people have been told before. Nobody gets it while all incidents of the chain are
	// acknowledged.
	Reminder bool   `json:"reminder,omitempty"`
	Title    string `json:"title"`
	// Text begins with what has happened. A service that takes only short messages gets a part of the other lines.
	Text string `json:"text"`
	// Then says what people can do, and where they read more, a line for each. No service gets less of it than has
	// room.
	Then string `json:"then,omitempty"`
}
