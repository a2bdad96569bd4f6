package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/apiproxy"
	"github.com/claudeops/claudeops/internal/claude"
	"github.com/claudeops/claudeops/internal/escalation"
)

// notStarted returns the report and the error of a run whose CLI was not started. Another attempt can succeed.
func notStarted(err error) (activities.AgentReport, error) {
	return activities.AgentReport{Report: escalation.Report{Status: escalation.SessionFailed, Error: err.Error()}}, err
}

// report converts the result of a run and sets its cost. It warns if the agent has left processes behind.
func (r *Runner) report(ctx context.Context, run activities.AgentRun, result claude.Result, count apiproxy.Count) activities.AgentReport {
	report := reportOf(result)
	r.settleCost(ctx, &report, run, count)
	if report.Survivors > 0 {
		r.logger.WarnContext(ctx, "processes of an agent could not be ended and may still be at work: look for them by their environment",
			"session_id", run.SessionID, "processes", report.Survivors, "variable", claude.SessionVariable)
	}
	return report
}

// describeSandbox describes the agent's level and sandbox for the records. If there was no sandbox, the description has
// the reason that the caller gives.
func (r *Runner) describeSandbox(result claude.Result, without string) string {
	text := cmp.Or(result.Sandbox, without)
	if text == "" { // the CLI was not started
		return ""
	}
	if r.settings.HasAgentUser() {
		text += ", as user " + r.settings.AgentUser
	}
	return fmt.Sprintf("%s: %s", levelOf(result.Confined, r.settings.Account != nil), text)
}

// endedByItself reports whether the CLI ended without being stopped. In that case the agent had finished, or had used
// up the limits of its session.
func endedByItself(err error) bool {
	failure, ok := errors.AsType[*claude.Error](err)
	if !ok {
		return err == nil
	}
	ends := []claude.ErrorKind{claude.KindNoStructuredOutput, claude.KindSchemaNotMet, claude.KindMaxTurns, claude.KindBudget}
	return slices.Contains(ends, failure.Kind)
}

// statusOf returns the status of a session whose CLI failed with an error of this kind. If the session resumed a
// conversation, resumed is true.
func statusOf(kind claude.ErrorKind, resumed bool) escalation.SessionStatus {
	switch kind {
	case claude.KindNoStructuredOutput, claude.KindSchemaNotMet:
		// The agent has finished without a verdict. The activity handles the missing verdict.
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

// causeOf returns the cause that people can do something about, for an error of this kind; empty if there is none.
func causeOf(kind claude.ErrorKind) escalation.TalkCause {
	switch kind { //nolint:exhaustive // the other kinds have a status of their own
	case claude.KindAuth:
		return escalation.TalkCauseLogin
	case claude.KindUnavailable, claude.KindStalled, claude.KindRefused:
		return escalation.TalkCauseProvider
	default:
		return escalation.TalkCauseUnknown
	}
}

// providerError is an error that is also activities.ErrProvider.
type providerError struct{ error }

// Is implements the interface of errors.Is.
func (providerError) Is(target error) bool { return target == activities.ErrProvider }

// Unwrap implements the interface of errors.Unwrap.
func (e providerError) Unwrap() error { return e.error }

// withCause marks err if the model's provider does not answer.
func withCause(err error, cause escalation.TalkCause) error {
	if cause == escalation.TalkCauseProvider {
		return providerError{err}
	}
	return err
}

// join returns the texts that are not empty, with an empty line between them.
func join(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "\n\n")
}

// reportOf converts the driver's result to a report.
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

// inFlightOf converts the tool calls that have no result.
func inFlightOf(calls []claude.ToolCall) []activities.ToolCall {
	var all []activities.ToolCall
	for i, call := range calls {
		all = append(all, activities.ToolCall{
			Number: i + 1, Name: call.Tool, Input: string(call.Input), State: activities.ToolRunning,
		})
	}
	return all
}

// progressOf converts the driver's progress. If the proxy has counted calls, progressOf takes the cost from this count,
// because the count includes calls that the CLI does not report.
func progressOf(p claude.Progress, count apiproxy.Count) activities.AgentProgress {
	progress := activities.AgentProgress{
		PID:      p.PID,
		Turns:    p.Turns,
		Tokens:   escalation.TokenUsage(p.Tokens),
		CostUSD:  p.CostUSD,
		Text:     p.Text,
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
