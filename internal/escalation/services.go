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
		switch {
		case blank(service):
			return fmt.Errorf("service %d has a blank name", i+1)
		case utf8.RuneCountInString(service) > MaxServiceName:
			return fmt.Errorf("service %d has a name of more than %d characters", i+1, MaxServiceName)
		case strings.ContainsFunc(service, func(r rune) bool { return !unicode.IsPrint(r) }):
			return fmt.Errorf("service %d has a name with characters that cannot be printed", i+1)
		}
	}
	return nil
}
