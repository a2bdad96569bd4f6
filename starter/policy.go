package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/guard"
	"github.com/claudeops/claudeops/internal/supervisor"
)

func (a *app) policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Try what the agents of each tier may do: one call, a table of calls, or all in words",
		Long: "Policy asks the guard, which decides on every call of an agent by the built-in policy or the one that\n" +
			"CLAUDEOPS_POLICY_FILE names. Nothing is run. Paths, links and programs are looked up on this host, as the worker does.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return misuse(errNoPolicyCommand) },
	}
	cmd.AddCommand(a.policyCheckCommand(), a.policyTestCommand(), a.policyExplainCommand())
	return cmd
}

var (
	errNoPolicyCommand = errors.New("say what to do with the policy: check, test or explain")
	errNoPolicyTier    = errors.New("--tier is missing: say with it for which tier, 1, 2 or 3")
)

// policyGuard is the guard as the configuration has it, and where it takes calls to be made.
type policyGuard struct {
	policy *guard.Policy
	guard  *guard.Guard
	place  guard.Place
}

// openGuard loads the policy, and finds out where an agent would work: in dir, or where the configuration says.
func (a *app) openGuard(dir string) (policyGuard, error) {
	cfg, err := config.Load(a.environ)
	if err != nil {
		return policyGuard{}, err
	}
	policy, err := cfg.Guard.LoadPolicy()
	if err != nil {
		return policyGuard{}, err
	}
	if dir != "" {
		if dir, err = existingDir(dir); err != nil {
			return policyGuard{}, misuse(err)
		}
	}
	place, err := supervisor.GuardPlace(cfg, a.environ, supervisor.AgentPlace{Directory: dir})
	if err != nil {
		return policyGuard{}, misuse(err)
	}
	return policyGuard{policy, guard.New(policy, guard.Host{}), place}, nil
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

// policyCall is a call that somebody wants to know about.
type policyCall struct {
	Tier    escalation.Tier `json:"tier"`
	Tool    string          `json:"tool"`
	Command string          `json:"command,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
}

// complete fills in what may be left out, and reports what is wrong with the call.
func (c policyCall) complete() (policyCall, error) {
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

// decide asks the guard about a call that is complete.
func (g policyGuard) decide(c policyCall) (guard.Decision, error) {
	input := c.Input
	if len(input) == 0 {
		var err error
		if input, err = json.Marshal(map[string]string{"command": c.Command}); err != nil {
			return guard.Decision{}, err
		}
	}
	return g.guard.Decide(guard.Call{Tier: int(c.Tier), Tool: c.Tool, Input: input, Place: g.place}), nil
}

// policyCheckOptions are the flags of `policy check`.
type policyCheckOptions struct {
	tier             escalation.Tier
	tool, input, dir string
}

func (a *app) policyCheckCommand() *cobra.Command {
	o := policyCheckOptions{}
	cmd := &cobra.Command{
		Use:   "check --tier TIER COMMAND",
		Short: "Say whether a tier may make a call, and why; nothing is run",
		Long: "Check says what the guard would decide on a command, in one argument, or on another tool's call (--tool, --input).\n" +
			"It ends with 0 if the call is allowed, and with 3 if it is denied.",
		Example: "  starter policy check --tier 2 'docker restart jellyfin && rm -rf /'\n" +
			`  starter policy check --tier 1 --tool Read --input '{"file_path":"/etc/shadow"}'`,
		Args: oneCommand,
		RunE: func(_ *cobra.Command, args []string) error { return a.checkPolicy(o, strings.Join(args, "")) },
	}
	cmd.Flags().Var(tierFlag{&o.tier, escalation.Tiers()}, "tier", "the tier whose agent makes the call")
	cmd.Flags().StringVar(&o.tool, "tool", "Bash", "the tool that is called")
	cmd.Flags().StringVar(&o.input, "input", "", "the tool's input, a JSON object, in place of a command")
	addDirFlag(cmd, &o.dir)
	return cmd
}

func addDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "dir", "", "directory in which the agent works; the configured one if left out")
}

// oneCommand is for a command line that is given as one argument, so that this shell leaves it alone.
func oneCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("`%s` takes the command as one argument: put quotes around it", cmd.CommandPath())
	}
	return oneArgumentAtMost(cmd, args)
}

// policyDecision is what `policy check` prints.
type policyDecision struct {
	policyCall
	Allowed bool           `json:"allowed"`
	Rule    string         `json:"rule"`
	Reason  string         `json:"reason"`
	Actions []guard.Action `json:"actions"`
}

func (a *app) checkPolicy(o policyCheckOptions, command string) error {
	if o.tier == 0 {
		return misuse(errNoPolicyTier)
	}
	call, err := policyCall{Tier: o.tier, Tool: o.tool, Command: command, Input: json.RawMessage(o.input)}.complete()
	if err != nil {
		return misuse(fmt.Errorf("%w (see `starter policy check --help`)", err))
	}
	g, err := a.openGuard(o.dir)
	if err != nil {
		return err
	}
	got, err := g.decide(call)
	if err != nil {
		return err
	}
	decision := policyDecision{call, got.Allowed, got.Rule, got.Reason, got.Actions}
	if decision.Actions == nil {
		decision.Actions = []guard.Action{}
	}
	if err := a.print(decision, func(w io.Writer) { writeDecision(w, decision) }); err != nil {
		return err
	}
	if !got.Allowed {
		return &exitError{exitDenied, fmt.Errorf("tier %d may not do that", int(o.tier))}
	}
	return nil
}

func writeDecision(w io.Writer, d policyDecision) {
	if !d.Allowed {
		_, _ = fmt.Fprintf(w, "Denied by: %s\nBecause:   %s\n", printable(d.Rule, longLine), printable(d.Reason, longLine))
		return
	}
	_, _ = fmt.Fprintf(w, "Allowed by: %s\n", printable(d.Rule, longLine))
	for _, action := range d.Actions {
		_, _ = fmt.Fprintf(w, "Counts as:  %s of %s\n", action.Kind, printable(action.Service, longLine))
	}
}

// longLine is how much of what a call says is shown.
const longLine = 1000
