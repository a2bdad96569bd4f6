package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// These patterns recognise variables that Kubernetes sets in every pod. Such variables hold the addresses of all
// Services in the pod's namespace. For a Service called claudeops or claudeops-something, the names of these variables
// begin with CLAUDEOPS_, like the names of settings. serviceLink matches the ends of these names. For each Service, one
// name ends with only PORT, which does not show that Kubernetes has set the variable. So serviceValue matches the value
// of this variable, such as tcp://10.0.0.1:80.
var (
	serviceLink  = regexp.MustCompile(`(^|_)(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)
	serviceValue = regexp.MustCompile(`^(tcp|udp|sctp)://`)
)

// reportUnknown records every variable in vars that looks like a setting of Claude Ops but is unknown. It never shows
// the value of such a variable. Its name can be the misspelled name of a variable with a secret.
func reportUnknown(vars map[string]string, known []string, p *problems) {
	for _, variable := range slices.Sorted(maps.Keys(vars)) {
		name, ours := ourName(variable)
		if !ours || slices.Contains(known, variable) || isServiceLink(name, vars[variable]) {
			continue
		}
		sentence := variable + " is not a setting of Claude Ops"
		if successor, was := removed[strings.TrimPrefix(variable, Prefix)]; was {
			sentence = variable + " is gone: " + successor
		} else if near := nearest(Prefix+name, known); near != "" {
			sentence += fmt.Sprintf("; did you mean %s?", near)
		} else {
			sentence += "; `claudeops config` lists those that are."
		}
		p.list = append(p.list, Problem{Variable: variable, Sentence: sentence})
	}
}

// ourName returns the part of a variable's name after the prefix CLAUDEOPS_; false if the name lacks the prefix. It
// also accepts two common misspellings of the prefix: lower case, and CLAUDE_OPS_.
func ourName(variable string) (name string, ours bool) {
	upper := strings.ToUpper(variable)
	for _, prefix := range []string{Prefix, "CLAUDE_OPS_"} {
		if rest, found := strings.CutPrefix(upper, prefix); found {
			return rest, true
		}
	}
	return "", false
}

func isServiceLink(name, value string) bool {
	if serviceLink.MatchString(name) {
		return true
	}
	return (name == "PORT" || strings.HasSuffix(name, "_PORT")) && serviceValue.MatchString(value)
}

// misnomers maps the wrong names that people are likely to use for a setting to the right names. It contains only those
// wrong names for which nearest would find a different setting.
var misnomers = map[string]string{
	Prefix + "TIER1_PROMPT": Prefix + "PROMPT",
}

// nearest returns the name in known that is most similar to variable; "" if no name is similar. The caller passes an
// unknown name, which is probably a misspelling.
func nearest(variable string, known []string) string {
	if meant, found := misnomers[variable]; found {
		return meant
	}
	best, bestDistance := "", 1+max(2, len(strings.TrimPrefix(variable, Prefix))/4)
	for _, name := range known {
		if d := distance(variable, name); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best
}

// distance returns the Levenshtein distance of a and b in bytes: the number of insertions, deletions and replacements
// that turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
