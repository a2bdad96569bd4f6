package escalation

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// AlertMatcher selects alerts by their labels: every label of the matcher must have its value. A value that begins with
// ~ is a regular expression for the whole value.
type AlertMatcher map[string]string

// maxAlertMatchers limits the matchers of a list.
const maxAlertMatchers = 100

// Matches reports whether m selects an alert with the given labels. The empty matcher selects none.
func (m AlertMatcher) Matches(labels map[string]string) bool {
	for label, want := range m {
		value, found := labels[label]
		if !found {
			return false
		}
		pattern, regular := strings.CutPrefix(want, "~")
		if regular {
			compiled, err := compileAlertPattern(pattern)
			if err != nil || !compiled.MatchString(value) {
				return false
			}
		} else if value != want {
			return false
		}
	}
	return len(m) > 0
}

func compileAlertPattern(pattern string) (*regexp.Regexp, error) {
	return regexp.Compile(`^(?:` + pattern + `)$`)
}

// CheckAlertMatchers returns the first mistake in a list of matchers.
func CheckAlertMatchers(matchers []AlertMatcher) error {
	if len(matchers) > maxAlertMatchers {
		return fmt.Errorf("%d matchers, and at most %d are allowed", len(matchers), maxAlertMatchers)
	}
	for _, matcher := range matchers {
		if len(matcher) == 0 {
			return errors.New("a matcher is empty: name at least one label")
		}
		for label, want := range matcher {
			if pattern, regular := strings.CutPrefix(want, "~"); regular {
				if _, err := compileAlertPattern(pattern); err != nil {
					return fmt.Errorf("%s: %w", label, err)
				}
			}
		}
	}
	return nil
}
