package guard

import (
	"errors"
	"fmt"
)

// DeniedError reports that the policy does not grant a call.
type DeniedError struct {
	// Rule is the part of the policy that denied the call, such as "docker restart" or "secrets".
	Rule string
	// Reason explains the denial to the agent and to people.
	Reason string
}

// Error implements error.
func (e *DeniedError) Error() string { return e.Reason }

func denied(format string, args ...any) error {
	return &DeniedError{Reason: fmt.Sprintf(format, args...)}
}

// errAtRun reports that a command of a script that has not run depends on something that is known only when it runs.
var errAtRun = errors.New("decided when it runs")
