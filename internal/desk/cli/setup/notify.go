package setup

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

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
	attempts := a.tryTargets(ctx, cfg, targets)
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

// tryTargets sends a test message to each target, and keeps what came of it for `doctor`.
func (a *app) tryTargets(ctx context.Context, cfg config.Config, targets []notify.Target) []attempt {
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
	kept, err := json.Marshal(notifyTest{Of: fingerprint(cfg.Notify), At: a.Clock(), Attempts: attempts})
	if err == nil && ctx.Err() == nil {
		_ = os.WriteFile(notifyTestFile(cfg), kept, 0o600) // without it, doctor says that nothing was tried
	}
	return attempts
}

// notifyTest is the result of the last test of the notifications on this host.
type notifyTest struct {
	// Of is the fingerprint of the places that were tried.
	Of       string    `json:"of"`
	At       time.Time `json:"at"`
	Attempts []attempt `json:"attempts"`
}

func notifyTestFile(cfg config.Config) string {
	return filepath.Join(cfg.State.Dir, "notify-test.json")
}

// fingerprint identifies the places that are notified.
func fingerprint(settings config.Notify) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(settings.URLs, "\n"))))
}

// lastNotifyTest returns the last test of the places that are set; false if there was none here.
func lastNotifyTest(cfg config.Config) (last notifyTest, tried bool) {
	text, err := os.ReadFile(notifyTestFile(cfg))
	return last, err == nil && json.Unmarshal(text, &last) == nil && last.Of == fingerprint(cfg.Notify)
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
