// Package guard decides what an agent may do. It compares acts with a policy: a call of a tool, the start of a program
// with its words, the opening of a file.
//
// The shell of the agents is an interpreter of ours (package shell). It asks before each act, so the guard sees the
// words after all expansions. Before a script runs, the guard reads it once and denies it if one of its commands is
// certain to be denied.
//
// The policy lists the permitted uses for Tiers 1 and 2. An act is denied if its use is not listed. A tier with
// anything: true in the policy may do everything that the policy does not forbid explicitly.
//
// The package starts nothing and changes nothing. It reads the file system to resolve paths.
package guard

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Call is a tool call that an agent wants to make.
type Call struct {
	Tier  int
	Tool  string
	Input json.RawMessage
	Place Place
}

// Decision is the guard's decision on a call or on an act.
type Decision struct {
	Allowed bool `json:"allowed"`
	// Rule names the part of the policy by which the guard decided. Several parts are joined by "; ".
	Rule string `json:"rule"`
	// Reason explains a denial to the agent in a sentence. It is empty if the call is allowed.
	Reason string `json:"reason,omitempty"`
	// AtRun says what decides on the rest of an allowed script while it runs. If it is empty, the guard knows every act
	// of the script.
	AtRun string `json:"at_run,omitempty"`
	// Actions lists the actions on services.
	Actions []Action `json:"actions,omitempty"`
}

// Verdict is a decision in one word.
type Verdict string

// The verdicts.
const (
	Allowed Verdict = "allowed"
	Denied  Verdict = "denied"
	// AtRun means that nothing known of the call is denied, and the rest is decided while it runs.
	AtRun Verdict = "at run"
)

// Verdict returns the decision in one word.
func (d Decision) Verdict() Verdict {
	switch {
	case !d.Allowed:
		return Denied
	case d.AtRun != "":
		return AtRun
	}
	return Allowed
}

// Guard decides on calls and acts by a policy.
type Guard struct {
	policy *Policy
	files  Files
}

// New returns a Guard.
func New(policy *Policy, files Files) *Guard { return &Guard{policy, files} }

// Decide decides whether a call may be made. It decides on a script as far as its text shows what it will do; Start and
// Open decide on the rest.
func (g *Guard) Decide(call Call) Decision {
	j := judge{policy: g.policy, files: g.files, tier: call.Tier, place: call.Place}
	found, err := j.tool(call)
	if err != nil {
		return refusal(err)
	}
	return found.decision()
}

func refusal(err error) Decision {
	if reason, is := errors.AsType[*DeniedError](err); is && reason.Rule != "" {
		return Decision{Rule: reason.Rule, Reason: reason.Reason}
	}
	return Decision{Rule: "default", Reason: err.Error()}
}

// found is what a judgement found in an allowed act.
type found struct {
	// rules names the parts of the policy that allow it.
	rules   []string
	actions []Action
	// atRun says what can only be decided while a script runs; empty if there is nothing.
	atRun string
	// edits change the words of a program before it is started.
	edits []edit
	// words replaces the words of a program; nil if they stay.
	words []string
	// emptyInput reports that the program must get an empty standard input.
	emptyInput bool
	// offline reports that the program must not open sockets.
	offline bool
	// script is the script that the program would run.
	script *Script
}

func allowedBy(rule string) found { return found{rules: []string{rule}} }

// and returns the findings of both, with the edits, the words, the input, the sockets and the script of f.
func (f found) and(other found) found {
	f.rules = append(slices.Clip(f.rules), other.rules...)
	f.actions = append(slices.Clip(f.actions), other.actions...)
	if f.atRun == "" {
		f.atRun = other.atRun
	}
	return f
}

func (f found) decision() Decision {
	return Decision{Allowed: true, Rule: strings.Join(unique(f.rules), "; "), AtRun: f.atRun, Actions: f.actions}
}

// tool judges a call of one of the CLI's tools.
func (j judge) tool(call Call) (found, error) {
	if _, there := j.policy.Tiers[call.Tier]; !there {
		return found{}, denied("the policy has no Tier %d", call.Tier)
	}
	if err := exactKeys(call.Input); err != nil {
		return found{}, err
	}
	var input struct {
		Command  string `json:"command"`
		Notebook string `json:"notebook_path"`
		FilePath string `json:"file_path"`
		Path     string `json:"path"`
		Pattern  string `json:"pattern"`
	}
	if err := json.Unmarshal(call.Input, &input); err != nil {
		return found{}, denied("the input of %s cannot be read: %v", call.Tool, err)
	}
	if input.Path == "" {
		input.Path = j.place.dir()
	}
	switch call.Tool {
	case "Bash":
		return j.script(input.Command)
	case "Read":
		return j.file(input.FilePath, j.read)
	case "Edit", "Write", "MultiEdit":
		return j.file(input.FilePath, j.write)
	case "NotebookEdit":
		return j.file(input.Notebook, j.write)
	case "Grep":
		return j.file(input.Path, j.read)
	case "Glob":
		if strings.HasPrefix(input.Pattern, "/") || strings.Contains(input.Pattern, "..") ||
			strings.HasPrefix(input.Pattern, "~") {
			return found{}, denied("Glob: give the directory as path, and a pattern within it")
		}
		return j.file(input.Path, j.read)
	case "StructuredOutput", "TodoWrite":
		return allowedBy(call.Tool), nil
	}
	return j.mcp(call.Tool)
}

// mcp judges a call of a tool of an MCP server.
func (j judge) mcp(tool string) (found, error) {
	lowest, there := j.policy.MCP[tool]
	if !there {
		return found{}, &DeniedError{Rule: tool, Reason: "the tool " + tool + " is not in the policy"}
	}
	if lowest > j.tier {
		return found{}, &DeniedError{Rule: tool, Reason: "the tool " + tool + " is granted to Tier " +
			strconv.Itoa(lowest) + " only"}
	}
	return allowedBy(tool), nil
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

// file judges a file that a tool opens.
func (j judge) file(path string, check func(string) error) (found, error) {
	switch {
	case path == "":
		return found{}, denied("the name of a file is missing")
	case strings.HasPrefix(path, "~"):
		return found{}, denied("write the path without ~")
	case !strings.HasPrefix(path, "/"):
		path = j.place.dir() + "/" + path
	}
	return allowedBy("paths"), withRule(check(path), "paths")
}
