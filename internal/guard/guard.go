// Package guard decides whether an agent may make a call. It determines the effects of the call: the programs that a
// shell script runs, the files that it opens and the addresses that it contacts. It compares these effects with a
// policy.
//
// The policy lists the permitted uses for Tiers 1 and 2. A call is denied if its use is not listed, or if the call's
// effect cannot be determined before the call runs. A tier with anything: true in the policy may do everything that the
// policy does not forbid explicitly. For such a tier the guard denies a call only if the text of the call shows a
// forbidden effect.
//
// The package starts nothing and changes nothing. It reads the file system to resolve paths.
package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Call is a tool call that an agent wants to make.
type Call struct {
	Tier  int
	Tool  string
	Input json.RawMessage
	Place Place
}

// Decision is the guard's decision on a call.
type Decision struct {
	Allowed bool `json:"allowed"`
	// Rule names the part of the policy by which the guard decided. Several parts are joined by "; ".
	Rule string `json:"rule"`
	// Reason explains a denial to the agent in a sentence. It is empty if the call is allowed.
	Reason string `json:"reason,omitempty"`
	// Actions lists the call's actions on services.
	Actions []Action `json:"actions,omitempty"`
}

// Guard decides on calls by a policy.
type Guard struct {
	policy *Policy
	files  Files
}

// New returns a Guard.
func New(policy *Policy, files Files) *Guard { return &Guard{policy, files} }

// Decide decides whether a call may be made.
func (g *Guard) Decide(call Call) Decision {
	var rules []string
	var actions []Action
	j := &judge{
		policy: g.policy, tier: call.Tier, place: call.Place, files: g.files,
		rules: &rules, actions: &actions, printed: new(Output), stale: new(bool), wrote: new(bool),
	}
	if err := j.tool(call); err != nil {
		return refusal(err)
	}
	return Decision{Allowed: true, Rule: strings.Join(rules, "; "), Actions: actions}
}

func refusal(err error) Decision {
	if reason, is := errors.AsType[*DeniedError](err); is && reason.Rule != "" {
		return Decision{Rule: reason.Rule, Reason: reason.Reason}
	}
	if unclear, is := errors.AsType[*UnclearError](err); is {
		return Decision{Rule: "unclear", Reason: unclear.Error()}
	}
	return Decision{Rule: "default", Reason: err.Error()}
}

// tool judges a call of one of the CLI's tools.
func (j *judge) tool(call Call) error {
	if _, there := j.policy.Tiers[call.Tier]; !there {
		return denied("the policy has no Tier %d", call.Tier)
	}
	if err := exactKeys(call.Input); err != nil {
		return err
	}
	var input struct {
		Command  string  `json:"command"`
		Notebook string  `json:"notebook_path"`
		FilePath string  `json:"file_path"`
		Path     *string `json:"path"`
		Pattern  string  `json:"pattern"`
		Glob     string  `json:"glob"`
	}
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return denied("the input of %s cannot be read: %v", call.Tool, err)
	}
	switch call.Tool {
	case "Bash":
		return j.bash(input.Command)
	case "Read":
		return j.file(input.FilePath, j.read)
	case "Edit", "Write", "MultiEdit":
		return j.file(input.FilePath, j.write)
	case "NotebookEdit":
		return j.file(input.Notebook, j.write)
	case "Grep":
		return j.file(j.pathOr(input.Path), func(path string) error { return j.readTree(path, nil) })
	case "Glob":
		if strings.HasPrefix(input.Pattern, "/") || strings.Contains(input.Pattern, "..") || strings.HasPrefix(input.Pattern, "~") {
			return denied("Glob: give the directory as path, and a pattern within it")
		}
		return j.file(j.pathOr(input.Path), j.read)
	case "StructuredOutput", "TodoWrite":
		*j.rules = append(*j.rules, call.Tool)
		return nil
	}
	lowest, there := j.policy.MCP[call.Tool]
	if !there {
		return &DeniedError{Rule: call.Tool, Reason: "the tool " + call.Tool + " is not in the policy"}
	}
	if lowest > j.tier {
		return &DeniedError{Rule: call.Tool, Reason: "the tool " + call.Tool + " is granted to Tier " + strconv.Itoa(lowest) + " only"}
	}
	*j.rules = append(*j.rules, call.Tool)
	return nil
}

