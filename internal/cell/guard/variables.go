package guard

import (
	"maps"
	"path/filepath"
	"slices"
)

// Passed is an entry of CLAUDEOPS_PASS_ENV: a variable, and a program that gets it in addition to those that the policy
// names.
type Passed struct {
	// Variable is a name, or a prefix and "*".
	Variable string
	// Program is empty if only the policy's programs get the variable.
	Program string
}

// VariablesOf returns the variables that a program gets: its own, and those of the programs that it starts itself,
// because these have no other way to get them.
func (p *Policy) VariablesOf(program string) []string {
	var all []string
	seen := map[string]bool{}
	var collect func(name string)
	collect = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		all = append(all, p.Variables[name]...)
		for _, started := range p.Programs[name].starts(len(p.Tiers)) {
			if !filepath.IsAbs(started) {
				collect(started)
			}
		}
	}
	collect(program)
	return unique(all)
}

// WithPassed returns a policy in which the programs of the entries get the entries' variables.
func (p *Policy) WithPassed(passed []Passed) *Policy {
	more := *p
	more.Variables = maps.Clone(p.Variables)
	for _, entry := range passed {
		if entry.Program == "" {
			continue
		}
		if more.Variables == nil {
			more.Variables = map[string][]string{}
		}
		more.Variables[entry.Program] = append(slices.Clip(more.Variables[entry.Program]), entry.Variable)
	}
	return &more
}

// Reaches reports whether any program gets a variable.
func (p *Policy) Reaches(variable string) bool {
	for _, patterns := range p.Variables {
		if MatchesAny(patterns, variable) {
			return true
		}
	}
	return false
}

// MatchesAny reports whether a variable has one of the names. A name that ends in "*" is a prefix.
func MatchesAny(names []string, variable string) bool {
	return slices.ContainsFunc(names, func(pattern string) bool { return matchesName(pattern, variable) })
}
