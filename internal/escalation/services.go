package escalation

import (
	"fmt"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// Limits on the names of services. They come from people and from agents, and end up in
// search attributes and on terminals.
const (
	MaxServices    = 100 // in one list
	MaxServiceName = 100 // characters of one name
)

// CheckServices reports the first thing that is wrong with a list of services.
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

// nameProblem returns what is wrong with the name of a service, or "".
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
