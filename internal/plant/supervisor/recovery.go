package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/workflows"
)

// recovery records those sessions again that Temporal knows and the records lack. The records lack sessions after they
// were restored from a backup.
type recovery struct {
	client  client.Client
	records *store.Store
	logger  *slog.Logger
}

// record records the given chains again; without chains, the one whose activity has the context. It returns false if
// chains cannot be queried, as before the worker runs, or if there is no chain.
func (r *recovery) record(ctx context.Context, chains ...string) (bool, error) {
	if len(chains) == 0 && activity.IsActivity(ctx) {
		chains = []string{activity.GetInfo(ctx).WorkflowExecution.ID}
	}
	if r.client == nil || len(chains) == 0 {
		return false, nil
	}
	for _, id := range chains {
		if err := r.chain(ctx, id); err != nil {
			return false, err
		}
	}
	return true, nil
}

// chain records a chain again. A chain that Temporal does not know is no error.
func (r *recovery) chain(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	var chain escalation.Chain
	answer, err := r.client.QueryWorkflow(ctx, id, "", workflows.ChainQuery)
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return nil
	}
	if err == nil {
		err = answer.Get(&chain)
	}
	if err != nil {
		return fmt.Errorf("the records lack sessions of chain %s, and the chain cannot be queried for them: %w", id,
			err)
	}
	recovered, err := r.records.Recover(ctx, chain)
	if err == nil && recovered.Sessions > 0 {
		r.logger.Warn("the records lacked sessions that Temporal has, and have them again; were the records restored "+
			"from a backup?",
			"chain", id, "sessions", recovered.Sessions, "cost_usd", recovered.CostUSD)
	}
	return err
}
