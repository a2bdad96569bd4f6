package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/cli/daily"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/embedded"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/records/encryption"
	"github.com/claudeops/claudeops/internal/redact"
	"github.com/claudeops/claudeops/workflows"
)

// demoOptions are the flags of `demo`.
type demoOptions struct {
	port    int
	uiPort  int
	webPort int
	keep    bool
}

// demoResult is the result of `demo`.
type demoResult struct {
	Chain escalation.Chain `json:"chain"`
	operations.Lineage

	// Pages is a link to the first page, and WebUI a link to the chain in Temporal's Web UI; both contain the demo's
	// token, which is valid until the demo ends. Temporal is the address of the server. Without --keep, all three are
	// empty.
	Pages    string `json:"pages,omitempty"`
	Temporal string `json:"temporal_address,omitempty"`
	WebUI    string `json:"web_ui,omitempty"`
}

func (a *app) demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch an incident climb all three tiers; needs nothing but this program",
		Long: "Demo runs Temporal, its Web UI, a worker and a stand-in for claude in this process, breaks a pretend " +
			"service,\nand lets a chain repair it. It needs no API key, no network and no database, and leaves " +
			"nothing behind.\nIt ends with 0 if the chain ended resolved, and with 1 if it did not or Ctrl-C came " +
			"before.",
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), o) },
	}
	cmd.Flags().IntVar(&o.port, "port", 0, "port of Temporal (default: any free one)")
	cmd.Flags().IntVar(&o.uiPort, "ui-port", 0, "port of the Web UI (default: any free one)")
	cmd.Flags().IntVar(&o.webPort, "web-port", 0, "port of the pages (default: any free one)")
	cmd.Flags().BoolVar(&o.keep, "keep", false, "leave everything up until Ctrl-C")
	return cmd
}

func (a *app) demo(ctx context.Context, o demoOptions) error {
	stateDir, err := os.MkdirTemp("", "claudeops-demo-")
	if err == nil {
		stateDir, err = filepath.Abs(stateDir) // TMPDIR may be relative
	}
	if err != nil {
		return fmt.Errorf("make a directory for the demo: %w", err)
	}
	chain, err := a.playDemo(ctx, stateDir, o)
	if removeErr := os.RemoveAll(stateDir); removeErr != nil {
		return errors.Join(err, fmt.Errorf("remove the demo's directory: %w", removeErr))
	}
	switch {
	case err != nil && ctx.Err() != nil:
		a.Say("The demo was stopped, and nothing of it is left.")
		return ctx.Err()
	case err != nil:
		return err
	case chain.Outcome != escalation.OutcomeResolved:
		reason := console.Printable(chain.Reason, 1_000)
		return fmt.Errorf("the chain ended %s, not %s: %s", chain.Outcome, escalation.OutcomeResolved, reason)
	}
	return nil
}

// playDemo runs the demo in stateDir and prints its result. Before playDemo returns, it stops everything that it has
// started.
func (a *app) playDemo(ctx context.Context, stateDir string, o demoOptions) (escalation.Chain, error) {
	cfg, environ, err := a.demoConfig(stateDir)
	if err != nil {
		return escalation.Chain{}, err
	}
	a.Say("Starting Temporal, its Web UI and a worker in this process …")
	logger := a.quietLogger(ctx, slog.LevelWarn)
	one, err := StartAllInOne(ctx, cfg, embedded.Options{FrontendPort: o.port, UIPort: o.uiPort, Logger: logger},
		&Pages{Port: o.webPort, Operations: a.serverOperations},
		supervisor.Environment{Environ: environ, Host: "demo", Version: program.Version(), Logger: logger})
	if err != nil {
		return escalation.Chain{}, err
	}
	result, err := a.demoChain(ctx, one, cfg, o.keep)
	if err == nil {
		err = a.Print(result, func(w io.Writer) { a.writeDemo(w, result) })
	}
	if err == nil && o.keep {
		a.Say("\nEverything stays up until Ctrl-C. Look around from another terminal:")
		a.Say("  CLAUDEOPS_STATE_DIR=%s claudeops chains", console.ShellQuote(stateDir))
		<-ctx.Done()
	}
	return result.Chain, errors.Join(err, one.Stop())
}

