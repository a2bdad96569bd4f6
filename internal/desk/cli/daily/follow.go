package daily

import (
	"context"
	"fmt"
	"io"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
)

// follow prints the progress of a chain until the chain has ended, and returns the chain. It does not wait for slow
// notifications. If ctx ends first, follow says that the chain continues, and returns the error of ctx.
func (a *app) follow(ctx context.Context, id string) (escalation.Chain, error) {
	chain, err := a.Operations.Chains.Follow(ctx, id, NewPrinter(a.Console))
	if err != nil && ctx.Err() != nil {
		a.sayGoesOn(id)
	}
	return chain, err
}

// sayGoesOn tells a person who stops watching that the chain continues.
func (a *app) sayGoesOn(id string) {
	a.Say("Chain %s goes on. See it with: %s; end it with: %s",
		console.PrintableID(id), console.LookCommand(id), console.EndCommand(id))
}

// printEnded returns err if it is not nil. If it is nil, printEnded prints the ended chain, with the number of its
// calls if this host has the records: heartbeats do not show the last ones. It returns the error for the chain's
// outcome (see errorOf).
func (a *app) printEnded(ctx context.Context, chain escalation.Chain, err error) error {
	if err != nil {
		return err
	}
	ended := operations.Snapshot{Chain: chain}
	if now, err := a.Operations.Chains.Get(ctx, chain.ID); err == nil && a.Output == console.Text {
		ended.Calls = now.Calls
	}
	if err := a.Print(chain, func(w io.Writer) { writeSnapshot(w, a.Clock, ended, deniedCalls) }); err != nil {
		return err
	}
	return errorOf(chain)
}

// errorOf returns an error with the exit code for the chain's outcome; nil if the exit code is 0.
func errorOf(chain escalation.Chain) error {
	failure := func(code program.ExitCode) error {
		reason := console.Printable(chain.Reason, 1_000)
		return program.WithCode(code, fmt.Errorf("chain %s ended (%s): %s", chain.ID,
			escalation.InWords(chain.Outcome), reason))
	}
	switch chain.Outcome {
	case escalation.OutcomeHealthy, escalation.OutcomeResolved, escalation.OutcomeApproved, escalation.OutcomeKnown,
		escalation.OutcomeOverridden:
		return nil
	case escalation.OutcomeNeedsHuman, escalation.OutcomeSuppressed, escalation.OutcomeAborted:
		return failure(console.ExitNeedsPerson)
	case escalation.OutcomeFailed:
		return failure(console.ExitChainFailed)
	}
	return failure(console.ExitChainFailed)
}
