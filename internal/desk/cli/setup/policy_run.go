package setup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
)

func (a *app) runScriptCommand() *cobra.Command {
	var tier escalation.Tier
	var dir string
	cmd := &cobra.Command{
		Use:   "run --tier TIER SCRIPT",
		Short: "Run a script as an agent of a tier would; nothing is charged or recorded",
		Long: "Run runs a script, in one argument, as an agent's: each program and file is judged when it is used, " +
			"in the tier's\nsandbox, with an agent's environment. It really runs. Restarts are not limited, charged " +
			"or recorded.\nIt ends with the exit code of the script, and with 126 if the script as a whole is refused.",
		Example: "  claudeops policy run --tier 1 'docker ps -q | xargs docker inspect --'",
		Args:    oneCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runScript(cmd.Context(), tier, dir, strings.Join(args, ""))
		},
	}
	cmd.Flags().Var(console.TierFlag{Tier: &tier, Allowed: escalation.Tiers()}, "tier",
		"the tier whose agent runs the script")
	addDirFlag(cmd, &dir)
	return cmd
}

func (a *app) runScript(ctx context.Context, tier escalation.Tier, dir, script string) error {
	switch {
	case tier == 0:
		return program.Misuse(errNoTier)
	case script == "":
		return program.Misuse(errors.New("the script is missing (see `claudeops policy run --help`)"))
	}
	checker, err := a.Operations.Policy.Checker(dir)
	if err != nil {
		return err
	}
	cfg, _, err := supervisor.EnsureUser(ctx, checker.Config)
	if err != nil {
		return err
	}
	if err := cfg.MakeDirs(); err != nil {
		return err
	}
	options := supervisor.CellOptions(cfg, a.Environ, checker.Policy)
	options.Logger = slog.New(slog.DiscardHandler)
	code, err := cell.RunScript(ctx, options, cell.Script{
		Tier: int(tier), Dir: checker.Place.Work[0], Env: map[string]string{"CLAUDEOPS_TIER": fmt.Sprint(int(tier))},
		Text: script, Stdout: a.Stdout, Stderr: a.Stderr,
	})
	if err == nil && code != 0 {
		return program.WithCode(program.ExitCode(code), fmt.Errorf("the script ended with %d", code))
	}
	return err
}
