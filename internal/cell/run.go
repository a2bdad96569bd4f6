package cell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/cell/proxy"
)

// run is one run of an agent.
type run struct {
	*Host
	Spec

	result Result
	// excess and unguarded are the reasons to fail the run, whatever the CLI says.
	excess    *StorageError
	unguarded error
	// count is what the proxy has counted, at the end.
	count proxy.Count
}

// Run runs an agent until it ends, and frees everything that only its session had. Earlier attempts at the session must
// have ended (see claude.EndSession and Reclaim).
//
// If the error is nil, the agent has finished, with its verdict if Spec.Schema asks for one. Otherwise the error is
//   - a *StorageError if the session was ended because it stored too much,
//   - ErrUnguarded if the CLI made calls without asking the guard,
//   - a *claude.Error if the CLI has failed, was stopped or reached a limit of Spec: its Kind says which, or
//   - any other error if the agent was not started. Another attempt can succeed.
func (h *Host) Run(ctx context.Context, spec Spec) (Result, error) {
	if spec.Supervisor == nil {
		spec.Supervisor = nobody{}
	}
	spec.Policy = cmp.Or(spec.Policy, h.guards.policy)
	r := &run{Host: h, Spec: spec}
	err := r.session(ctx)
	r.settleCost(ctx)
	if model := r.result.UnlistedModel; model != "" { // the proxy counts with the same guess
		r.result.CostEstimated = true
		if _, logged := r.guessed.LoadOrStore(model, true); !logged {
			r.logger.WarnContext(ctx, "the price of a model is not known: costs with it are guesses, and so are "+
				"budgets",
				"session_id", r.SessionID, "model", model)
		}
	}
	if r.result.Survivors > 0 {
		r.logger.WarnContext(ctx, "processes of an agent could not be ended and may still be at work: look for them "+
			"by their environment",
			"session_id", r.SessionID, "processes", r.result.Survivors, "variable", claude.SessionVariable)
	}
	switch {
	case r.excess != nil:
		return r.result, r.excess
	case r.unguarded != nil:
		return r.result, r.unguarded
	}
	return r.result, explained(err, r.count)
}

// session opens what only this session has, and runs the CLI with it. All of it is closed in the reverse order: the key
// is revoked first, so that processes left behind by the agent can no longer call the model.
func (r *run) session(ctx context.Context) (err error) {
	own, err := r.privates.open(ctx, r.SessionID)
	if err != nil {
		return err
	}
	defer r.free(ctx, own)
	taken, err := r.conversations.place(own, r.Spec)
	if err != nil {
		return err
	}
	endSaving, err := r.conversations.keep(ctx, taken)
	if err != nil {
		return err
	}
	defer func() { r.result.Unarchived = !endSaving(r.saveLimit()) }()
	opened := r.openWorkspace(ctx)
	defer r.closeWorkspace(ctx, opened)
	invocation := r.invocation(own, opened)
	without := r.confine(&invocation, own, opened)
	watch, err := r.guards.open(ctx, r.Spec, &invocation, opened.asked())
	if err != nil {
		return err
	}
	defer func() {
		r.unguarded = watch.close(ctx, r.result.Made, endedByItself(err))
		r.result.Refused = r.masked(watch.audit.refused)
	}()
	limited, stopWatching := r.watchUsage(ctx, own, opened)
	defer func() {
		stopWatching()
		r.excess, _ = errors.AsType[*StorageError](context.Cause(limited))
	}()
	key := r.keys.open(r.Spec)
	defer func() { r.count = key.end() }()
	invocation.API = key.endpoint()
	if r.LatePrompt != nil {
		if invocation.Prompt, err = r.LatePrompt(ctx, own.temporary.path); err != nil {
			return err
		}
	}
	mended := r.modes.watch(ctx, r.SessionID)
	defer mended()
	r.result.Result, err = r.cli.Run(limited, invocation, func(p claude.Progress) {
		if count := key.count(); count.Calls > 0 { // it includes calls that the CLI does not report
			p.CostUSD = count.CostUSD
		}
		r.Supervisor.Progress(p)
	})
	r.describeSandbox(without)
	return err
}

