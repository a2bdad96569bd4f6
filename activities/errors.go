package activities

import "go.temporal.io/sdk/temporal"

// The types of the application errors that activities return.
const (
	// ErrorTypeRecords means that the store refuses a record permanently.
	ErrorTypeRecords = "RecordRefused"
	// ErrorTypeAgent means that the agent gave no usable result. The error's details are an escalation.Report with the
	// spending of all attempts so far.
	ErrorTypeAgent = "AgentUnavailable"
	// ErrorTypeNoConversation means that there is no conversation to continue.
	ErrorTypeNoConversation = "NoConversation"
	// ErrorTypePrompt means that a prompt cannot be rendered. The error's details are an escalation.Report, as for
	// ErrorTypeAgent.
	ErrorTypePrompt = "PromptInvalid"
)

// permanent returns an error that Temporal does not retry.
func permanent(errorType string, err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), errorType, err)
}
