package escalation

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// Limits on the names of services. People and agents supply the names, and they are written to search attributes and
// terminals.
const (
	MaxServices    = 100 // in one list
	MaxServiceName = 100 // characters of one name
)

// ServiceKey converts a service's name to a form for comparisons. Names that differ only in case, or in the blanks
// around and between words, have the same key. Unlike Catalog.Canonical, ServiceKey does not resolve aliases.
func ServiceKey(name string) string {
	return strings.ToLower(strings.ToUpper(plaintext.Compact(name))) // some letters have two lower-case forms
}

// SameService reports whether two names have the same ServiceKey.
func SameService(a, b string) bool { return ServiceKey(a) == ServiceKey(b) }

// HasService reports whether services contains name, compared by ServiceKey.
func HasService(services []string, name string) bool {
	return slices.ContainsFunc(services, func(other string) bool { return SameService(other, name) })
}

// UniqueServices returns services without repetitions, in the same order. Names are compared by ServiceKey, and the
// first spelling of a name is kept.
func UniqueServices(services []string) []string {
	var unique []string
	seen := map[string]bool{}
	for _, service := range services {
		if key := ServiceKey(service); !seen[key] {
			seen[key] = true
			unique = append(unique, service)
		}
	}
	return unique
}

// CheckServices checks the names in a list of services. The error describes the first problem.
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

// nameProblem describes the problem with the name of a service; "" if the name is valid.
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

// containsServices reports whether services contains all of wanted. If wanted is empty, it returns false.
func containsServices(services, wanted []string) bool {
	return len(wanted) > 0 && !slices.ContainsFunc(wanted,
		func(service string) bool { return !HasService(services, service) })
}

// SharesService reports whether two lists have a service in common.
func SharesService(a, b []string) bool {
	return slices.ContainsFunc(a, func(service string) bool { return HasService(b, service) })
}

// MergeServices appends to services the services in more that are not in services, up to MaxServices.
func MergeServices(services, more []string) []string {
	merged := slices.Clone(services)
	for _, service := range more {
		if !HasService(merged, service) && len(merged) < MaxServices {
			merged = append(merged, service)
		}
	}
	return merged
}