// exactKeys denies an input that has a known key in the wrong case. Go's JSON decoder would accept such a key, but the
// CLI would not.
func exactKeys(input json.RawMessage) error {
	var named map[string]json.RawMessage
	if err := json.Unmarshal(input, &named); err != nil {
		return denied("the input cannot be read: %v", err)
	}
	for name := range named {
		for _, known := range []string{"command", "notebook_path", "file_path", "path", "pattern", "glob"} {
			if name != known && strings.EqualFold(name, known) {
				return denied("the input has the name %q: write %q", name, known)
			}
		}
	}
	return nil
}

func (j *judge) pathOr(path *string) string {
	if path == nil || *path == "" {
		return j.dir()
	}
	return *path
}

func (j *judge) dir() string {
	if j.place.Dir != "" {
		return j.place.Dir
	}
	if len(j.place.Work) == 0 {
		return "/"
	}
	return j.place.Work[0]
}

// file judges a file that a tool opens.
func (j *judge) file(path string, check func(string) error) error {
	if path == "" || strings.ContainsAny(path, holes) {
		return denied("the name of a file is missing")
	}
	if !strings.HasPrefix(path, "/") {
		if strings.HasPrefix(path, "~") {
			return denied("write the path without ~")
		}
		path = j.dir() + "/" + path
	}
	if err := check(path); err != nil {
		return withRule(err, "paths")
	}
	*j.rules = append(*j.rules, "paths")
	return nil
}

// bash judges a script.
func (j *judge) bash(script string) error {
	err := Walk(script, j.environmentIn(j.dir()), j)
	if _, unclear := errors.AsType[*UnclearError](err); unclear && j.limits().Anything {
		return j.checkRoughly(script)
	}
	return err
}

// checkRoughly checks the commands of a script whose effects cannot be fully determined. It is for tiers with anything:
// true. It denies a command only if such a tier may not run the command, and ignores all unclear parts.
func (j *judge) checkRoughly(script string) error {
	if strings.ContainsAny(script, holes) {
		return denied("the script has control characters in it")
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return denied("the script does not parse: %v", err)
	}
	var found error
	syntax.Walk(file, func(node syntax.Node) bool {
		call, is := node.(*syntax.CallExpr)
		if !is || len(call.Args) == 0 || found != nil {
			return found == nil
		}
		command := Command{Dir: Word(j.dir())}
		for _, arg := range call.Args {
			command.Words = append(command.Words, roughly(arg))
		}
		if err := j.run(command); err != nil {
			found = lenient(err)
		}
		return found == nil
	})
	*j.rules = append(*j.rules, fmt.Sprintf("tier %d: anything", j.tier))
	return found
}

// roughly returns the text of a word, with the hole anyText for each part that is not literal.
func roughly(word *syntax.Word) Word {
	var text strings.Builder
	for _, part := range word.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			text.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
		case *syntax.SglQuoted:
			text.WriteString(p.Value)
		case *syntax.DblQuoted:
			text.WriteString(string(roughly(&syntax.Word{Parts: p.Parts})))
		default:
			text.WriteRune(anyText)
		}
	}
	return Word(text.String())
}

// containsNumber reports whether text contains number as a whole number. It ignores parts of longer numbers, and
// fractions of decimal numbers.
func containsNumber(text string, number int) bool {
	digits := strconv.Itoa(number)
	for at := 0; ; {
		i := strings.Index(text[at:], digits)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(digits)
		whole := (start == 0 || !isDigit(text[start-1])) && (end == len(text) || !isDigit(text[end]))
		if whole && !isFraction(text[:start]) {
			return true
		}
		at = end
	}
}

// isFraction reports whether text ends with a digit and a decimal point. Digits that follow text are then a fraction.
func isFraction(text string) bool {
	before, point := strings.CutSuffix(text, ".")
	return point && before != "" && isDigit(before[len(before)-1])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
