package escalation

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
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

// nameProblem says what kind of name a service must not have; "" if it may.
func nameProblem(service string) string {
	switch {
	case blank(service):
		return "a blank name"
	case utf8.RuneCountInString(service) > MaxServiceName:
		return fmt.Sprintf("a name of more than %d characters", MaxServiceName)
	case strings.ContainsFunc(service, unprintable):
		return "a name with characters that cannot be printed"
	default:
		return ""
	}
}

// unprintable reports whether r is a control, a mark of direction or another character that shows
// nothing, or a space other than the ordinary one.
func unprintable(r rune) bool { return !unicode.IsPrint(r) }
