package memory

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// ErrRefused is wrapped by all errors of Check.
var ErrRefused = errors.New("this cannot be remembered")

// Check returns a proposal in the form in which it is stored: each text on one line. It refuses texts that are empty or
// too long, and transient state (see IsTransient). Secrets must have been masked before.
func Check(proposal escalation.MemoryProposal) (escalation.MemoryProposal, error) {
	clean := proposal
	clean.Service, clean.Subject, clean.Text = plaintext.Compact(proposal.Service), plaintext.Compact(proposal.Subject),
		plaintext.Compact(proposal.Text)
	return clean, check(clean)
}

func check(p escalation.MemoryProposal) error {
	switch {
	case !slices.Contains(Kinds(), p.Kind):
		kind := plaintext.Cut(string(p.Kind), 40)
		return fmt.Errorf("%w: its kind is %q, and must be correction, discovery or remediation", ErrRefused, kind)
	case p.Service != "" && escalation.CheckServices([]string{p.Service}) != nil:
		return fmt.Errorf("%w: its service has more than %d characters", ErrRefused, escalation.MaxServiceName)
	case len(Words(p.Subject)) == 0 || utf8.RuneCountInString(p.Subject) > escalation.MaxMemorySubject:
		return fmt.Errorf("%w: its subject must have a word, and at most %d characters", ErrRefused,
			escalation.MaxMemorySubject)
	case len(Words(p.Text)) == 0 || utf8.RuneCountInString(p.Text) > escalation.MaxMemoryText:
		return fmt.Errorf("%w: its text must have a word, and at most %d characters", ErrRefused,
			escalation.MaxMemoryText)
	case IsTransient(p.Text):
		return fmt.Errorf("%w: its text describes a state that passes; write what still holds in a month", ErrRefused)
	default:
		return nil
	}
}

// transients match texts about a state that passes.
var transients = []*regexp.Regexp{
	// The whole text says how something is: "all is well", "the web service is up again".
	regexp.MustCompile(`^(\S+ ){0,6}(is|are|was|were|seems?|looks?|remains?|stays?) (\S+ )?` +
		`(up|down|well|fine|ok|okay|good|healthy|unhealthy|running|stopped|reachable|unreachable|available|unavailable|` +
		`back|working|broken|degraded|online|offline|green|red|normal|stable|slow)` +
		`( (again|now|currently|still|today))*[.!]?$`),
	regexp.MustCompile(`^(no|without) (problems?|issues?|errors?|incidents?|faults?)( \S+){0,3}[.!]?$`),
	regexp.MustCompile(`\b(currently|right now|at the moment|at present|as of now|just now|for now)\b`),
	regexp.MustCompile(`\b(today|tonight|yesterday|tomorrow|this (morning|evening|week))\b`),
	regexp.MustCompile(`\b\d+ ?(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?|weeks?) ago\b`),
	regexp.MustCompile(`\b(uptime|up (for|since)|down (for|since)|has been (up|down|running))\b`),
	regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}\b`),
	regexp.MustCompile(`\bpid \d+\b`),
}

// IsTransient reports whether text describes a state that passes, such as "all is well" or "up for 3 days". It knows
// the usual English words and dates. It misses states in other words and languages; the person who confirms a candidate
// sees those. A time of day alone is no state, because "the backup runs at 03:00" stays true.
func IsTransient(text string) bool {
	text = strings.ToLower(plaintext.Compact(text))
	return slices.ContainsFunc(transients, func(pattern *regexp.Regexp) bool { return pattern.MatchString(text) })
}
