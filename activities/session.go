package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/prompts"
)

// role says how a session is run: what differs between those of tiers, authors, reviewers, conversations and writers of
// handoffs.
type role struct {
	// name names the session in errors.
	name    string
	purpose escalation.Purpose
	// heartbeat is the interval between heartbeats.
	heartbeat time.Duration
	// budgetUSD limits the spending of the session over all its attempts, in US dollars; 0 for the limit in run.Policy.
	budgetUSD float64
	// run is the invocation with which the session begins, without its prompt.
	run AgentRun
	// prompt returns the prompt with which the session begins. The argument cutOff says what an earlier process of it
	// may have left half done; nil if there was none.
	prompt func(ctx context.Context, cutOff *prompts.Interruption) (string, error)
	// goOn returns the prompt that continues the session's own conversation after its process has died; nil for the
	// usual one.
	goOn func(ctx context.Context, cutOff prompts.Interruption) (string, error)
	// late reports that the prompt is made while the agent's place is made ready. Its errors are returned as they are.
	late bool
	// concluded returns the report of a session whose earlier process has given its output and died before it could
	// report it; nil if there is none. It is nil if the role does not look.
	concluded func(ctx context.Context, spent escalation.Report) (*AgentReport, error)
	// output names the structured output; empty if the session has none. decode keeps it, or says what is wrong with
	// it. repair returns the prompt that asks for it again.
	output string
	decode func(output json.RawMessage) error
	repair func(reason string) (string, error)
}

// SessionEnd is the part that the results of all activities have that run a session.
type SessionEnd struct {
	Report  escalation.Report `json:"report"`
	EndedAt time.Time         `json:"ended_at,omitzero"`
}

// ended is a session that has ended.
type ended struct {
	AgentReport

	// problem says what is wrong with the structured output, even when asked again; nil if it is valid, or the session
	// ended before.
	problem error
	// at is the end of the session by Temporal's clock.
	at time.Time
}

// why says why the session of a role has no valid output.
func (e ended) why(r role) string {
	if e.problem != nil {
		return fmt.Sprintf("%s gave no valid %s, even when asked again: %s", r.name, r.output, e.problem)
	}
	return fmt.Sprintf("%s ended %s: %s", r.name, e.Status, e.Error)
}

// latestCalls returns the latest tool calls without a result, at most maxInFlight.
func (e ended) latestCalls() []ToolCall { return e.InFlight[max(0, len(e.InFlight)-maxInFlight):] }

// stopwatch returns a function that returns the current time by Temporal's clock, in UTC and truncated to milliseconds,
// as records have it. The clock of this host may be wrong: only the time that has passed since the start of the attempt
// counts.
func stopwatch(ctx context.Context) func() time.Time {
	began, started := time.Now(), activity.GetInfo(ctx).StartedTime
	return func() time.Time { return started.Add(time.Since(began)).UTC().Truncate(time.Millisecond) }
}

// runSession runs one attempt at the session of a role, and sends a heartbeat at each interval until it ends. It adds
// the spending of this attempt to the spending of earlier attempts. If the attempt fails, or has ended so that another
// attempt follows, runSession returns an error; its details hold the total.
func (t *Tiers) runSession(ctx context.Context, r role) (ended, error) {
	now, past := stopwatch(ctx), pastAttempts(ctx)
	agent, beats := startHeartbeater(ctx, t.Heartbeats, r.heartbeat, TierProgress{
		SessionID: r.run.SessionID, Host: t.Host, WorkerPID: os.Getpid(), Attempt: int(activity.GetInfo(ctx).Attempt),
		Spent: past.Spent, InFlight: past.InFlight, Failures: past.Failures, Hosts: past.Hosts,
	})
	report, problem, err := t.attempt(agent, r, past, beats)
	if cause := context.Cause(agent); err == nil && report.Status == escalation.SessionStopped &&
		errors.Is(cause, errHeartbeatLost) {
		err = cause
	}
	most := escalation.Treat(report.Ending, false, r.purpose).Attempts
	if err == nil && report.Ending != escalation.EndingNone && most > 1 && report.Status != escalation.SessionTimedOut {
		err = errors.New(report.Error)
	}
	report.Report = past.Spent.Then(report.Report)
	report.Attempts = int(activity.GetInfo(ctx).Attempt)
	report.Host, report.WorkerVersion = t.Host, t.Version
	hosts := past.Hosts
	if worked := report.Worktree; worked != nil && worked.Path != "" {
		worked.EarlierHosts = past.elsewhere(t.Host, worked)
		if worked.MayHoldCommits() {
			hosts = withHost(hosts, t.Host)
		}
	}
	failures := past.Failures
	if err != nil && !handsOver(err) {
		failures++
	}
	beats.settle(report, failures, hosts)
	// what it has committed outlasts the last attempt
	if err != nil && failures >= most && !handsOver(err) && report.Change != nil {
		report.Status, report.Error = escalation.SessionFailed, err.Error()
		err = nil
	}
	beats.stop(ctx, err != nil)
	if err != nil {
		return ended{}, unjudged(err, report.Report, failures, most)
	}
	return ended{report, problem, now()}, nil
}

