package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/claude"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/guard"
	"github.com/claudeops/claudeops/internal/hook"
)

// guards make the CLI ask before every call of an agent, and answer by the policy.
type guards struct {
	policy  *guard.Policy
	cfg     config.Config
	environ []string
	// executable is this program, which the CLI starts to ask.
	executable string
	// sockets is the directory in which sessions have their sockets.
	sockets string
	// doors are ports of this host's supervisor that no setting names.
	doors   []guard.Door
	records guardRecords
	logger  *slog.Logger
}

// guardRecords is where decisions are kept, and where repairs are counted.
type guardRecords interface {
	AppendDecisions(ctx context.Context, decisions []escalation.CallDecision) error
	Charge(ctx context.Context, charge escalation.Charge) (*escalation.ChargeRefusal, error)
	ReturnCharge(ctx context.Context, sessionID, call string) error
}

// newGuards makes the directory of the sockets, which close removes.
func newGuards(cfg config.Config, policy *guard.Policy, env Environment, records guardRecords) (*guards, error) {
	executable := env.Executable
	if executable == "" {
		var err error
		if executable, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find this program, which guards the agents' calls: %w", err)
		}
	}
	if account := cfg.Claude.Account; account != nil {
		if err := claude.MayRun(ClaudeOptions(cfg.Claude, env.Environ).User, executable); err != nil {
			return nil, fmt.Errorf("%sAGENT_USER=%s cannot be guarded: the worker's program asks about its calls, and that user cannot "+
				"%w; put it where every user may run it, such as /usr/local/bin", config.Prefix, account.Name, err)
		}
	}
	// A path below the state directory would be too long for a socket.
	sockets, err := os.MkdirTemp("", "claudeops-guard-")
	if err != nil {
		return nil, fmt.Errorf("make the directory of the guard's sockets: %w", err)
	}
	if err := passThrough(sockets); err != nil {
		return nil, errors.Join(err, os.Remove(sockets))
	}
	return &guards{
		policy: policy, cfg: cfg, environ: env.Environ, executable: executable, sockets: sockets, records: records,
		logger: env.Logger,
	}, nil
}

// passThrough lets every user pass through a directory, because agents may run as another, and nobody else read it.
func passThrough(dir string) error { return os.Chmod(dir, 0o711) } //nolint:gosec // see above

// close removes the directory of the sockets.
func (g *guards) close() error { return os.RemoveAll(g.sockets) }

// watch answers for one session.
type watch struct {
	post   *hook.Post
	audit  *callAudit
	logger *slog.Logger
}

// open begins to answer for a run, and makes its invocation ask. asked are files that the agent is to write.
func (g *guards) open(run activities.AgentRun, invocation *claude.Invocation, asked []string) (*watch, error) {
	place, err := GuardPlace(g.cfg, g.environ, AgentPlace{
		Directory: run.Directory, Variables: invocation.Env, Doors: g.doors, Asked: asked,
	})
	if err != nil {
		return nil, err
	}
	place.Own = append(place.Own, bothNames([]string{g.sockets})...)
	tier := tierOf(run)
	audit := &callAudit{
		records: g.records, logger: g.logger, chainID: run.ChainID, executable: g.executable, known: map[string]bool{},
	}
	post, err := hook.Open(g.sockets, guard.New(g.policy, guard.Host{}), hook.Session{
		ID: run.SessionID, Tier: int(tier), Place: place, Narrowed: len(run.Policy.AllowedTools) > 0,
	}, charges{g.records, run}, audit.record)
	if err != nil {
		return nil, err
	}
	invocation.Guard = &claude.Guard{Settings: hook.Settings(), Env: post.Environment(g.executable)}
	return &watch{post, audit, g.logger}, nil
}

// tierOf is the tier whose permissions a run has.
func tierOf(run activities.AgentRun) escalation.Tier {
	if run.DryRun {
		return escalation.TierObserve
	}
	return run.Tier
}

// settleLimit bounds what is left to do for a session's guard after its end.
const settleLimit = 10 * time.Second

// close ends the answers and settles the accounts. It returns an error if calls were made that the guard knows nothing
// of, or if none of the calls got to it though the CLI has ended by itself.
func (w *watch) close(ctx context.Context, made []claude.MadeCall, byItself bool) error {
	if w == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleLimit)
	defer cancel()
	if err := w.post.Close(ctx); err != nil {
		w.logger.Warn("what an agent was booked for and did not do may still count as done", "error", err)
	}
	w.audit.flush(ctx)
	return w.audit.check(made, byItself)
}

