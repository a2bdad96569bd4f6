package operations

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
)

// Policy says what agents may do, by the policy of this program's settings. Nothing is run.
type Policy struct{ *backend }

// Explanation lists what a tier may do.
type Explanation = guard.Explanation

// Explain returns what a tier may do. The error is KindInvalid if there is no such tier.
func (p Policy) Explain(tier escalation.Tier) (guard.Explanation, error) {
	if !tier.Valid() {
		return guard.Explanation{}, errNoTier
	}
	cfg, err := p.config()
	if err != nil {
		return guard.Explanation{}, err
	}
	policy, err := cfg.Guard.LoadPolicy()
	if err != nil {
		return guard.Explanation{}, err
	}
	return policy.Explain(int(tier)), nil
}

// Try returns what the guard decides on a call of an agent that works in the directory dir; empty for the configured
// one. Paths, links and programs are looked up on this host. The error is KindInvalid if the call is incomplete.
func (p Policy) Try(call Call, dir string) (Decision, error) {
	call, err := call.Complete()
	if err != nil {
		return Decision{}, Invalid(err)
	}
	checker, err := p.Checker(dir)
	if err != nil {
		return Decision{}, err
	}
	got, err := checker.Decide(call)
	if err != nil {
		return Decision{}, err
	}
	actions := append([]guard.Action{}, got.Actions...) // an empty list is [] in JSON
	return Decision{call, got.Verdict(), got.Allowed, got.Rule, got.AtRun, got.Reason, actions}, nil
}

// Checker decides on calls with the configured policy. It assumes that the calls come from an agent that works at
// Place.
type Checker struct {
	Config config.Config
	Policy *guard.Policy
	Guard  *guard.Guard
	Place  guard.Place
}

// Checker loads the configured policy. The argument dir is the directory in which the agent works; if it is empty, this
// is the configured directory.
func (p Policy) Checker(dir string) (Checker, error) {
	cfg, err := p.config()
	if err != nil {
		return Checker{}, err
	}
	policy, err := cfg.Guard.LoadPolicy()
	if err != nil {
		return Checker{}, err
	}
	if dir != "" {
		if dir, err = existingDir(dir); err != nil {
			return Checker{}, err
		}
	}
	place, err := supervisor.GuardPlace(cfg, p.Environ, supervisor.AgentPlace{Directory: dir})
	if err != nil {
		return Checker{}, Invalid(err)
	}
	place.Confined = true // as on a host with the whole sandbox
	return Checker{cfg, policy, guard.New(policy, guard.Host{}), place}, nil
}

func existingDir(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", invalidField("dir", "is %q: %s", line(dir, maxError), err)
	}
	if info, err := os.Stat(absolute); err != nil || !info.IsDir() {
		return "", invalidField("dir", "is %q; it must be an existing directory", line(dir, maxError))
	}
	return absolute, nil
}

// Call is a call on which the guard decides.
type Call struct {
	Tier escalation.Tier `json:"tier"`
	// Tool is the tool that is called; empty for Bash.
	Tool string `json:"tool"`
	// Command is the command of Bash. Input is the input of any tool, a JSON object, in place of a command.
	Command string          `json:"command,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
}

// Complete fills in the default tool, and validates the call.
func (c Call) Complete() (Call, error) {
	hasInput, hasCommand := len(c.Input) > 0, c.Command != ""
	c.Tool = cmp.Or(c.Tool, bash)
	switch {
	case !c.Tier.Valid():
		return c, errNoTier
	case hasInput && hasCommand:
		return c, errors.New("command and input exclude each other")
	case hasInput:
		var object map[string]any
		if err := json.Unmarshal(c.Input, &object); err != nil {
			return c, fmt.Errorf("the input must be a JSON object: %w", err)
		}
	case c.Tool != bash && hasCommand:
		return c, fmt.Errorf("a command is for Bash; %s takes an input", line(c.Tool, 100))
	case c.Tool != bash:
		return c, fmt.Errorf("the input of %s is missing", line(c.Tool, 100))
	case !hasCommand:
		return c, errors.New("the command is missing")
	}
	return c, nil
}

// bash is the tool that runs commands.
const bash = "Bash"

var errNoTier = Invalid(errors.New("tier must be 1, 2 or 3"))

// Decide returns the guard's decision on a call. The call must be a result of Complete.
func (c Checker) Decide(call Call) (guard.Decision, error) {
	input := call.Input
	if len(input) == 0 {
		var err error
		if input, err = json.Marshal(map[string]string{"command": call.Command}); err != nil {
			return guard.Decision{}, err
		}
	}
	return c.Guard.Decide(guard.Call{Tier: int(call.Tier), Tool: call.Tool, Input: input, Place: c.Place}), nil
}

// Decision has the verdict of the guard on a call.
type Decision struct {
	Call

	Verdict guard.Verdict `json:"verdict"`
	Allowed bool          `json:"allowed"`
	// Rule is the rule that decides. AtRun says what decides on the rest while the command runs; empty if nothing is
	// left.
	Rule  string `json:"rule"`
	AtRun string `json:"at_run,omitempty"`
	// Reason explains a denial in a sentence.
	Reason string `json:"reason"`
	// Actions lists the restarts and redeployments as which the call counts.
	Actions []guard.Action `json:"actions"`
}
