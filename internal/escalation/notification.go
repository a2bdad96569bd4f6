package escalation

// NotificationKind says why people are told something.
type NotificationKind string

// The kinds.
const (
	NotifyNeedsHuman  NotificationKind = "needs_human"  // a chain waits at a gate, or ended, and a person has to look
	NotifyFailed      NotificationKind = "failed"       // a chain ended because it could not do its work
	NotifyResolved    NotificationKind = "resolved"     // a repair tier resolved the problem
	NotifyBlocked     NotificationKind = "blocked"      // the policy blocked an escalation
	NotifyBudgetSpent NotificationKind = "budget_spent" // there is no money left for what should follow
	NotifyCycleMissed NotificationKind = "cycle_missed" // cycles of a schedule did not take place
)

// Severity ranks a notification of this kind.
func (k NotificationKind) Severity() Severity {
	switch k {
	case NotifyFailed:
		return SeverityCritical
	case NotifyNeedsHuman, NotifyBlocked, NotifyBudgetSpent, NotifyCycleMissed:
		return SeverityWarning
	case NotifyResolved:
		return SeverityInfo
	}
	return SeverityWarning
}

// Headline is the kind in words.
func (k NotificationKind) Headline() string {
	switch k {
	case NotifyNeedsHuman:
		return "a person is needed"
	case NotifyFailed:
		return "a chain failed"
	case NotifyResolved:
		return "a problem was resolved"
	case NotifyBlocked:
		return "an escalation was blocked"
	case NotifyBudgetSpent:
		return "a budget is spent"
	case NotifyCycleMissed:
		return "scheduled cycles did not take place"
	}
	return string(k)
}

// Notification is plain text for people, and what it is about.
type Notification struct {
	// Key identifies the notification: nobody gets one key twice.
	Key      string           `json:"key"`
	Kind     NotificationKind `json:"kind"`
	Severity Severity         `json:"severity"`
	// ChainID is the chain, or the cycle, that it is about.
	ChainID string `json:"chain_id"`
	Title   string `json:"title"`
	Text    string `json:"text"`
}
