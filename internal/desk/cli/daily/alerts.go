package daily

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/alert"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/plant/program"
)

func (a *app) alertsCommand() *cobra.Command {
	cmd := a.listAlertsCommand("alerts")
	cmd.Short = "List, show or test alerts of monitoring systems"
	cmd.Long = "Without a subcommand, alerts lists what monitoring systems have sent, and what became of it. " +
		"docs/alerts.md says how\nto connect them.\n\n" + alertsHelp
	cmd.Example = "  claudeops alerts\n  claudeops alerts --outcome unmapped\n  claudeops alerts show 7\n" +
		"  claudeops alerts test payload.json --source alertmanager"
	cmd.AddCommand(a.listAlertsCommand("list"), a.showAlertCommand(), a.testAlertCommand())
	return cmd
}

const alertsHelp = "" +
	"The list begins with the latest alert. The outcomes are:\n\n" +
	"  waiting    a chain will start, after alerts of the service were gathered or when a limit permits it\n" +
	"  started    a chain was started for it\n" +
	"  joined     a chain at work on its service has taken it\n" +
	"  withdrawn  it resolved before a chain started\n" +
	"  filtered   it starts nothing, and the reason says why\n" +
	"  unmapped   no service has its labels\n" +
	"  refused    a delivery that cannot be used"

func (a *app) listAlertsCommand(name string) *cobra.Command {
	var f operations.AlertFilter
	cmd := &cobra.Command{
		Use:   name,
		Short: "List alerts",
		Long:  alertsHelp,
		Args:  console.NoArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.listAlerts(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.Outcome, "outcome", "", "only alerts with this outcome, such as unmapped")
	cmd.Flags().IntVar(&f.Limit, "limit", 100, "at most this many")
	return cmd
}

func (a *app) listAlerts(ctx context.Context, f operations.AlertFilter) error {
	if err := console.CheckLimit(f.Limit, "alert"); err != nil {
		return err
	}
	list, err := a.Operations.Alerts.List(ctx, f)
	return console.PrintResult(a.Console, list, err, func(w io.Writer, list operations.AlertList) {
		writeAlerts(w, a.Clock, a.Width(), list.Alerts)
		if list.Before > 0 {
			_, _ = fmt.Fprintln(w, "There are more; see them with --limit")
		}
	})
}

func writeAlerts(w io.Writer, clock console.Clock, width int, alerts []alert.Episode) {
	if len(alerts) == 0 {
		_, _ = fmt.Fprintln(w, "No alerts.")
		return
	}
	rows := [][]string{
		{"NUMBER", "LAST", "TIMES", "ALERT", "STATUS", "SERVICE", "SOURCE", "OUTCOME", "CHAIN OR REASON"},
	}
	for _, e := range alerts {
		rows = append(rows, []string{
			strconv.FormatInt(e.Number, 10), clock.DateTime(e.LastAt), strconv.Itoa(e.Received),
			console.Printable(e.Name, 40), string(e.Status), cmp.Or(console.Printable(e.Service, 40), "-"),
			e.Source, string(e.Outcome), cmp.Or(console.PrintableID(e.ChainID), console.Printable(e.Reason, 200)),
		})
	}
	console.CutTable(w, rows, width)
}

func (a *app) showAlertCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show NUMBER",
		Short: "Show an alert with its labels, and what became of it",
		Args:  console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return program.Misuse(fmt.Errorf("%s is not the number of an alert", console.Printable(args[0], 40)))
			}
			found, err := a.Operations.Alerts.Get(cmd.Context(), number)
			return console.PrintResult(a.Console, found, err, func(w io.Writer, e alert.Episode) {
				writeAlert(w, a.Clock, a.Width(), e)
			})
		},
	}
}

func writeAlert(w io.Writer, clock console.Clock, width int, e alert.Episode) {
	write := func(label, text string) {
		if text != "" {
			console.WriteLabelled(w, fmt.Sprintf("%-12s", label), text, width)
		}
	}
	write("Alert", console.Printable(e.Name, 300))
	write("Source", fmt.Sprintf("%s, as %s", e.Source, console.Printable(e.Identity, 300)))
	write("Status", fmt.Sprintf("%s since %s", e.Status, clock.Moment(e.StartsAt)))
	if !e.ResolvedAt.IsZero() {
		write("Resolved", clock.Moment(e.ResolvedAt)+", as its source says")
	}
	write("Severity", console.Printable(e.Severity, 100))
	write("Service", console.Printable(e.Service, escalation.MaxServiceName))
	if e.MaxTier != 0 {
		write("Tiers", fmt.Sprintf("up to %s, by its severity", e.MaxTier))
	}
	write("Outcome", string(e.Outcome))
	write("Reason", console.Printable(e.Reason, 300))
	write("Chain", console.PrintableID(e.ChainID))
	if !e.DueAt.IsZero() {
		write("Due", clock.Moment(e.DueAt))
	}
	if e.Number != 0 {
		write("Received", fmt.Sprintf("%s, first at %s, last at %s", plaintext.Count(e.Received, "time"),
			clock.Moment(e.FirstAt), clock.Moment(e.LastAt)))
	}
	writePairs(write, "Labels", e.Labels)
	writePairs(write, "Annotations", e.Annotations)
}

func writePairs(write func(label, text string), label string, pairs map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		write(label, console.Printable(name, 100)+"="+console.Printable(pairs[name], 1_000))
		label = ""
	}
}

// maxPayload limits the payload of a test, in bytes, as the server does.
const maxPayload = 4 << 20

func (a *app) testAlertCommand() *cobra.Command {
	var source string
	cmd := &cobra.Command{
		Use:   "test FILE",
		Short: "Say what would become of a payload, and execute nothing",
		Long: "Test reads a payload as a source sends it (- is stdin), and says which services its alerts are about " +
			"and what would\nfollow. It records nothing, and checks no signature. Alerts that are known already " +
			"would only be counted.",
		Args: console.OneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := a.payload(args[0])
			if err != nil {
				return err
			}
			received, err := a.Operations.Alerts.Test(cmd.Context(), operations.Delivery{Source: source, Body: body})
			return console.PrintResult(a.Console, received, err, func(w io.Writer, received operations.Received) {
				for i, e := range received.Alerts {
					if i > 0 {
						_, _ = fmt.Fprintln(w)
					}
					writeAlert(w, a.Clock, a.Width(), e)
				}
				if len(received.Alerts) == 0 {
					_, _ = fmt.Fprintln(w, "It has no alerts.")
				}
			})
		},
	}
	cmd.Flags().StringVar(&source, "source", "", "the name of the source in the services file")
	return cmd
}

// payload reads a file, or stdin for -.
func (a *app) payload(name string) ([]byte, error) {
	from := a.Stdin
	if name != "-" {
		file, err := os.Open(name) //nolint:gosec // the person names the file
		if err != nil {
			return nil, program.Misuse(err)
		}
		defer func() { _ = file.Close() }() // it is only read
		from = file
	}
	body, err := io.ReadAll(io.LimitReader(from, maxPayload+1))
	if err == nil && len(body) > maxPayload {
		err = errors.New("the payload has more than 4 MiB, which the server refuses")
	}
	return body, err
}
