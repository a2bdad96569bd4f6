// Package local holds the commands `up` and `demo`, which run everything in one process. It also holds `env`, which
// prints the settings with which other programs connect to `up`.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/embedded"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/plant/telemetry"
)

// upOptions holds the flags of `up`. The default ports are the same as those of Temporal's development server.
type upOptions struct {
	port    int
	uiPort  int
	webPort int
}

// app implements the commands of this package.
type app struct{ *console.Console }

// Commands returns the commands `up`, `stop`, `demo`, `env` and `web`.
func Commands(c *console.Console) []*cobra.Command {
	a := &app{c}
	return []*cobra.Command{a.upCommand(), a.stopCommand(), a.demoCommand(), a.envCommand(), a.webCommand()}
}

func (a *app) upCommand() *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run everything on this machine: pages, Temporal, its Web UI and a worker",
		Long: "Up runs a Temporal server on a file in the state directory, its Web UI, a worker with the real " +
			"claude, and the\npages on which you see and direct it, all in this process. Ctrl-C drains it. Started " +
			"again, it goes on with what was running.",
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.up(cmd.Context(), o) },
	}
	cmd.Flags().IntVar(&o.webPort, "web-port", config.WebPort, "port of the pages; 0 is any free one")
	cmd.Flags().IntVar(&o.port, "port", 7233, "port of Temporal; 0 is any free one")
	cmd.Flags().IntVar(&o.uiPort, "ui-port", 8233, "port of Temporal's Web UI; 0 is any free one")
	return cmd
}

// Running is the output of `up`. The command prints it as soon as the servers are ready.
type Running struct {
	Pages    string `json:"pages"`
	Temporal string `json:"temporal_address"`
	WebUI    string `json:"web_ui"`
	StateDir string `json:"state_dir"`
	// Log is the file of the log; empty if it goes to stderr.
	Log string `json:"log,omitempty"`
	// Agents says how far agents may go.
	Agents string `json:"agents"`
	// Problem says why no agent can call its model; empty if nothing shows it.
	Problem string `json:"problem,omitempty"`

	// OwnDir reports that another terminal has to be told the state directory.
	OwnDir bool `json:"-"`
}

func (a *app) up(ctx context.Context, o upOptions) (err error) {
	cfg, err := config.Load(a.Environ)
	if err != nil {
		return err
	}
	cfg.Worker = cfg.Worker.WithoutVersion() // the only worker must run the chains of all versions
	logger, log, err := a.upLogger(ctx, cfg)
	if err != nil {
		return err
	}
	if log != nil {
		defer func() { err = errors.Join(err, log.Close()) }()
	}
	supervisor.WarnOfRoot(ctx, cfg, logger)
	supervisor.WarnOfVariables(ctx, cfg, a.Environ, logger)
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("find this host's name: %w", err)
	}
	watched, err := supervisor.StartTelemetry(ctx, cfg, a.Environ, program.Version(), logger)
	if errors.Is(err, telemetry.ErrTracing) {
		return program.Misuse(err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, watched.Close()) }()
	problem := make(chan string, 1)
	go func() { problem <- cell.CheckAccess(ctx, supervisor.ClaudeOptions(cfg.Claude, a.Environ)) }()
	one, err := StartAllInOne(ctx, cfg, embedded.Options{
		DatabaseFile: filepath.Join(cfg.State.Dir, "temporal.db"),
		FrontendPort: o.port,
		UIPort:       o.uiPort,
		Logger:       logger,
	}, &Pages{Port: o.webPort, Operations: a.serverOperations}, supervisor.Environment{
		Environ: a.Environ, Host: host, Version: program.Version(), Logger: logger, Telemetry: watched,
	})
	if errors.Is(err, supervisor.ErrLocalInUse) || errors.Is(err, embedded.ErrInUse) {
		return fmt.Errorf("another `claudeops up` runs on the state directory %s: use that one, or set "+
			"CLAUDEOPS_STATE_DIR to another",
			cfg.State.Dir)
	}
	if err != nil {
		return err
	}
	result := Running{
		Pages: one.pages.url(), Temporal: one.server.Address(), WebUI: one.server.UIURL(), StateDir: cfg.State.Dir,
		Problem: <-problem, OwnDir: saysStateDir(cfg),
	}
	if log != nil {
		result.Log = log.path
	}
	result.Agents = extent(cfg, result.Problem)
	if err := result.Print(a.Console, one.lock.Token); err != nil {
		return errors.Join(err, one.Stop())
	}
	if log != nil {
		go a.showChains(ctx, one.pages.does.Feed.Watch())
	}
	err = one.wait(ctx)
	a.Say("Stopped. Started again, it goes on with what was running.")
	return err
}

// extent says how far agents may go. With a problem they go nowhere.
func extent(cfg config.Config, problem string) string {
	switch {
	case problem != "":
		return "cannot work yet"
	case cfg.Chain.DryRun || cfg.Chain.MaxTier == escalation.TierObserve:
		return "look only, and change nothing"
	default:
		return fmt.Sprintf("repair, up to %s, unless a chain is a dry run", cfg.Chain.MaxTier)
	}
}

// saysStateDir reports whether the state directory is set in the environment of this terminal only, so that another
// terminal needs it.
func saysStateDir(cfg config.Config) bool {
	return slices.ContainsFunc(cfg.Settings(), func(setting config.Setting) bool {
		return setting.Name == config.Prefix+"STATE_DIR" && setting.Source == config.SourceEnvironment
	})
}

// Print prints the addresses. It prints the links with the token only on a terminal. Output elsewhere can be stored,
// for example in the journal of a service, where agents could read the token.
func (r Running) Print(c *console.Console, token string) error {
	here := "claudeops"
	if r.OwnDir {
		here = "CLAUDEOPS_STATE_DIR=" + console.ShellQuote(r.StateDir) + " " + here
	}
	pages, webUI := r.Pages+fmt.Sprintf("  (the link that opens it: %s env)", here), r.WebUI
	if c.OnTerminal() {
		pages, webUI = access.Link(r.Pages, token), access.Link(r.WebUI, token)
	}
	return c.Print(r, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "Claude Ops is up.\n  Pages     %s\n  Temporal  %s, and its Web UI %s\n  State     "+
			"%s\n  Agents    %s\n",
			pages, r.Temporal, webUI, r.StateDir, r.Agents)
		if r.Log != "" {
			_, _ = fmt.Fprintf(w, "  Log       %s\n", r.Log)
		}
		_, _ = fmt.Fprintln(w)
		if r.Problem != "" {
			_, _ = fmt.Fprintf(w, "Agents cannot work yet: %s.\n\n", r.Problem)
		}
		_, _ = fmt.Fprintf(w, "Let it look from another terminal:\n  %s run --wait --dry-run\n\n", here)
		_, _ = fmt.Fprintf(w, "For temporal and tctl there:\n  eval \"$(%s env)\"\n\n", here)
		_, _ = fmt.Fprintf(w, "Ctrl-C or `%s stop` stops it.\n", here)
	})
}
