package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/prompts"
)

const (
	// repairTimeout limits the time of an invocation that only asks for a missing verdict.
	repairTimeout = escalation.Duration(2 * time.Minute)
	// HandOverDelay is the retry delay after a worker has ended its own agent. The delay is short, so that another
	// worker continues at once.
	HandOverDelay = 100 * time.Millisecond
	// firstPause is the pause after the first failed attempt. Each pause is three times as long as the previous one, up
	// to longestPause. An attempt that ended because its worker stopped or died does not count as failed.
	firstPause   = 10 * time.Second
	longestPause = 5 * time.Minute
	// MaxDirectoryWait limits how long a session waits for a directory in which another session repairs. A waiting
	// session occupies one of the worker's places for agents. After MaxDirectoryWait, the waiting session frees its
	// place, and Temporal retries the tier.
	MaxDirectoryWait = 15 * time.Minute
	// repairTurns limits the turns of an invocation that only asks for a missing verdict. The limit allows for a first
	// answer that does not match the schema.
	repairTurns = 3
)

// ErrDraining is the error of an Agent whose worker shuts down. Another worker must continue the tier.
var ErrDraining = errors.New("the worker shut down while the tier was running")

// ErrDirectoryBusy is the error of an Agent that could not get its directory, because another session repairs there.
var ErrDirectoryBusy = errors.New("the working directory is not free")

// errPrompt marks the error of a prompt that cannot be rendered. A retry would fail, too.
var errPrompt = errors.New("prompt")

// Tiers runs tiers, each with one agent.
type Tiers struct {
	Agent      Agent
	Pusher     Pusher
	Plans      Plans
	Proposer   Proposer
	Prompts    *prompts.Set
	Heartbeats Heartbeats
	// Briefs describes the permissions of a tier in Markdown, for the prompt of that tier; nil if prompts must not
	// describe permissions.
	Briefs func(tier escalation.Tier) string
	// Catalog holds the services that the operator has described; nil if there are none.
	Catalog *escalation.Catalog
	// ReadFile reads a file of instructions that Catalog names.
	ReadFile func(path string) (string, error)
	// Memories has what was learned before; nil if prompts contain no memories.
	Memories Memories
	// Host is the name of this machine in records.
	Host string
	// Version is the version of this program in records.
	Version string
	// PagesURL is the address of the pages. Pull requests contain no link if it is empty.
	PagesURL string
	// Talk holds what conversations need.
	Talk Talker
}

