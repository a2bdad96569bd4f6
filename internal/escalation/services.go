package escalation

import (
	"fmt"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// Limits on the names of services. People and agents supply these names. They are written to search attributes and
// terminals.
const (
	MaxServices    = 100 // in one list
	MaxServiceName = 100 // characters of one name
)

// CheckServices checks a list of services. The error describes the first problem.
func CheckServices(services []string) error {
	if len(services) > MaxServices {
		return fmt.Errorf("%d services, and at most %d are allowed", len(services), MaxServices)
	}
	for i, service := range services {
		if problem := nameProblem(service); problem != "" {
			return fmt.Errorf("service %d has %s", i+1, problem)
		}
	}
	return nil
}

// nameProblem describes the problem with the name of a service; "" if there is none.
func nameProblem(service string) string {
	switch {
	case blank(service):
		return "a blank name"
	case utf8.RuneCountInString(service) > MaxServiceName:
		return fmt.Sprintf("a name of more than %d characters", MaxServiceName)
	case !plaintext.IsLine(service):
		return "a name with characters that cannot be printed"
	default:
		return ""
	}
}
