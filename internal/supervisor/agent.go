package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/apiproxy"
	"github.com/claudeops/claudeops/internal/claude"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/redact"
)

// agent runs tiers with the claude CLI. It translates between the words of the domain
// and those of the driver.
type agent struct {
	cli      *claude.CLI
	keys     apiKeys
	settings config.Claude
	// conversations is where the transcripts are.
	conversations conversations
	logger        *slog.Logger
	// mask masks secrets in what the agent leaves.
	mask      *redact.Redactor
	sandboxes sandboxes
	guards    *guards
	// draining ends when the agents that still run are to be interrupted.
	draining context.Context
}

var _ activities.Agent = (*agent)(nil)

// Run implements activities.Agent.
func (a *agent) Run(
	ctx context.Context, order activities.AgentRun, observe func(activities.AgentProgress),
) (activities.AgentReport, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	unhook := context.AfterFunc(a.draining, func() { cancel(activities.ErrDraining) })
	defer unhook()
	// An earlier attempt's processes may have outlived their worker. Two agents must never
	// work on one conversation.
	if _, err := claude.EndSession(order.SessionID); err != nil {
		return notStarted(err)
	}
	run, err := a.place(order)
	if err != nil {
		return notStarted(err)
	}
	found, end, err := a.open(ctx, run)
	if err != nil {
		return notStarted(err)
	}
	report, err := a.start(ctx, run, end, observe)
	if err == nil {
		return report, nil
	}
	report.Error = err.Error()
	if errors.Is(context.Cause(ctx), activities.ErrDraining) {
		report.Status = escalation.SessionStopped
		return report, activities.ErrDraining
	}
	failure, ok := errors.AsType[*claude.Error](err)
	if !ok {
		report.Status = escalation.SessionFailed
		return report, err
	}
	report.Status = statusOf(failure.Kind, run.Resume != "")
	if report.Status == escalation.SessionResumeFailed && !found {
		report.Status = escalation.SessionTranscriptLost
		report.Error += "; it is neither on this host nor in the archive"
	}
	if failure.Retryable() {
		return report, err
	}
	return report, nil
}

// start runs the CLI for a run that is placed and whose conversation is open, and clears up. If the guard was not asked,
// the session has failed.
func (a *agent) start(
	ctx context.Context, run activities.AgentRun, end func(), observe func(activities.AgentProgress),
) (activities.AgentReport, error) {
	desk := a.desk(run)
	key := a.keys.open(run)
	invocation := a.invocation(run, desk)
	invocation.API = key.endpoint()
	without, free := a.confine(&invocation, run, desk)
	watch, err := a.guards.open(run, &invocation, askedFiles(run, desk))
	var result claude.Result
	if err == nil {
		result, err = a.cli.Run(ctx, invocation, func(p claude.Progress) { observe(progressOf(p, key.count())) })
	}
	count := key.end() // before anything else: what the agent has left behind asks no model
	unguarded := watch.close(ctx, result.Made, endedByItself(err))
	end()
	free()
	report := a.report(run, result, count)
	report.Sandbox = a.sandboxOf(result, without)
	report.Handoff = a.clear(desk, run)
	switch {
	case unguarded != nil:
		report.Status, report.Error = escalation.SessionFailed, unguarded.Error()
		err = nil // whatever else there was, another attempt would do no better
	case err == nil:
		report.Status = escalation.SessionCompleted
	}
	return report, explained(err, count)
}

// endedByItself reports whether the CLI has come to an end of its agent's work, with or without a verdict.
func endedByItself(err error) bool {
	failure, ok := errors.AsType[*claude.Error](err)
	if !ok {
		return err == nil
	}
	ends := []claude.ErrorKind{claude.KindNoStructuredOutput, claude.KindSchemaNotMet, claude.KindMaxTurns, claude.KindBudget}
	return slices.Contains(ends, failure.Kind)
}

// report says what a run came to, and warns of what it has left behind.
func (a *agent) report(run activities.AgentRun, result claude.Result, count apiproxy.Count) activities.AgentReport {
	report := reportOf(result)
	a.settleCost(&report, run, count)
	if report.Survivors > 0 {
		a.logger.Warn("processes of an agent could not be ended and may still be at work: look for them by their environment",
			"session_id", run.SessionID, "processes", report.Survivors, "variable", claude.SessionVariable)
	}
	return report
}