// attempt runs the agent of a role. If an earlier attempt has a conversation, attempt continues it. The process of that
// attempt may have ended before it read its prompt. So if it has reported no turn, the agent gets the opening prompt
// again, with the tool calls that have no result. The result problem says what is wrong with the structured output.
func (t *Tiers) attempt(
	ctx context.Context, r role, past TierProgress, beats *heartbeater,
) (report AgentReport, problem, err error) {
	run := r.run
	known, err := t.Agent.HasConversation(ctx, run.Directory, run.SessionID)
	if err != nil {
		return report, nil, err
	}
	if known && r.concluded != nil {
		if concluded, err := r.concluded(ctx, past.Spent); concluded != nil || err != nil {
			return *cmp.Or(concluded, &report), nil, err
		}
	}
	repeated := startedBefore(ctx, known)
	run.First, run.Now, run.Interrupted = !repeated, stopwatch(ctx), run.Interrupted || known
	run.Policy.BudgetUSD = cmp.Or(r.budgetUSD, run.Policy.BudgetUSD)
	if known {
		run.Resume = run.SessionID
	}
	run, left := run.after(past.Spent)
	if !left {
		return exhausted(past.Spent), nil, nil
	}
	prompt := func() (string, error) {
		cutOff := prompts.Interruption{Calls: callsOf(past.InFlight), DryRun: run.DryRun}
		switch {
		case known && past.Spent.Turns > 0 && r.goOn != nil:
			return r.goOn(ctx, cutOff)
		case known && past.Spent.Turns > 0:
			return t.Prompts.Interrupted(cutOff)
		case repeated:
			return r.prompt(ctx, &cutOff)
		default:
			return r.prompt(ctx, nil)
		}
	}
	if r.late {
		run.LatePrompt = inBackground(prompt)
		defer func() { _, _ = run.LatePrompt() }()
	} else if run.Prompt, err = prompt(); err != nil {
		return report, nil, fmt.Errorf("%w of %s: %w", errPrompt, r.name, err)
	}
	report, problem, err = t.ask(ctx, run, r, beats)
	report.Interrupted = known
	return report, problem, err
}

// ask runs the agent and decodes its structured output. If the output is missing or invalid, ask asks for it in one
// repair turn. If that gives no valid output either, the session has the status completed, and problem says what is
// wrong.
func (t *Tiers) ask(
	ctx context.Context, run AgentRun, r role, beats *heartbeater,
) (report AgentReport, problem, err error) {
	report, err = t.answer(ctx, run, r, beats)
	if err != nil || report.Status != escalation.SessionCompleted || r.output == "" {
		return report, nil, err
	}
	if problem = r.read(report); problem == nil {
		return report, nil, nil
	}
	run, left := run.after(report.Report)
	if !left {
		spent := exhausted(report.Report)
		report.Status, report.Error = spent.Status, fmt.Sprintf("%s, without a valid %s: %s", spent.Error, r.output,
			problem)
		report.Ending = spent.Ending
		return report, nil, nil
	}
	run.Repairs, run.Inspect, run.Policy = false, false, repairPolicy(run.Policy)
	if run.Prompt, err = r.repair(problem.Error()); err != nil {
		return report, nil, fmt.Errorf("%w that asks %s for its %s: %w", errPrompt, r.name, r.output, err)
	}
	repaired, err := t.followUp(ctx, run, report, beats)
	repaired.Change = report.Change
	finished := repaired.Ending == escalation.EndingNone || repaired.Ending == escalation.EndingOurLimit
	if err != nil || repaired.Status == escalation.SessionStopped || !finished {
		return repaired, nil, err
	}
	if repaired.Status == escalation.SessionCompleted {
		problem = r.read(repaired)
	} else {
		problem = fmt.Errorf("%w; asked again, the session ended %s", problem, repaired.Status)
	}
	repaired.Status, repaired.Error, repaired.Ending = escalation.SessionCompleted, "", escalation.EndingNone
	if problem != nil {
		repaired.Ending = escalation.EndingNoResult
	}
	return repaired, problem, nil
}

// read decodes the structured output of a report. It returns an error if the output is missing or invalid.
func (r role) read(report AgentReport) error {
	if report.Output == nil {
		return fmt.Errorf("it ended without its structured %s", r.output)
	}
	return r.decode(report.Output)
}

// answer runs the agent. If its answer is too long, answer asks once for a shorter one.
func (t *Tiers) answer(ctx context.Context, run AgentRun, r role, beats *heartbeater) (AgentReport, error) {
	report, err := t.Agent.Run(ctx, run, beats.observe)
	if err != nil || !escalation.Treat(report.Ending, false, escalation.PurposeTier).Shorter {
		return report, err
	}
	run, left := run.after(report.Report)
	if !left {
		return report, nil
	}
	run.Interrupted = true
	if run.Prompt, err = t.Prompts.Shorter(); err != nil {
		return report, fmt.Errorf("%w that asks %s for a shorter answer: %w", errPrompt, r.name, err)
	}
	return t.followUp(ctx, run, report, beats)
}

// followUp asks the agent something else in the conversation of a session that has answered. The result includes what
// was spent before.
func (t *Tiers) followUp(
	ctx context.Context, run AgentRun, before AgentReport, beats *heartbeater,
) (AgentReport, error) {
	run.Resume, run.First, run.LatePrompt = run.SessionID, false, nil
	beats.add(before.Report)
	report, err := t.Agent.Run(ctx, run, beats.observe)
	report.Report = before.Then(report.Report)
	return report, err
}