// masked returns decisions with the secrets in their texts masked. The Supervisor got the texts as they are.
func (h *Host) masked(entries []Entry) []Entry {
	all := slices.Clone(entries)
	for i := range all {
		decision := &all[i].Decision
		all[i].Input = h.mask.JSON(all[i].Input)
		decision.Rule, decision.Reason = h.mask.Text(decision.Rule), h.mask.Text(decision.Reason)
		decision.AtRun, decision.Actions = h.mask.Text(decision.AtRun), slices.Clone(decision.Actions)
		for j, action := range decision.Actions {
			decision.Actions[j].Service = h.mask.Text(action.Service)
		}
	}
	return all
}

// invocation converts the spec to the input of the driver.
func (r *run) invocation(own *private, opened *workspace) claude.Invocation {
	env := maps.Clone(r.Env)
	if env == nil {
		env = map[string]string{}
	}
	if opened != nil && r.Workspace.Variable != "" {
		env[r.Workspace.Variable] = opened.path
	}
	maps.Copy(env, own.variables())
	limits := r.limits
	limits.Wall = r.Timeout
	return claude.Invocation{
		SessionID: r.SessionID, Resume: r.Resume, Prompt: r.Prompt, Model: r.Model, SystemPrompt: r.SystemPrompt,
		Schema: r.Schema, TextField: r.TextField, Tools: r.Tools, AllowedTools: r.AllowedTools,
		MaxTurns: r.MaxTurns, MaxBudgetUSD: r.BudgetUSD, Limits: limits, Dir: r.Dir, Env: env,
		GitSettings: r.GitSettings,
	}
}

// confine gives the invocation a sandbox with the session's own directories. If the session gets no sandbox, confine
// returns the reason (without).
func (r *run) confine(invocation *claude.Invocation, own *private, opened *workspace) (without string) {
	var workspaces []string
	if opened != nil {
		for _, dir := range resolved(r.Dir) {
			workspaces = append(workspaces, filepath.Join(dir, r.Workspace.Parent, r.Workspace.Name))
		}
	}
	invocation.Sandbox, without = r.sandboxes.of(r.Tier, r.Dir, workspaces)
	if sandbox := invocation.Sandbox; sandbox != nil {
		own.grant(sandbox)
		sandbox.Readable = append(sandbox.Readable, resolved(r.Readable...)...)
		sandbox.Writable = append(sandbox.Writable, resolved(r.Writable...)...)
	}
	return without
}

// describeSandbox describes what held the agent. If there was no sandbox, the description has the reason that the
// caller gives.
func (r *run) describeSandbox(without string) {
	text := cmp.Or(r.result.Sandbox, without)
	if text == "" { // the CLI was not started
		return
	}
	user := r.driver.User
	if user != nil {
		text += ", as user " + user.Name
	}
	r.result.Level = levelOf(r.result.Confined, user != nil)
	r.result.Sandbox = fmt.Sprintf("%s: %s", r.result.Level, text)
}

// endedByItself reports whether the CLI ended without being stopped. In that case the agent had finished, or had used
// up the limits of its session.
func endedByItself(err error) bool {
	failure, ok := errors.AsType[*claude.Error](err)
	if !ok {
		return err == nil
	}
	ends := []claude.ErrorKind{
		claude.KindNoStructuredOutput, claude.KindSchemaNotMet, claude.KindMaxTurns,
		claude.KindBudget,
	}
	return slices.Contains(ends, failure.Kind)
}

// saveLimit limits the time for the last save of a conversation.
func (h *Host) saveLimit() time.Duration {
	if h.stopping != nil && h.stopping.Err() != nil {
		return HurriedSave
	}
	return lastSaveLimit
}

// free removes the directories of a session.
func (h *Host) free(ctx context.Context, own *private) {
	if err := own.close(); err != nil {
		h.logger.WarnContext(ctx, "a session's directories could not be removed", "session_id", own.id, "error", err)
	}
}

// nobody is the Supervisor of a run that has none.
type nobody struct{}

var _ Supervisor = nobody{}

// Progress implements Supervisor.
func (nobody) Progress(claude.Progress) {}

// Decided implements Supervisor.
func (nobody) Decided(context.Context, []Entry) error { return nil }

// Charge implements Supervisor.
func (nobody) Charge(context.Context, string, []guard.Action) (refusal string, err error) {
	return "", nil
}

// Return implements Supervisor.
func (nobody) Return(context.Context, string) error { return nil }
