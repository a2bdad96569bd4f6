package guard

import "fmt"

// DeniedError says that the policy does not grant what a call would do.
type DeniedError struct {
	// Rule is the part of the policy that decided, such as "docker restart" or "secrets".
	Rule string
	// Reason is why, for the agent and for people.
	Reason string
}

// Error implements error.
func (e *DeniedError) Error() string { return e.Reason }

func denied(format string, args ...any) error {
	return &DeniedError{Reason: fmt.Sprintf(format, args...)}
}
