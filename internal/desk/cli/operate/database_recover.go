package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/redact"
)

func (a *app) recoverCommand() *cobra.Command {
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Record again what Temporal knows and restored records lack",
		Long: "Recover asks Temporal for the chains and conversations that run, or have ended since the backup, and " +
			"records those of\ntheir sessions and events that the records lack. It changes nothing that is recorded, " +
			"and you can run it again.\n\nRun it after you have restored the records from a backup, as soon as " +
			"workers run: they answer for the chains. On\n" +
			"PostgreSQL use the URL of the owner of the tables. docs/backup.md says what " +
			"cannot be recovered.",
		Example: "  claudeops db recover --since 26h",
		Args:    console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if since <= 0 {
				return program.Misuse(fmt.Errorf("--since is %s; it must be longer ago than the backup", since))
			}
			return a.recoverSince(cmd.Context(), since)
		},
	}
	cmd.Flags().DurationVar(&since, "since", 72*time.Hour, "how long ago the backup was made, or longer")
	return cmd
}

// recoveredView is the result of `db recover`.
type recoveredView struct {
	// Asked counts the chains and conversations that answered, and Chains those of which the records lacked sessions.
	Asked  int `json:"asked"`
	Chains int `json:"chains"`
	// Unanswered lists the IDs of those that did not answer.
	Unanswered []string `json:"unanswered,omitempty"`
	store.Recovered
}

var errUnanswered = errors.New("some did not answer: see above, and run it again")

func (a *app) recoverSince(ctx context.Context, since time.Duration) (err error) {
	c, cfg, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	namespace, err := supervisor.FindNamespace(ctx, c, c.Namespace)
	if err != nil {
		return err
	}
	records, err := supervisor.OpenExisting(ctx, cfg.State)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	if err := records.CheckNamespace(ctx, namespace); err != nil {
		return err
	}
	var view recoveredView
	chains, err := a.chainsSince(ctx, c, a.Clock().Add(-since), &view)
	if err != nil {
		return err
	}
	if err := view.record(ctx, records.With(store.Hooks{Mask: redact.New(a.Environ)}), chains); err != nil {
		return err
	}
	if err := a.Print(view, func(w io.Writer) { writeRecovered(w, view) }); err != nil {
		return err
	}
	if len(view.Unanswered) > 0 {
		return errUnanswered
	}
	return nil
}

// chainsSince returns the chains and conversations that run or have ended since a time, the oldest first. It adds to
// view those that do not answer.
func (a *app) chainsSince(
	ctx context.Context, c operations.Connection, since time.Time, view *recoveredView,
) (chains []escalation.Chain, err error) {
	rows, err := operations.List(ctx, c, operations.RecentQuery(since), math.MaxInt)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(one, other operations.Row) int { return one.StartedAt.Compare(other.StartedAt) })
	for _, row := range rows {
		chain, err := a.chain(ctx, c, row)
		if err != nil {
			_, _ = fmt.Fprintf(a.Stderr, "claudeops: chain %s: %v\n", console.PrintableID(row.ID),
				console.PrintableError(err))
			view.Unanswered = append(view.Unanswered, row.ID)
			continue
		}
		chains = append(chains, chain)
	}
	view.Asked = len(chains)
	return chains, nil
}

// chain asks one run of a chain for its state.
func (a *app) chain(ctx context.Context, c operations.Connection, row operations.Row) (escalation.Chain, error) {
	asking, cancel := context.WithTimeout(ctx, a.Patience)
	defer cancel()
	chain, err := operations.Query(asking, c, row.ID, row.RunID)
	if err != nil {
		err = operations.ExplainQueryError(ctx, c, a.Patience, row.ID, err)
	}
	return chain, err
}

// record records what is missing of chains, and counts it.
func (v *recoveredView) record(ctx context.Context, records *store.Store, chains []escalation.Chain) error {
	if err := records.SkipNumbers(ctx, chains); err != nil {
		return err
	}
	for i := range chains {
		got, err := records.Recover(ctx, chains[i])
		if err != nil {
			return err
		}
		if got.Sessions > 0 {
			v.Chains++
		}
		v.Sessions += got.Sessions
		v.CostUSD += got.CostUSD
	}
	return nil
}

func writeRecovered(w io.Writer, view recoveredView) {
	_, _ = fmt.Fprintf(w, "Chains and conversations asked: %d.\n", view.Asked)
	if view.Sessions == 0 {
		_, _ = fmt.Fprintln(w, "The records lack none of their sessions.")
	} else {
		_, _ = fmt.Fprintf(w, "Sessions that the records lacked, and have again: %d (chains and conversations: %d, "+
			"cost: %s).\n", view.Sessions, view.Chains, plaintext.Dollars(view.CostUSD))
	}
	_, _ = fmt.Fprintln(w, "What else is later than the backup is lost, because Temporal does not have it: the texts "+
		"of conversations, what\npeople did with memories and incidents, and decisions on calls (docs/backup.md).")
}
