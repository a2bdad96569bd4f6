package activities

import "go.temporal.io/sdk/temporal"

// The types of the application errors that activities return.
const (
	// ErrorTypeRecords is a record that the store refuses for good.
	ErrorTypeRecords = "RecordRefused"
	// ErrorTypeAgent is an agent that could not be judged; its details hold an
	// escalation.Report with what was spent so far.
	ErrorTypeAgent = "AgentUnavailable"
	// ErrorTypePrompt is a prompt that cannot be rendered; its details are the same.
	ErrorTypePrompt = "PromptInvalid"
)

// permanent makes an error that Temporal does not retry.
func permanent(errorType string, err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), errorType, err)
}