// confine adds the sandbox to an invocation, or returns why it gets none, and gives it a directory for temporary files,
// which the function that it returns removes.
func (a *agent) confine(invocation *claude.Invocation, run activities.AgentRun, desk *desk) (without string, free func()) {
	free = func() {}
	var own []string
	for _, directory := range resolved(run.Directory) {
		if desk != nil {
			own = append(own, filepath.Join(directory, activities.ChainsDir, desk.name))
		}
	}
	invocation.Sandbox, without = a.sandboxes.of(run, own)
	temporary, err := newTempDir(a.settings.Account)
	if err != nil {
		a.logger.Warn("the agent gets no directory for temporary files", "session_id", run.SessionID, "error", err)
		return without, free
	}
	if invocation.Sandbox != nil {
		invocation.Sandbox.Writable = append(invocation.Sandbox.Writable, temporary)
	}
	invocation.Env["TMPDIR"], invocation.Env["CLAUDE_CODE_TMPDIR"] = temporary, temporary
	return without, func() {
		if err := os.RemoveAll(temporary); err != nil {
			a.logger.Warn("an agent's temporary files could not be removed", "session_id", run.SessionID, "error", err)
		}
	}
}

// sandboxOf says for the records what the kernel kept an agent from.
func (a *agent) sandboxOf(result claude.Result, without string) string {
	text := cmp.Or(result.Sandbox, without)
	if text != "" && a.settings.AgentUser != "" {
		text += ", as user " + a.settings.AgentUser
	}
	return text
}

// notStarted is the end of a run that may begin better later.
func notStarted(err error) (activities.AgentReport, error) {
	return activities.AgentReport{Report: escalation.Report{Status: escalation.SessionFailed, Error: err.Error()}}, err
}

// place returns run with the directory that it works in. A chain names it, and this host's own
// configuration says whether it may: another worker may have what this one lacks.
func (a *agent) place(run activities.AgentRun) (activities.AgentRun, error) {
	if run.Directory == "" {
		run.Directory = a.settings.WorkDir
	} else if !slices.Contains(a.settings.Repositories, run.Directory) {
		return run, fmt.Errorf("%s is not in %sREPOSITORIES of this worker", run.Directory, config.Prefix)
	}
	return run, nil
}

// open gets the conversation that the run starts from, reports whether there is one, and
// begins to archive the one that the run writes, until end is called.
//
// A conversation that is not found is not the end: the CLI looks in more places.
func (a *agent) open(ctx context.Context, run activities.AgentRun) (found bool, end func(), err error) {
	own, err := a.conversations.copyOf(run.Directory, run.SessionID)
	if err != nil {
		return false, nil, err
	}
	origin := own
	if run.Resume != "" && run.Resume != run.SessionID {
		if origin, err = a.conversations.copyOf(run.Directory, run.Resume); err != nil {
			return false, nil, err
		}
	}
	if run.Resume != "" {
		found, err = a.conversations.restore(ctx, run.Resume, origin)
	}
	if err != nil && ctx.Err() == nil { // else the run ends before it begins, with the right status
		return false, nil, err
	}
	endSaving := a.conversations.keep(ctx, run.SessionID, own)
	return found, func() {
		limit := lastSaveLimit
		if a.draining.Err() != nil {
			limit = drainSaveLimit
		}
		endSaving(limit)
	}, nil
}

// HasConversation implements activities.Agent. A conversation that is in the archive only is
// on this host afterwards.
func (a *agent) HasConversation(ctx context.Context, directory, sessionID string) (bool, error) {
	run, err := a.place(activities.AgentRun{Directory: directory})
	if err != nil {
		return false, err
	}
	local, err := a.conversations.copyOf(run.Directory, sessionID)
	if err != nil {
		return false, err
	}
	if _, err := a.conversations.restore(ctx, sessionID, local); err != nil && ctx.Err() == nil {
		return false, err
	}
	return a.cli.HasTranscript(run.Directory, sessionID)
}

// desk sets up the directory of the run's chain; nil if that cannot be done. Looking and repairing
// go well without one, in a working directory that is read-only for example.
func (a *agent) desk(run activities.AgentRun) *desk {
	var desk *desk
	err := a.cli.AsUser(func() (err error) {
		desk, err = openDesk(run.Directory, run.ChainID, run.Cooldowns)
		return err
	})
	if err != nil {
		a.logger.Warn("the agent gets no file of cooldowns", "chain_id", run.ChainID, "session_id", run.SessionID, "error", err)
		return nil
	}
	return desk
}

// clear takes what the agent was asked to leave, and removes the rest.
func (a *agent) clear(desk *desk, run activities.AgentRun) (left activities.LeftFile) {
	if desk == nil {
		left.Problem = "there was no directory to leave it in"
		return left
	}
	err := a.cli.AsUser(func() error {
		if run.LeavesHandoff {
			left = desk.take(activities.HandoffFile, escalation.MaxHandoffBytes)
			left.Content, left.Problem = a.mask.JSON(left.Content), a.mask.Text(left.Problem)
		}
		return desk.close()
	})
	if err != nil {
		a.logger.Warn("the chain's directory could not be removed", "chain_id", run.ChainID, "error", err)
	}
	return left
}

