package claude

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/claudeops/claudeops/internal/process"
)

// Result is what is known of an invocation. Beside an error it holds what was known when
// the run ended. Secrets in what the agent said are masked (see package redact).
type Result struct {
	// SessionID is the conversation's id as the CLI reported it; empty when it reported none.
	SessionID string
	// CLIVersion is the version as the stream reported it, or else as Locate found it.
	CLIVersion string
	// Model is the main model's full name as reported; empty when none was.
	Model string

	// Text is the agent's final text.
	Text string
	// Structured is the conclusion that met Invocation.Schema; nil when there is none.
	Structured json.RawMessage

	// Turns counts the agent's turns of this invocation.
	Turns int
	// Tokens are summed over this invocation's API calls, subagents left out.
	Tokens Tokens
	// CostUSD is what this invocation itself added, in US dollars.
	CostUSD float64
	// CostEstimated says that the CLI did not report the cost, or not all of it, so that CostUSD is
	// computed from the tokens seen and a price table.
	CostEstimated bool
	// ReportedTotalUSD is the total as the CLI printed it, which newer versions carry on from
	// the parent's conversation; 0 when it printed none.
	ReportedTotalUSD float64

	// ContextTokens is what the window held after the last main-thread message.
	ContextTokens int
	// ContextWindow is the main model's window in tokens as reported; 0 when it was not.
	ContextWindow int

	// Denials are the tool calls that the permission rules refused.
	Denials []Denial
	// InFlight are all tool calls that were started and whose result was not seen, in the order of
	// their start. Their effect is unknown.
	InFlight []ToolCall

	// Made are the tool calls that came to an end, in the order of their start.
	Made []MadeCall

	// Subtype, TerminalReason and APIStatus are the CLI's own words on the end: such as "success",
	// "completed", 0. They are empty when there was no result.
	Subtype        string
	TerminalReason string
	APIStatus      int
	// ExitCode is the CLI's exit code, or -1 when a signal ended it, nothing could, or it did not start.
	ExitCode int
	// Containment is what held the CLI and all that it started together; empty when it did not start.
	Containment Containment
	// Sandbox says what the kernel kept them from, or why nothing; empty without an Invocation.Sandbox.
	Sandbox string
	// Survivors counts processes of the agent that could not be ended: another user's, mostly.
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

// Denial is a tool call that was refused. Its Input is as in ToolCall.
type Denial struct {
	Tool  string
	Input json.RawMessage
}

// MadeCall is a tool call that has come to an end.
type MadeCall struct {
	// ID is the API's id of the call.
	ID   string
	Tool string
	// Failed says that the agent was told of an error: that of the call, or why it was not made.
	Failed bool
}

// ToolCall is a tool call of the agent.
type ToolCall struct {
	// ID is the API's id of the call.
	ID string
	// Tool is the tool's name.
	Tool string
	// Input is what the tool was called with, secrets masked. Of an input of more than 2 KiB it
	// is the beginning of the most telling field, such as {"command":"..."}, which ends in "…".
	Input json.RawMessage
}

// result puts together what is known at the end.
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
		Survivors:     exit.Survivors,
		Duration:      time.Since(r.started),
	}
	result.CostUSD, result.CostEstimated = a.cost(r.cli.profile)
	if last := a.last(); last != nil {
		a.addReported(&result, last)
	}
	result.Text = r.mask.Text(result.Text)
	result.Structured = r.mask.JSON(result.Structured)
	return result
}

// addReported adds to result what only result lines say.
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
	// Each account leaves something out: the stream what the CLI asks behind the scenes, a result
	// the last call before a budget or a schema ended the run.
	if tokens.Total() > result.Tokens.Total() {
		result.Tokens = tokens
	}
}

// window returns the main model's window as last reports it, or 0. Other models are listed
// beside it: subagents', and those of the conversation that was resumed.
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
