package setup

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/notify"
	"github.com/claudeops/claudeops/internal/plant/program"
)

func (a *app) notifyCommand() *cobra.Command {
	return console.Parent(&cobra.Command{
		Use:   "notify",
		Short: "Try the places where people are notified",
	}, "notifications", &cobra.Command{
		Use:   "test",
		Short: "Send a test message to every place and say what came of each",
		Long: "Test sends a message to every place that CLAUDEOPS_NOTIFY_URLS names, and ends with 1 if one of them " +
			"did not take it.", Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.testNotifications(cmd.Context()) },
	})
}

// attempt is the result of sending one notification.
type attempt struct {
	// Number is the position of the place in CLAUDEOPS_NOTIFY_URLS, from 1. A URL that names several recipients is as
	// many places.
	Number  int    `json:"number"`
	Service string `json:"service"`
	Place   string `json:"place"` // the service and its host
	OK      bool   `json:"ok"`
	Error   string `json:"error,omitempty"`
}

func (a *app) testNotifications(ctx context.Context) error {
	cfg, err := config.Load(a.Environ)
	if err != nil {
		return err
	}
	targets, err := cfg.Notify.Targets()
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return program.Misuse(fmt.Errorf("%sNOTIFY_URLS names no place, so nobody is notified", config.Prefix))
	}
	attempts := tryTargets(ctx, targets)
	if err := a.Print(attempts, func(w io.Writer) { writeAttempts(w, attempts) }); err != nil {
		return err
	}
	failed := 0
	for _, attempt := range attempts {
		if !attempt.OK {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d places were not notified", failed, len(attempts))
	}
	return nil
}

func tryTargets(ctx context.Context, targets []notify.Target) []attempt {
	message := notify.Message{
		Title: "Claude Ops: a test", Level: notify.LevelInfo,
		Text: "Notifications arrive here. Nothing is wrong.",
	}
	if host, err := os.Hostname(); err == nil {
		message.Text += "\nSent from " + host + " by: claudeops notify test"
	}
	attempts := make([]attempt, len(targets))
	for i, target := range targets {
		attempts[i] = attempt{Number: i + 1, Service: target.Service(), Place: target.Place(), OK: true}
		if err := target.Send(ctx, message); err != nil {
			attempts[i].OK, attempts[i].Error = false, err.Error()
		}
	}
	return attempts
}

func writeAttempts(w io.Writer, attempts []attempt) {
	for _, attempt := range attempts {
		if attempt.OK {
			_, _ = fmt.Fprintf(w, "✓ %d %s: notified\n", attempt.Number, attempt.Place)
		} else {
			_, _ = fmt.Fprintf(w, "✗ %d %s\n", attempt.Number, attempt.Error)
		}
	}
}
