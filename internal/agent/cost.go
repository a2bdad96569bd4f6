package agent

import (
	"errors"
	"math"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/apiproxy"
	"github.com/claudeops/claudeops/internal/claude"
)

// The CLI's figure and the proxy's count may differ by so much before the worker warns: the share covers calls that were
// broken off and repeated, the amount keeps cheap sessions quiet.
const (
	costTolerance    = 0.05
	costToleranceUSD = 0.01
)

// settleCost puts the proxy's count into a report that lacks the CLI's own figure. Otherwise it takes the higher of the
// two, because the CLI leaves out calls of its commands, and some versions leave out a last call. The CLI's figure always
// counts where the prices of its version were not measured.
func (r *Runner) settleCost(report *activities.AgentReport, run activities.AgentRun, count apiproxy.Count) {
	if count.Calls == 0 && count.Partial == 0 {
		return
	}
	if report.CostEstimated {
		report.CostUSD, report.CostEstimated = count.CostUSD, count.Partial > 0
		return
	}
	reported, measured := report.CostUSD, r.cli.Warning() == ""
	if measured {
		report.CostUSD = max(reported, count.CostUSD)
	}
	if math.Abs(reported-count.CostUSD) > max(costToleranceUSD, costTolerance*max(reported, count.CostUSD)) {
		r.logger.Warn("the CLI reports another cost than its calls come to: compare both with the bill",
			"session_id", run.SessionID, "cli_version", report.CLIVersion, "reported_usd", reported, "counted_usd", count.CostUSD,
			"recorded_usd", report.CostUSD, "calls", count.Calls, "cut_short", count.Partial)
	}
}

// explained returns the failure of a run with what only the proxy knows: that the budget is used up, or why the API cannot
// be reached.
func explained(err error, count apiproxy.Count) error {
	failure, ok := errors.AsType[*claude.Error](err)
	if !ok {
		return err
	}
	said := *failure
	switch {
	case said.Kind == claude.KindRefused && count.OverBudget > 0:
		said.Kind = claude.KindBudget
	case said.Kind == claude.KindUnavailable && count.Unreachable != "":
		said.Message += "; " + count.Unreachable
	}
	return &said
}
