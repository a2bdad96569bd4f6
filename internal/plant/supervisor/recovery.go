package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/redact"
	"github.com/claudeops/claudeops/workflows"
)

// recovery records those sessions again that Temporal knows and the records lack. The records lack sessions after they were
// restored from a backup.
type recovery struct {
	client  client.Client
	records *store.Store
	mask    *redact.Redactor
	logger  *slog.Logger
}

// ready reports whether chains can be queried. They cannot before the worker runs.
func (r *recovery) ready() bool { return r != nil && r.client != nil }

// record records the given chains again.
func (r *recovery) record(ctx context.Context, chains []string) error {
	for _, id := range chains {
		if err := r.chain(ctx, id); err != nil {
			return err
		}
	}
	return nil
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
		return fmt.Errorf("the records lack sessions of chain %s, and the chain cannot be queried for them: %w", id, err)
	}
	recovered, err := r.records.Recover(ctx, MaskChain(r.mask, chain))
	if err == nil && recovered.Sessions > 0 {
		r.logger.Warn("the records lacked sessions that Temporal has, and have them again; were the records restored from a backup?",
			"chain", id, "sessions", recovered.Sessions, "cost_usd", recovered.CostUSD)
	}
	return err
}
