// Package parts holds what workflows are composed of. A part keeps its own small state, and does not know the steps of
// its caller:
//
//	EventLog            events, the calls that record them, and the state that people see
//	Sessions            admission, record, agent and end of each session
//	Gates               gates: open, remind, answer, expire
//	Reviews             checks and review of what a session has committed, its push and its pull request
//	Notifier            sends notifications, and waits for them
//	Incidents           compares faults with the incidents in the records, and informs other chains
//	EscalationRequests  the signals by which people request a tier
//	ParentLink          the signal to the workflow that waits for this one
//
// A Set holds the parts of one workflow.
package parts
