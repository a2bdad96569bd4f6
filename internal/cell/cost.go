package cell

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/proxy"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// The worker warns if the difference between the CLI's cost and the proxy's count exceeds both tolerances.
// costTolerance is a share of the higher figure, and allows for calls that were broken off and repeated.
// costToleranceUSD avoids warnings about cheap sessions.
const (
	costTolerance    = 0.05
	costToleranceUSD = 0.01
)

// settleCost sets the cost of the result from the CLI's cost and the proxy's count. If the CLI's cost is an estimate,
// the proxy's count replaces it. Otherwise the result depends on whether the prices of the CLI's version were measured.
// If they were measured, the higher figure counts. The CLI's cost can be too low, because the CLI omits calls made by
// its commands, and some versions omit a last call. If the prices were not measured, the CLI's cost counts, because the
// proxy's count also depends on these prices.
func (r *run) settleCost(ctx context.Context) {
	result, count := &r.result, r.count
	if count.Calls == 0 && count.Partial == 0 {
		return
	}
	if result.CostEstimated {
		result.CostUSD, result.CostEstimated = count.CostUSD, count.Partial > 0
		return
	}
	reported, measured := result.CostUSD, r.cli.Warning() == ""
	if measured {
		result.CostUSD = max(reported, count.CostUSD)
	}
	if math.Abs(reported-count.CostUSD) > max(costToleranceUSD, costTolerance*max(reported, count.CostUSD)) {
		r.logger.WarnContext(ctx, "the CLI reports another cost than its calls come to: compare both with the bill",
			"session_id", r.SessionID, "cli_version", result.CLIVersion, "reported_usd", reported, "counted_usd",
			count.CostUSD,
			"recorded_usd", result.CostUSD, "calls", count.Calls, "cut_short", count.Partial)
	}
}

// maxProxyReason limits the words of the proxy in an error, in characters, because they can quote a request.
const maxProxyReason = 200

// explained completes the error of a run with a fact from the proxy: the budget or a limit of the account is used up,
// the proxy itself has refused the call, or the API cannot be reached.
func explained(err error, count proxy.Count) error {
	failure, ok := errors.AsType[*claude.Error](err)
	if !ok {
		return err
	}
	said := *failure
	switch {
	case said.Kind == claude.KindRequest && count.OverBudget > 0:
		said.Kind = claude.KindBudget
	case said.Kind == claude.KindAuth && count.Refused != "": // the key is good
		said.Kind = claude.KindRequest
		said.Message = fmt.Sprintf("the worker's proxy does not pass on what the CLI asks (%s): use a version of the "+
			"CLI that "+
			"`claudeops doctor` knows", plaintext.Cut(count.Refused, maxProxyReason))
	// of an account for which the CLI prints no event
	case said.Kind == claude.KindUnavailable && !count.LimitedUntil.IsZero():
		said.Kind, said.Until, said.LimitKind = claude.KindLimited, count.LimitedUntil, count.LimitKind
	case said.Kind == claude.KindUnavailable && count.Unreachable != "":
		said.Message += "; " + count.Unreachable
	}
	return &said
}
