package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/embedded"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/supervisor"
	"github.com/claudeops/claudeops/workflows"
)

// demoOptions are the flags of `demo`.
type demoOptions struct {
	port   int
	uiPort int
	keep   bool
}

// demoResult is the result of `demo`.
type demoResult struct {
	Chain escalation.Chain `json:"chain"`
	lineage
	WebUI string `json:"web_ui"`
}

func (a *app) demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch an incident climb all three tiers; needs nothing but this program",
		Long: "Demo runs Temporal, its Web UI, a worker and a stand-in for claude in this process, breaks a pretend service,\n" +
			"and lets a chain repair it. It needs no API key, no network and no database, and leaves nothing behind.\n" +
			"It ends with 0 only if the chain ended resolved.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), o) },
	}
	cmd.Flags().IntVar(&o.port, "port", 0, "port of Temporal (default: any free one)")
	cmd.Flags().IntVar(&o.uiPort, "ui-port", 0, "port of the Web UI (default: any free one)")
	cmd.Flags().BoolVar(&o.keep, "keep", false, "leave everything up until Ctrl-C")
	return cmd
}

func (a *app) demo(ctx context.Context, o demoOptions) (err error) {
	stateDir, err := os.MkdirTemp("", "claudeops-demo-")
	if err != nil {
		return fmt.Errorf("make a directory for the demo: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stateDir)) }()
	cfg, environ, err := a.demoConfig(stateDir)
	if err != nil {
		return err
	}
	a.say("Starting Temporal, its Web UI and a worker in this process …")
	logger := a.quietLogger()
	one, err := startAllInOne(ctx, cfg, embedded.Options{FrontendPort: o.port, UIPort: o.uiPort, Logger: logger},
		supervisor.Environment{Environ: environ, Host: "demo", Logger: logger})
	if err != nil {
		return err
	}
	result, err := a.demoChain(ctx, one, cfg)
	if err == nil {
		err = a.print(result, func(w io.Writer) { a.writeDemo(w, result) })
	}
	if err == nil && o.keep {
		a.say("\nEverything stays up. Ctrl-C ends it.")
		<-ctx.Done()
	}
	err = errors.Join(err, one.stop())
	if err == nil && result.Chain.Outcome != escalation.OutcomeResolved {
		return fmt.Errorf("the chain ended %s, not %s: %s", result.Chain.Outcome, escalation.OutcomeResolved, result.Chain.Reason)
	}
	return err
}

// demoConfig installs the stand-in and the broken service in stateDir and returns the
// configuration that goes with them.
func (a *app) demoConfig(stateDir string) (config.Config, []string, error) {
	bin := filepath.Join(stateDir, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return config.Config{}, nil, err
	}
	claude, err := claudesim.Install(bin, demoScenario())
	if err != nil {
		return config.Config{}, nil, fmt.Errorf("install the stand-in for claude: %w", err)
	}
	environ := demoEnvironment(stateDir, claude, variable(a.environ, "PATH"))
	cfg, err := config.Load(environ)
	if err != nil {
		return cfg, nil, err
	}
	if err := cfg.MakeDirs(); err != nil {
		return cfg, nil, err
	}
	return cfg, environ, buildDemoService(cfg.Claude.WorkDir)
}

// demoChain runs one chain and collects what is to be shown of it.
func (a *app) demoChain(ctx context.Context, one *allInOne, cfg config.Config) (result demoResult, err error) {
	run, err := startChain(ctx, one.client, cfg.Worker.TaskQueue, "", workflows.ChainInput{
		Trigger: escalation.TriggerManual, Services: []string{"jellyfin"}, Prompt: "People say that jellyfin is down.",
	})
	if err != nil {
		return result, err
	}
	result.WebUI = one.server.WorkflowURL(embedded.DefaultNamespace, run.GetID(), run.GetRunID())
	a.say("Watch it in the Web UI: %s\n", result.WebUI)
	if result.Chain, err = a.follow(ctx, one.client, run); err != nil {
		return result, err
	}
	records, err := supervisor.OpenStore(ctx, cfg)
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
	a.writeTree(w, result.Chain)
	_, _ = fmt.Fprintln(w)
	writeLineage(w, "Forward from the first session:", result.Forward)
	writeLineage(w, "Backward from the last session:", result.Backward)
	_, _ = fmt.Fprintf(w, "\nThis chain in the Web UI: %s\n", result.WebUI)
}

// variable returns the value of a variable in an environment.
func variable(environ []string, name string) string {
	for _, entry := range environ {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value
		}
	}
	return ""
}
