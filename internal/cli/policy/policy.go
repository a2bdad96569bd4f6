// Package policy holds the commands that check and explain what agents of each tier are permitted to do.
package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/guard"
	"github.com/claudeops/claudeops/internal/program"
	"github.com/claudeops/claudeops/internal/supervisor"
)

// app implements the commands of this package.
type app struct{ *console.Console }

// Command returns `policy`.
func Command(c *console.Console) *cobra.Command {
	a := &app{c}
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Try and change what the agents of each tier may do",
		Long: "Policy asks the guard, which decides on every call of an agent by the built-in policy or the one that\n" +
			"CLAUDEOPS_POLICY_FILE names. Only `run` runs something. Paths, links and programs are looked up on this host, as by the\n" +
			"worker.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return program.Misuse(errNoCommand) },
	}
	cmd.AddCommand(a.checkCommand(), a.testCommand(), a.runCommand(), a.explainCommand(), a.suggestCommand())
	return cmd
}

var (
	errNoCommand = errors.New("say what to do with the policy: check, test, run, explain or suggest")
	errNoTier    = errors.New("--tier is missing: say with it for which tier, 1, 2 or 3")
)

// checker decides on tool calls with the configured policy. It assumes that the calls come from an agent that works at
// place.
type checker struct {
	config config.Config
	policy *guard.Policy
	guard  *guard.Guard
	place  guard.Place
}

// openGuard loads the configured policy. The argument dir is the directory in which the agent works; if it is empty,
// this is the configured directory.
func (a *app) openGuard(dir string) (checker, error) {
	cfg, err := config.Load(a.Environ)
	if err != nil {
		return checker{}, err
	}
	policy, err := cfg.Guard.LoadPolicy()
	if err != nil {
		return checker{}, err
	}
	if dir != "" {
		if dir, err = existingDir(dir); err != nil {
			return checker{}, program.Misuse(err)
		}
	}
	place, err := supervisor.GuardPlace(cfg, a.Environ, supervisor.AgentPlace{Directory: dir})
	if err != nil {
		return checker{}, program.Misuse(err)
	}
	return checker{cfg, policy, guard.New(policy, guard.Host{}), place}, nil
}

func existingDir(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("--dir is %q: %w", dir, err)
	}
	if info, err := os.Stat(absolute); err != nil || !info.IsDir() {
		return "", fmt.Errorf("--dir is %q; it must be an existing directory", dir)
	}
	return absolute, nil
}

// Call is a call on which the guard decides.
type Call struct {
	Tier    escalation.Tier `json:"tier"`
	Tool    string          `json:"tool"`
	Command string          `json:"command,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
}

// complete fills in the default tool, and validates the call.
func (c Call) complete() (Call, error) {
	hasInput, hasCommand := len(c.Input) > 0, c.Command != ""
	c.Tool = cmp.Or(c.Tool, "Bash")
	switch {
	case !c.Tier.Valid():
		return c, errors.New("tier must be 1, 2 or 3")
	case hasInput && hasCommand:
		return c, errors.New("command and input exclude each other")
	case hasInput:
		var object map[string]any
		if err := json.Unmarshal(c.Input, &object); err != nil {
			return c, fmt.Errorf("the input must be a JSON object: %w", err)
		}
	case c.Tool != "Bash" && hasCommand:
		return c, fmt.Errorf("a command is for Bash; %s takes an input", c.Tool)
	case c.Tool != "Bash":
		return c, fmt.Errorf("the input of %s is missing", c.Tool)
	case !hasCommand:
		return c, errors.New("the command is missing")
	}
	return c, nil
}

// decide returns the guard's decision on a call. The call must be a result of the method complete.
func (g checker) decide(c Call) (guard.Decision, error) {
	input := c.Input
	if len(input) == 0 {
		var err error
		if input, err = json.Marshal(map[string]string{"command": c.Command}); err != nil {
			return guard.Decision{}, err
		}
	}
	return g.guard.Decide(guard.Call{Tier: int(c.Tier), Tool: c.Tool, Input: input, Place: g.place}), nil
}

// longLine limits how much text of a call the output contains, in characters.
const longLine = 1000