// RunTierInput describes one tier to run.
type RunTierInput struct {
	ChainID string `json:"chain_id"`
	// FirstRunID is the run ID with which the chain began.
	FirstRunID string `json:"first_run_id,omitempty"`

	SessionID string            `json:"session_id"`
	Tier      escalation.Tier   `json:"tier"`
	Policy    escalation.Policy `json:"policy"`
	Services  []string          `json:"services,omitempty"`
	// Affected lists the services that the chain must examine: the services of the latest verdict or, without a
	// verdict, Services.
	Affected []string `json:"affected,omitempty"`
	// Request is the operator's request.
	Request string `json:"request,omitempty"`
	// Issue describes the only problem that the chain must repair; empty if the chain has no such limit.
	Issue string `json:"issue,omitempty"`
	// Alert describes the alerts that started the chain, in the words of monitoring systems; empty if none did.
	Alert string `json:"alert,omitempty"`
	// Guidance is the text that a person added when requesting this tier.
	Guidance string `json:"guidance,omitempty"`
	// Gate says in a sentence how the gate before the session was closed; empty if there was none.
	Gate string `json:"gate,omitempty"`
	// Recheck reports that the tier only checks Services once more after a wait.
	Recheck    bool                  `json:"recheck,omitempty"`
	Continuity escalation.Continuity `json:"continuity"`
	// ParentTier and ParentSessionID identify the session whose context the tier starts from; empty if there is none.
	ParentTier      escalation.Tier `json:"parent_tier,omitempty"`
	ParentSessionID string          `json:"parent_session_id,omitempty"`
	// Continues reports that an operator chose to continue an interrupted session of this tier. ParentSessionID is that
	// session, and InFlight holds its tool calls without a result.
	Continues bool       `json:"continues,omitempty"`
	InFlight  []ToolCall `json:"in_flight,omitempty"`
	// Directory is the agent's working directory; empty for the default one.
	Directory string `json:"directory,omitempty"`
	// Correction lists what the tier must correct in the commits of the chain; nil for its usual work.
	Correction *Correction `json:"correction,omitempty"`
	// Inspect asks for what the tier commits in its worktree. Since is the commit that was reviewed before; empty if
	// there is none.
	Inspect bool   `json:"inspect,omitempty"`
	Since   string `json:"since,omitempty"`
	// Base is the commit of the chain that was pushed last, from which the change is shown; empty for the commit with
	// which the work began.
	Base string `json:"base,omitempty"`
	// Carry asks for the commits themselves, for other hosts. At is the latest commit of the chain that the tier
	// corrects, which its worktree must have; zero if it corrects none.
	Carry bool       `json:"carry,omitempty"`
	At    Checkpoint `json:"at,omitzero"`
	// Unseen reports that nobody knows what an earlier session has committed: what a worktree that began with At has
	// instead stays.
	Unseen bool `json:"unseen,omitempty"`
	// Handoff replaces the conversation if Continuity is escalation.ContinuityHandoff.
	Handoff *escalation.Handoff `json:"handoff,omitempty"`
	// IncidentBrief informs the agent about incidents and earlier repairs. Leave holds the incidents that other chains
	// take care of.
	escalation.IncidentBrief
	Leave []escalation.ChainIncident `json:"leave,omitempty"`
	// Cooldowns is the content of the agent's cooldown file.
	Cooldowns []escalation.ServiceState `json:"cooldowns,omitempty"`
	// BudgetUSD limits the spending of the session over all its attempts, in US dollars; 0 for the limit in the tier's
	// policy.
	BudgetUSD float64 `json:"budget_usd,omitempty"`
}

// RunTierResult is the result of RunTier.
type RunTierResult struct {
	Report escalation.Report `json:"report"`
	// InFlight holds the latest tool calls without a result at the end of the tier, at most maxInFlight.
	InFlight []ToolCall `json:"in_flight,omitempty"`
	// Change describes the commits of the tier; nil if it has committed nothing, or was not to be inspected.
	Change *Change `json:"change,omitempty"`
	// Unknown lists those services in the verdict that the catalog does not have.
	Unknown []string `json:"unknown,omitempty"`
	// EndedAt is the end of the tier by Temporal's clock. Unlike a time of the workflow's clock, this time stays the
	// same after a reset of the workflow.
	EndedAt time.Time `json:"ended_at,omitzero"`
}

// maxInFlight limits the tool calls in a result, because the input of each call can have a few KB.
const maxInFlight = 10

// RunTier runs a tier's agent until it has a verdict or ends without one. If the verdict is missing or invalid, RunTier
// asks the agent for the verdict once more in the same conversation. If the previous attempt has a conversation, a
// retry continues that conversation. Services in the verdict get their canonical names.
//
// After an error of the type ErrorTypeAgent that is retryable, another attempt may succeed. The details of the error
// hold the spending of all attempts so far.
func (t *Tiers) RunTier(ctx context.Context, input RunTierInput) (RunTierResult, error) {
	var verdict *escalation.Verdict
	r := t.tier(input)
	r.decode = func(output json.RawMessage) error {
		decoded, err := escalation.DecodeVerdict(output)
		if err == nil {
			verdict = &decoded
		}
		return err
	}
	session, err := t.runSession(ctx, r)
	if err != nil {
		return RunTierResult{}, err
	}
	result := RunTierResult{
		Report: session.Report, InFlight: session.latestCalls(), Change: session.Change,
		EndedAt: session.at,
	}
	switch {
	case session.problem != nil:
		result.Report.Verdict = &escalation.Verdict{
			Status:  escalation.VerdictFailed,
			Summary: fmt.Sprintf("The agent gave no valid verdict, even when asked again: %s.", session.problem),
		}
	case verdict != nil:
		named := t.Catalog.Verdict(*verdict)
		result.Report.Verdict, result.Unknown = &named, t.Catalog.Unknown(named.AllServices())
	}
	return result, nil
}

