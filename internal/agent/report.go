package agent

import (
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/escalation"
)

// notStarted returns the report and the error of a run whose CLI was not started. Another attempt can succeed.
func notStarted(err error) (activities.AgentReport, error) {
	return activities.AgentReport{Report: escalation.Report{Status: escalation.SessionFailed, Error: err.Error()}}, err
}

// judged completes the report of a session whose CLI has ended with a failure. The provider can refuse a request
// because of what is in the conversation. Before the first answer of a resumed session every refusal counts as one,
// whatever it says: a new conversation is the only way to find out.
func judged(report escalation.Report, failure *claude.Error, run activities.AgentRun) escalation.Report {
	resumed := run.Resume != ""
	report.Status, report.Error = escalation.SessionFailed, failure.Error()
	switch failure.Kind {
	case claude.KindNoStructuredOutput, claude.KindSchemaNotMet:
		// The agent has finished without a verdict. The activity handles the missing verdict.
		report.Status = escalation.SessionCompleted
	case claude.KindNoConversation, claude.KindPromptTooLong:
		report.Ending = escalation.EndingUnusable
	case claude.KindRequest:
		report.Ending = escalation.EndingRequest
		if resumed && !failure.Answered {
			report.Ending = escalation.EndingUnusable
		}
	case claude.KindRefused:
		report.Ending = escalation.EndingRefused
	case claude.KindAnswerTooLong:
		report.Ending = escalation.EndingTooLong
	case claude.KindLimited:
		report.Ending, report.LimitedUntil = escalation.EndingLimited, limitedUntil(failure.Until, time.Now())
		report.LimitedModel = claude.LimitedModel(failure.LimitKind, run.Policy.Model)
	case claude.KindAuth:
		report.Ending = escalation.EndingAccount
	case claude.KindUnavailable, claude.KindStalled:
		report.Ending = escalation.EndingProvider
		if time.Duration(report.DurationMS)*time.Millisecond >= run.Policy.Timeout.Std() && run.Policy.Timeout > 0 {
			report.Status = escalation.SessionTimedOut // it has waited for as long as it may
		}
	case claude.KindTimedOut:
		report.Status, report.Ending = escalation.SessionTimedOut, escalation.EndingOurLimit
	case claude.KindMaxTurns, claude.KindBudget:
		report.Status, report.Ending = escalation.SessionBudgetExhausted, escalation.EndingOurLimit
	case claude.KindOutputTooLong, claude.KindDiskFull:
		report.Ending = escalation.EndingOurLimit
	case claude.KindStopped:
		report.Status = escalation.SessionStopped
	case claude.KindInvalid, claude.KindUsage, claude.KindSessionInUse:
		report.Ending = escalation.EndingRequest
	case claude.KindMalformed, claude.KindFailed:
		report.Ending = escalation.EndingUnknown
	case claude.KindNotStarted: // the caller returns the error
	}
	if report.Ending == escalation.EndingUnusable && resumed {
		report.Status = escalation.SessionResumeFailed
	}
	return report
}

const (
	// maxLimit is the longest time for which a limit of an account is believed. The longest limits are those of a week.
	maxLimit = 8 * 24 * time.Hour
	// usualLimit is the time after which a session asks again, if the provider does not say when the limit ends.
	usualLimit = time.Hour
)

// limitedUntil returns the end of a limit, with a margin for clocks that differ. The argument until is zero if the
// provider does not say it. An end that is over says nothing, either: the provider has just refused a session.
func limitedUntil(until, now time.Time) time.Time {
	const margin = 10 * time.Second
	if !until.After(now) {
		until = now.Add(usualLimit)
	}
	return earliest(until, now.Add(maxLimit)).Add(margin).UTC().Truncate(time.Second)
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// join returns the texts that are not empty, with an empty line between them.
func join(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "\n\n")
}

// reportOf converts the result of a run.
func reportOf(result cell.Result) activities.AgentReport {
	return activities.AgentReport{
		Report: escalation.Report{
			Cost: escalation.Cost{CostUSD: result.CostUSD, CostEstimated: result.CostEstimated},

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
			Sandbox:           result.Sandbox,
		},
		Output: result.Structured, InFlight: inFlightOf(result.InFlight), Unarchived: result.Unarchived,
		Handoff: activities.LeftFile{Content: result.Left, Problem: result.LeftProblem},
	}
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

// progressOf converts the progress of a run.
func progressOf(p claude.Progress) activities.AgentProgress {
	progress := activities.AgentProgress{
		PID:      p.PID,
		Turns:    p.Turns,
		Tokens:   escalation.TokenUsage(p.Tokens),
		CostUSD:  p.CostUSD,
		Text:     p.Text,
		InFlight: inFlightOf(p.InFlight),
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