// quietLogger returns a logger for messages from a level on. After ctx ends, the logger writes nothing, because the
// interrupted parts would log errors.
func (a *app) quietLogger(ctx context.Context, lowest slog.Level) *slog.Logger {
	level := levelFunc(func() slog.Level {
		if ctx.Err() != nil {
			return math.MaxInt
		}
		return lowest
	})
	return slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{
		Level:       level,
		ReplaceAttr: redact.New(a.Environ).Attr,
	}))
}

// levelFunc is a log level that is computed again for each message.
type levelFunc func() slog.Level

var _ slog.Leveler = levelFunc(nil)

// Level implements slog.Leveler.
func (f levelFunc) Level() slog.Level { return f() }

// demoConfig installs the stand-in for claude and the broken service in stateDir. It returns the configuration of the
// demo.
func (a *app) demoConfig(stateDir string) (config.Config, []string, error) {
	// the stand-in writes its records into this directory, and its sandbox allows that
	bin := filepath.Join(stateDir, "claude", "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return config.Config{}, nil, err
	}
	claude, err := claudesim.Install(bin, demoScenario())
	if err != nil {
		return config.Config{}, nil, fmt.Errorf("install the stand-in for claude: %w", err)
	}
	if err := demoSiteIn(stateDir).build(); err != nil {
		return config.Config{}, nil, fmt.Errorf("build the demo's service: %w", err)
	}
	environ := demoEnvironment(stateDir, claude, console.Variable(a.Environ, "PATH"))
	cfg, err := config.Load(environ)
	return cfg, environ, err
}

// demoChain runs one chain and returns the result of the demo. If keep is not set, the result contains no addresses.
func (a *app) demoChain(
	ctx context.Context, one *AllInOne, cfg config.Config, keep bool,
) (result demoResult, err error) {
	run, err := operations.Start(ctx, one.client, cfg.Worker.TaskQueue, "", workflows.ChainInput{
		Trigger: escalation.TriggerManual, Services: []string{"jellyfin"}, Prompt: "People say that jellyfin is down.",
	})
	if err != nil {
		return result, err
	}
	if keep {
		page := one.server.WorkflowURL(embedded.DefaultNamespace, run.GetID(), run.GetRunID())
		result.Temporal, result.WebUI = one.server.Address(), access.Link(page, one.lock.Token)
		result.Pages = access.Link(one.pages.url(), one.lock.Token)
		a.Say("Watch it: %s\n", result.Pages)
	}
	follower := operations.Follower{
		Client: one.client, Converter: encryption.NewConverter(cfg.Encryption.Keys), Local: true, Run: run,
		Patience: a.Patience,
	}
	if result.Chain, err = follower.Follow(ctx, daily.NewPrinter(a.Console)); err != nil {
		return result, err
	}
	records, err := supervisor.OpenExisting(ctx, cfg.State)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	first, last := result.Chain.Sessions[0], result.Chain.Last()
	if result.Forward, err = records.Forward(ctx, first.ID); err != nil {
		return result, err
	}
	result.Backward, err = records.Backward(ctx, last.ID)
	return result, err
}

func (a *app) writeDemo(w io.Writer, result demoResult) {
	_, _ = fmt.Fprintln(w)
	daily.WriteTree(w, a.Clock, result.Chain)
	_, _ = fmt.Fprintln(w)
	daily.WriteLineage(w, "Forward from the first session:", result.Forward)
	daily.WriteLineage(w, "Backward from the last session:", result.Backward)
	if result.WebUI == "" {
		_, _ = fmt.Fprintln(w, "\nA stand-in played Claude: nothing was spent.\n"+
			"With --keep (make demo DEMO=--keep) everything stays up, to look at in a browser.")
		return
	}
	_, _ = fmt.Fprintf(w, "\nThe pages: %s\nThis chain in Temporal's Web UI: %s\n", result.Pages, result.WebUI)
}
