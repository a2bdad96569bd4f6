package chainclient

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// Start starts a chain with the given ID. If the ID is empty, Start makes a new ID.
func Start(ctx context.Context, c client.Client, queue, id string, input workflows.ChainInput) (client.WorkflowRun, error) {
	if id == "" {
		id = newChainID(time.Now())
	}
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                                       id,
		TaskQueue:                                queue,
		StaticSummary:                            summaryOf(input),
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, workflows.ChainWorkflow, input)
	if _, runs := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); runs {
		return nil, fmt.Errorf("chain %s runs already: choose another --id, or see it with: %s", id, console.LookCommand(id))
	}
	if err != nil {
		return nil, fmt.Errorf("start chain %s: %w", id, err)
	}
	return run, nil
}

// newChainID returns an ID that sorts by time. Its random suffix distinguishes chains that start in the same second.
func newChainID(now time.Time) string {
	suffix := make([]byte, 3)
	_, _ = rand.Read(suffix) // crypto/rand.Read never fails
	return "chain-" + now.UTC().Format("20060102-150405") + "-" + hex.EncodeToString(suffix)
}

// summaryOf describes the chain in one line for the Web UI.
func summaryOf(input workflows.ChainInput) string {
	parts := []string{string(input.Trigger) + " chain"}
	if input.StartTier > escalation.TierObserve {
		parts = append(parts, "from "+input.StartTier.String())
	}
	if len(input.Services) > 0 {
		parts = append(parts, strings.Join(input.Services, ", "))
	}
	if input.DryRun {
		parts = append(parts, "dry run")
	}
	return console.Printable(strings.Join(parts, " · "), 200)
}