// FindTranscriptInput identifies a conversation by its id and its working directory. An empty Directory means the
// default working directory.
type FindTranscriptInput struct {
	SessionID string `json:"session_id"`
	Directory string `json:"directory,omitempty"`
}

// FindTranscriptResult reports whether the conversation can be resumed.
type FindTranscriptResult struct {
	Reachable bool `json:"reachable"`
}

// FindTranscript looks for the transcript of a conversation on this host and in the archive. An error means that the
// answer is currently unknown.
func (t *Tiers) FindTranscript(ctx context.Context, input FindTranscriptInput) (FindTranscriptResult, error) {
	reachable, err := t.Agent.HasConversation(ctx, input.Directory, input.SessionID)
	if err != nil {
		return FindTranscriptResult{}, fmt.Errorf("look for the transcript of %s: %w", input.SessionID, err)
	}
	return FindTranscriptResult{Reachable: reachable}, nil
}

// startedBefore reports whether a process of the activity's session was started before. The argument known reports that
// the session's conversation exists. If it exists although this is the first attempt, the chain was reset. If a process
// of a reset chain has no conversation yet, it keeps its session locked, and the next one waits for its end. Its worker
// learns of the reset by a heartbeat.
func startedBefore(ctx context.Context, known bool) bool {
	return known || activity.GetInfo(ctx).Attempt > 1 || activity.HasHeartbeatDetails(ctx)
}

// exhausted returns the report of a session whose remaining budget does not allow another process.
func exhausted(spent escalation.Report) AgentReport {
	return AgentReport{Report: escalation.Report{
		Status: escalation.SessionBudgetExhausted, Ending: escalation.EndingOurLimit,
		Error: fmt.Sprintf("what the session may spend is spent (%s)", spent.CostText()),
	}}
}

// handsOver reports whether an attempt ended because of its worker, or because another session repairs in its
// directory. Such an attempt does not count as failed.
func handsOver(err error) bool {
	return errors.Is(err, ErrDraining) || errors.Is(err, errHeartbeatLost) || errors.Is(err, ErrDirectoryBusy)
}

// unjudged returns the error of a failed attempt. If another worker must continue the tier, or the directory is busy,
// Temporal always retries. Otherwise Temporal does not retry in two cases: the prompt cannot be rendered, or the number
// of failures has reached most.
func unjudged(err error, spent escalation.Report, failures, most int) error {
	errorType, options := ErrorTypeAgent, temporal.ApplicationErrorOptions{
		Cause: err, Details: []any{spent},
		NonRetryable: failures >= most, NextRetryDelay: pauseAfter(failures),
	}
	switch {
	case errors.Is(err, errPrompt):
		errorType, options.NonRetryable = ErrorTypePrompt, true
	case handsOver(err):
		options.NonRetryable, options.NextRetryDelay = false, HandOverDelay
	}
	return temporal.NewApplicationErrorWithOptions(err.Error(), errorType, options)
}

// pauseAfter returns the delay before the next attempt after the given number of failures.
func pauseAfter(failures int) time.Duration {
	pause := firstPause
	for ; failures > 1 && pause < longestPause; failures-- {
		pause *= 3
	}
	return min(pause, longestPause)
}

// repairPolicy returns policy for a repair turn: without tools, and with little time.
func repairPolicy(policy escalation.TierPolicy) escalation.TierPolicy {
	policy.Tools, policy.AllowedTools = nil, nil
	return brief(policy, repairTimeout, repairTurns)
}

// brief returns policy with at most the given time limit and number of turns.
func brief(policy escalation.TierPolicy, timeout escalation.Duration, turns int) escalation.TierPolicy {
	policy.Timeout = min(policy.Timeout, timeout)
	if policy.MaxTurns == 0 || policy.MaxTurns > turns {
		policy.MaxTurns = turns
	}
	return policy
}
