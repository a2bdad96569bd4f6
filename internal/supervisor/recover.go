package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/escalation"
)

// settleAbandoned closes the records of sessions that nobody will close any more, because
// their chain was terminated, has run into a time-out, or is unknown to Temporal. Nothing
// is deleted. What such a session has cost is not known; its record says so.
func (s *Supervisor) settleAbandoned(ctx context.Context, c client.Client) error {
	sessions, err := s.store.Running(ctx)
	if err != nil {
		return err
	}
	for i := range sessions {
		reason, err := abandoned(ctx, c, sessions[i].ChainID)
		if err != nil { // the next start looks again; this one has work to do
			s.logger.Warn("cannot tell whether an open session is abandoned", "session", sessions[i].ID, "error", err)
			continue
		}
		if reason == "" {
			continue
		}
		report := sessions[i].Report
		report.Status, report.Error, report.CostEstimated = escalation.SessionFailed, reason, true
		if err := s.store.CloseSession(ctx, sessions[i].SessionID, report, time.Now()); err != nil {
			return err
		}
		s.logger.Warn("settled an abandoned session", "session", sessions[i].ID, "chain", sessions[i].ChainID, "reason", reason)
	}
	return nil
}

// abandoned returns why nobody will close the sessions of a chain; "" if it still runs.
func abandoned(ctx context.Context, c client.Client, chainID string) (string, error) {
	described, err := c.DescribeWorkflowExecution(ctx, chainID, "")
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return "its chain is unknown to Temporal", nil
	}
	if err != nil {
		return "", fmt.Errorf("look at chain %s, which has an open session: %w", chainID, err)
	}
	status := described.GetWorkflowExecutionInfo().GetStatus()
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED:
		return "", nil
	default:
		return "its chain ended without closing it: " + strings.ToLower(status.String()), nil
	}
}