func (a *agent) invocation(run activities.AgentRun, desk *desk) claude.Invocation {
	// With the driver's own variable, what the agent starts can tell which chain and session it belongs to.
	env := map[string]string{
		"CLAUDEOPS_CHAIN_ID": run.ChainID,
		"CLAUDEOPS_TIER":     fmt.Sprint(int(run.Tier)),
	}
	if desk != nil {
		env["CLAUDEOPS_CHAIN_DIR"] = desk.path
	}
	return claude.Invocation{
		SessionID:       run.SessionID,
		Resume:          run.Resume,
		Prompt:          run.Prompt,
		Model:           run.Policy.Model,
		SystemPrompt:    a.settings.Environment,
		Schema:          run.Schema,
		Tools:           run.Policy.Tools,
		AllowedTools:    run.Policy.AllowedTools,
		DisallowedTools: run.Policy.DisallowedTools,
		MaxTurns:        run.Policy.MaxTurns,
		MaxBudgetUSD:    run.Policy.BudgetUSD,
		Limits: claude.Limits{
			Wall:      run.Policy.Timeout.Std(),
			FirstByte: a.settings.FirstByteTimeout,
			Idle:      a.settings.IdleTimeout,
			Grace:     a.settings.StopGrace,
		},
		Dir: run.Directory,
		Env: env,
	}
}

// statusOf says what a run that ended with a failure of that kind came to.
func statusOf(kind claude.ErrorKind, resumed bool) escalation.SessionStatus {
	switch kind {
	case claude.KindNoStructuredOutput, claude.KindSchemaNotMet:
		// The agent came to its end. That it gave no verdict is judged by the activity.
		return escalation.SessionCompleted
	case claude.KindNoConversation, claude.KindPromptTooLong:
		if resumed {
			return escalation.SessionResumeFailed
		}
		return escalation.SessionFailed
	case claude.KindTimedOut:
		return escalation.SessionTimedOut
	case claude.KindMaxTurns, claude.KindBudget:
		return escalation.SessionBudgetExhausted
	case claude.KindStopped:
		return escalation.SessionStopped
	case claude.KindInvalid, claude.KindUsage, claude.KindSessionInUse, claude.KindAuth, claude.KindRefused,
		claude.KindNotStarted, claude.KindUnavailable, claude.KindStalled, claude.KindMalformed, claude.KindFailed,
		claude.KindDiskFull, claude.KindOutputTooLong:
		return escalation.SessionFailed
	}
	return escalation.SessionFailed
}

func reportOf(result claude.Result) activities.AgentReport {
	report := activities.AgentReport{
		Report: escalation.Report{
			CostUSD:           result.CostUSD,
			CostEstimated:     result.CostEstimated,
			ReportedTotalUSD:  result.ReportedTotalUSD,
			Tokens:            escalation.TokenUsage(result.Tokens),
			ContextTokens:     result.ContextTokens,
			ContextWindow:     result.ContextWindow,
			Turns:             result.Turns,
			DurationMS:        result.Duration.Milliseconds(),
			ReportedSessionID: result.SessionID,
			CLIVersion:        result.CLIVersion,
			Containment:       string(result.Containment),
			Survivors:         result.Survivors,
		},
		Output: result.Structured,
	}
	report.InFlight = inFlightOf(result.InFlight)
	return report
}

func inFlightOf(calls []claude.ToolCall) []activities.ToolCall {
	var all []activities.ToolCall
	for i, call := range calls {
		all = append(all, activities.ToolCall{
			Number: i + 1, Name: call.Tool, Input: string(call.Input), State: activities.ToolRunning,
		})
	}
	return all
}

// progressOf takes the proxy's count where there is one: it holds calls that the CLI does not tell of.
func progressOf(p claude.Progress, count apiproxy.Count) activities.AgentProgress {
	progress := activities.AgentProgress{
		PID:      p.PID,
		Turns:    p.Turns,
		Tokens:   escalation.TokenUsage(p.Tokens),
		CostUSD:  p.CostUSD,
		InFlight: inFlightOf(p.InFlight),
	}
	if count.Calls > 0 {
		progress.CostUSD = count.CostUSD
	}
	for _, call := range p.Recent {
		progress.Tools = append(progress.Tools, activities.ToolCall{
			Number: call.Sequence, Name: call.Tool, Input: call.Preview, State: toolState(call.Status),
		})
	}
	return progress
}

func toolState(status claude.ToolStatus) activities.ToolState {
	switch status {
	case claude.ToolRunning:
		return activities.ToolRunning
	case claude.ToolDone:
		return activities.ToolDone
	case claude.ToolFailed:
		return activities.ToolFailed
	}
	return activities.ToolRunning
}
