package claude

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// Result describes an invocation that has ended, with or without an error. Secrets in the agent's texts are masked (see
// package redact).
type Result struct {
	// SessionID is the conversation's id as the CLI reported it; empty if the CLI did not report it.
	SessionID string
	// CLIVersion is the CLI's version from the stream. If the stream does not report it, CLIVersion is the version that
	// Locate found.
	CLIVersion string
	// Model is the main model's full name as the CLI reported it; empty if the CLI did not report it.
	Model string

	// Text is the agent's final text.
	Text string
	// Structured is the output that satisfies Invocation.Schema; nil if there is none.
	Structured json.RawMessage

	// Turns counts the agent's turns in this invocation.
	Turns int
	// Tokens is the sum of the tokens of this invocation's API calls, without subagents.
	Tokens Tokens
	// CostUSD is the cost of this invocation in US dollars. Earlier invocations of the same conversation are not
	// included.
	CostUSD float64
	// CostEstimated is true if the CLI did not report the whole cost. CostUSD is then computed, at least in part, from
	// tokens and a price list. It is also true if UnlistedModel is not empty.
	CostEstimated bool
	// UnlistedModel is a model of this invocation whose price nobody has measured; usually empty.
	UnlistedModel string
	// ReportedTotalUSD is the total cost as the CLI printed it, in US dollars; 0 if the CLI printed none. It
	// includes the cost of the resumed conversation.
	ReportedTotalUSD float64

	// ContextTokens is the number of tokens in the context window after the last message of the main thread.
	ContextTokens int
	// ContextWindow is the size of the main model's context window in tokens, as the CLI reported it; 0 if the CLI did
	// not report it.
	ContextWindow int

	// Denials holds the tool calls that the permission rules refused.
	Denials []Denial
	// InFlight holds the tool calls that were started and have no result, in the order of their start. The effect of
	// these calls is unknown.
	InFlight []ToolCall

	// Made holds the tool calls that have ended, in the order of their start.
	Made []MadeCall

	// Subtype, TerminalReason and APIStatus come from the CLI's last result, for example "success", "completed" and 0.
	// If there is no result, they have their zero values.
	Subtype        string
	TerminalReason string
	APIStatus      int
	// ExitCode is the CLI's exit code. It is -1 in three cases: a signal ended the CLI, the CLI could not be ended, or
	// it did not start.
	ExitCode int
	// Containment is the method that was used to find and end the CLI and all processes that it started. It is empty if
	// the CLI did not start.
	Containment Containment
	// Sandbox describes the sandbox of the CLI, or says why there was none. It is empty if Invocation.Sandbox is nil.
	Sandbox string
	// Confined reports whether the sandbox was in force.
	Confined bool
	// Survivors counts processes of the agent that could not be ended. Mostly they belong to another user.
	Survivors int
	// Duration is the wall-clock time of the invocation.
	Duration time.Duration
}

// Tokens counts tokens.
type Tokens struct {
	Input         int
	Output        int
	CacheRead     int
	CacheCreation int
}

// Add returns the sum of t and other.
func (t Tokens) Add(other Tokens) Tokens {
	return Tokens{
		Input:         t.Input + other.Input,
		Output:        t.Output + other.Output,
		CacheRead:     t.CacheRead + other.CacheRead,
		CacheCreation: t.CacheCreation + other.CacheCreation,
	}
}

// Total returns the sum of all counts.
func (t Tokens) Total() int { return t.Input + t.Output + t.CacheRead + t.CacheCreation }

// Denial is a refused tool call. Its Input is as in ToolCall.
type Denial struct {
	Tool  string
	Input json.RawMessage
}

// MadeCall is a tool call that has ended.
type MadeCall struct {
	// ID is the API's id of the call.
	ID   string
	Tool string
	// Failed is true if the call returned an error to the agent. The call then failed, or it was refused and never ran.
	Failed bool
}

// ToolCall is a tool call of the agent.
type ToolCall struct {
	// ID is the API's id of the call.
	ID string
	// Tool is the tool's name.
	Tool string
	// Input is the input of the call, with secrets masked. An input of more than 2 KiB is cut to the beginning of its
	// most informative field, such as {"command":"..."}. The cut text ends with "…".
	Input json.RawMessage
}

// result returns the Result of the run.
func (r *run) result(exit process.Exit) Result {
	a := &r.acc
	result := Result{
		SessionID:     a.sessionID,
		CLIVersion:    cmp.Or(a.version, r.cli.Version()),
		Model:         a.mainModel(),
		Text:          a.lastText,
		Turns:         a.usage.turns(),
		Tokens:        a.usage.mainTokens(),
		ContextTokens: a.usage.context(),
		Denials:       a.reportedDenials(),
		InFlight:      a.calls.inFlight(),
		Made:          a.calls.made(),
		ExitCode:      exit.Code,
		Containment:   exit.Containment.Mode,
		Sandbox:       exit.Sandbox.String(),
		Confined:      exit.Sandbox.ABI > 0,
		Survivors:     exit.Survivors,
		Duration:      time.Since(r.started),
	}
	result.CostUSD, result.CostEstimated = a.cost(r.cli.profile.prices, r.invocation.Resume != "")
	result.UnlistedModel = a.unlistedModel()
	if last := a.last(); last != nil {
		a.addReported(&result, last)
	}
	result.Text = r.mask.Text(result.Text)
	result.Structured = r.mask.JSON(result.Structured)
	return result
}

// addReported sets the fields of result that only result lines report.
func (a *accumulator) addReported(result *Result, last *resultLine) {
	if !last.IsError && last.Text != "" {
		result.Text = last.Text
	}
	result.ReportedTotalUSD = last.TotalCostUSD.usd()
	result.Subtype = string(last.Subtype)
	result.TerminalReason = string(last.TerminalReason)
	result.APIStatus = int(last.APIStatus)
	result.ContextWindow = a.window(last)

	turns, tokens := 0, Tokens{}
	for _, line := range a.results {
		turns += int(line.Turns)
		tokens = tokens.Add(line.Usage.tokens())
		if line.Structured != nil {
			result.Structured = line.Structured
		}
	}
	result.Turns = turns
	// Use the larger sum, because each source is incomplete. The stream lacks the CLI's internal calls. A result lacks
	// the last call before a budget or a schema ended the run.
	if tokens.Total() > result.Tokens.Total() {
		result.Tokens = tokens
	}
}

// window returns the size of the main model's context window, or 0 if the last result does not report it. The last
// result also lists the models of subagents and of the resumed conversation.
func (a *accumulator) window(last *resultLine) int {
	for _, model := range []string{a.mainModel(), a.initModel} {
		if used, ok := last.ModelUsage[model]; ok {
			return int(used.ContextWindow)
		}
	}
	if len(last.ModelUsage) == 1 {
		for _, used := range last.ModelUsage {
			return int(used.ContextWindow)
		}
	}
	return 0
}

func (a *accumulator) reportedDenials() []Denial {
	var denials []Denial
	for _, d := range a.denials {
		denials = append(denials, Denial{Tool: d.Tool, Input: d.Input})
	}
	return denials
}