// errUnguarded is the end of a session whose calls the guard did not decide on.
var errUnguarded = errors.New("the guard was not asked about the agent's calls")

// callAudit keeps the decisions on the calls of a session.
type callAudit struct {
	records guardRecords
	logger  *slog.Logger
	chainID string
	// executable is the program that asks.
	executable string

	mutex sync.Mutex
	// pending are not in the records yet.
	pending []escalation.CallDecision
	// known are the calls that were decided on.
	known map[string]bool
}

// auditLimit is how long an agent waits for its call to get into the records. If they are away the call is recorded with
// a later one.
const auditLimit = 5 * time.Second

// record keeps a decision, before the agent hears of it.
func (a *callAudit) record(entry hook.Entry) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if entry.Decision.Rule != hook.RuleUnasked {
		a.known[entry.Call] = true
	}
	a.pending = append(a.pending, escalation.CallDecision{
		ChainID: a.chainID, SessionID: entry.Session, Tier: escalation.Tier(entry.Tier), At: entry.At, Call: entry.Call,
		Tool: entry.Tool, Input: string(entry.Input), Allowed: entry.Decision.Allowed, Rule: entry.Decision.Rule,
		Reason: entry.Decision.Reason, Actions: actionsOf(entry.Decision.Actions),
	})
	ctx, cancel := context.WithTimeout(context.Background(), auditLimit)
	defer cancel()
	a.write(ctx)
}

// flush writes what is not in the records yet.
func (a *callAudit) flush(ctx context.Context) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.write(ctx)
}

// write writes pending decisions; the caller holds the mutex.
func (a *callAudit) write(ctx context.Context) {
	if len(a.pending) == 0 {
		return
	}
	if err := a.records.AppendDecisions(ctx, a.pending); err != nil {
		a.logger.Warn("decisions on an agent's calls are not in the records yet", "chain_id", a.chainID,
			"session_id", a.pending[0].SessionID, "decisions", len(a.pending), "error", err)
		return
	}
	a.pending = nil
}

// check holds the calls that the CLI tells of against those that the guard was asked about.
func (a *callAudit) check(made []claude.MadeCall, byItself bool) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	refused := 0
	for _, call := range made {
		switch {
		case a.known[call.ID] || slices.Contains(unasked, call.Tool):
		case !call.Failed:
			return fmt.Errorf("%w: the CLI made its call %s of %s on its own; do not trust this version, and look at what the session did",
				errUnguarded, call.ID, call.Tool)
		default: // refused by the CLI itself, for a wrong input for example
			refused++
		}
	}
	if refused > 0 && len(a.known) == 0 && byItself {
		return fmt.Errorf("%w: it got none of them, and they were refused (%d); see that agents can run %s",
			errUnguarded, refused, a.executable)
	}
	return nil
}

// unasked are tools that have no effect outside of the conversation.
var unasked = []string{"StructuredOutput", "TodoWrite"}

// charges books repairs of one run with the records.
type charges struct {
	records guardRecords
	run     activities.AgentRun
}

var _ hook.Ledger = charges{}

// Charge implements hook.Ledger.
func (c charges) Charge(ctx context.Context, call string, actions []guard.Action) (refusal string, err error) {
	refused, err := c.records.Charge(ctx, escalation.Charge{
		ChainID: c.run.ChainID, SessionID: c.run.SessionID, Call: call, At: time.Now(),
		Actions: actionsOf(actions), Cooldowns: c.run.Limits,
	})
	if err != nil || refused == nil {
		return "", err
	}
	return refused.Reason(), nil
}

// actionsOf translates what the guard found that a call does.
func actionsOf(found []guard.Action) []escalation.CallAction {
	var actions []escalation.CallAction
	for _, action := range found {
		actions = append(actions, escalation.CallAction{Kind: escalation.ActionKind(action.Kind), Service: action.Service})
	}
	return actions
}

// Return implements hook.Ledger.
func (c charges) Return(ctx context.Context, call string) error {
	return c.records.ReturnCharge(ctx, c.run.SessionID, call)
}

// askedFiles are the files that an agent is asked to leave at its desk, by all their names.
func askedFiles(run activities.AgentRun, desk *desk) []string {
	if desk == nil || !run.LeavesHandoff {
		return nil
	}
	return bothNames([]string{filepath.Join(desk.path, activities.HandoffFile)})
}
