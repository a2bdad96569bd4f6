package cell

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/cell/claude"
)

// ErrUnguarded is the error of a session whose CLI did not ask the guard about the calls.
var ErrUnguarded = errors.New("the guard was not asked about the agent's calls")

// callAudit tells the supervisor the decisions on the calls of a session. It compares these decisions with the calls
// that the CLI made.
type callAudit struct {
	supervisor Supervisor
	logger     *slog.Logger
	// executable is the program that the CLI starts to ask the guard.
	executable string
	// session is a context with the attributes for log lines. It does not end when the session ends.
	session context.Context

	mutex sync.Mutex
	// pending holds the decisions that the supervisor does not have yet, and refused the first that are against the
	// agent.
	pending, refused []Entry
	// known holds the ids of the calls that the guard has decided.
	known map[string]bool
}

// auditLimit limits the time for which an agent waits until its call is recorded. If that takes longer, the decision is
// recorded together with a later decision.
const auditLimit = 5 * time.Second

// record tells the supervisor a decision before the agent gets the answer.
func (a *callAudit) record(entry Entry) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if entry.Decision.Rule != RuleUnasked {
		a.known[entry.Call] = true
	}
	a.pending = append(a.pending, entry)
	if !entry.Decision.Allowed && len(a.refused) < MaxRefused {
		a.refused = append(a.refused, entry)
	}
	ctx, cancel := context.WithTimeout(a.session, auditLimit)
	defer cancel()
	a.write(ctx)
}

// flush tells the pending decisions.
func (a *callAudit) flush(ctx context.Context) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.write(ctx)
}

// write tells the pending decisions. If that fails, they stay pending. The caller must hold the mutex.
func (a *callAudit) write(ctx context.Context) {
	if len(a.pending) == 0 {
		return
	}
	if err := a.supervisor.Decided(ctx, a.pending); err != nil {
		a.logger.WarnContext(ctx, "decisions on an agent's calls are not in the records yet",
			"session_id", a.pending[0].Session, "decisions", len(a.pending), "error", err)
		return
	}
	a.pending = nil
}

// check compares the calls that the CLI made with the decisions of the guard. It returns ErrUnguarded if a call
// succeeded without a decision, except for the tools in unasked. It also returns ErrUnguarded if three conditions hold:
// the guard made no decision, the CLI reports failed calls, and the CLI was not stopped (byItself).
func (a *callAudit) check(made []claude.MadeCall, byItself bool) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	refused := 0
	for _, call := range made {
		switch {
		case a.known[call.ID] || slices.Contains(unasked, call.Tool):
		case !call.Failed:
			if hint := hooksOff(); hint != "" {
				return fmt.Errorf("%w: the CLI made its call %s of %s on its own, %s", ErrUnguarded, call.ID,
					call.Tool, hint)
			}
			return fmt.Errorf("%w: the CLI made its call %s of %s on its own; do not trust this version, and look at "+
				"what the session did",
				ErrUnguarded, call.ID, call.Tool)
		default: // refused by the CLI itself, for example because of a wrong input
			refused++
		}
	}
	if refused > 0 && len(a.known) == 0 && byItself {
		if hint := hooksOff(); hint != "" {
			return fmt.Errorf("%w: it got none of them, and they were refused (%d), %s", ErrUnguarded, refused, hint)
		}
		return fmt.Errorf("%w: it got none of them, and they were refused (%d); see that agents can run %s, and that "+
			"no managed settings "+
			"of your organization switch off hooks", ErrUnguarded, refused, a.executable)
	}
	return nil
}

// hooksOff says which managed settings keep the CLI from asking the guard, and what to do; "" if none is seen.
func hooksOff() string {
	file, key := claude.HooksOff(claude.ManagedSettings)
	if file == "" {
		return ""
	}
	return fmt.Sprintf("because the managed settings %s switch off its hooks (%s): remove that there", file, key)
}

// unasked lists the tools for which the CLI need not ask the guard. These tools have no effect outside of the
// conversation.
var unasked = []string{"StructuredOutput", "TodoWrite"}
