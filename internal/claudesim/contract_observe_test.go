package claudesim_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
)

// observation holds what a driver can observe of one run, without values that differ between runs.
type observation struct {
	Exit   int
	Stderr string
	// Events names all lines that the driver reads, in order.
	Events []string
	// SessionIDs lists the different ids on the lines.
	SessionIDs []string
	Init       initView
	// Tools lists the results of tool calls in the stream.
	Tools   []string
	Results []resultView
	// Context is the usage of the context window, as the model's last message reports it.
	Context usageView
	// Classes lists the classes of API errors, and Limits what is said about an account's limit.
	Classes []string
	Limits  []limitView
	// Streamed is the final usage of each message. It comes from the partial messages.
	Streamed []usageView
	// Questions lists the questions to hooks. Scripts lists the scripts that the program in place of the shell ran.
	Questions, Scripts []string
	// ToolSurvives is true if the running tool survives the signal to the CLI.
	ToolSurvives bool
	Transcripts  map[string]string
	Asked        []requestView
}

type initView struct {
	Model, PermissionMode, Version string
	Tools                          []string
}

type resultView struct {
	Subtype, Reason, SessionID, Text string
	IsError                          bool
	Turns                            int
	Status                           *int
	// StopReason is the API's reason for the end of the last answer.
	StopReason         string
	TotalCost, OwnCost float64
	Usage              usageView
	Models             map[string]modelView
	HasOwnUsage        bool
	Denials            []string
	Structured         string
	Errors             []string
}

type modelView struct {
	Input, Output, CacheRead, CacheCreation, Window int
	Cost                                            float64
}

type usageView struct {
	Input         int `json:"input_tokens"`
	Output        int `json:"output_tokens"`
	CacheRead     int `json:"cache_read_input_tokens"`
	CacheCreation int `json:"cache_creation_input_tokens"`
}

// requestView is a model call without the parts that the CLI adds.
type requestView struct {
	Model   string
	Tools   []string
	Prompts []string
	Results []string
	Step    int
	// Thinking counts the blocks of thinking in the request.
	Thinking int
}

// streamLine holds the fields of an output line that the tests observe.
type streamLine struct {
	Type           string          `json:"type"`
	Subtype        string          `json:"subtype"`
	SessionID      string          `json:"session_id"`
	Model          string          `json:"model"`
	PermissionMode string          `json:"permissionMode"`
	Version        string          `json:"claude_code_version"`
	Tools          []string        `json:"tools"`
	Tag            string          `json:"tag"`
	ErrorStatus    *int            `json:"error_status"`
	Parent         *string         `json:"parent_tool_use_id"`
	Event          json.RawMessage `json:"event"`
	Message        json.RawMessage `json:"message"`
	// Class is the class of the API error in a message that the CLI wrote.
	Class string    `json:"error"`
	Limit limitView `json:"rate_limit_info"`
	resultLine
}

// limitView holds the CLI's report about an account's limit.
type limitView struct {
	Status   string `json:"status"`
	ResetsAt int64  `json:"resetsAt"`
	Type     string `json:"rateLimitType"`
	Credits  bool   `json:"isUsingOverage"`
}

// messageLine is the message of an assistant or user line.
type messageLine struct {
	Model   string    `json:"model"`
	Usage   usageView `json:"usage"`
	Content []struct {
		Type    string          `json:"type"`
		Text    string          `json:"text"`
		Name    string          `json:"name"`
		Content json.RawMessage `json:"content"`
		IsError bool            `json:"is_error"`
	} `json:"content"`
}

type resultLine struct {
	Reason     string               `json:"terminal_reason"`
	Text       string               `json:"result"`
	IsError    bool                 `json:"is_error"`
	Turns      int                  `json:"num_turns"`
	Status     *int                 `json:"api_error_status"`
	StopReason string               `json:"stop_reason"`
	Total      *float64             `json:"total_cost_usd"`
	Usage      usageView            `json:"usage"`
	Models     map[string]modelLine `json:"modelUsage"`
	Since      map[string]modelLine `json:"model_usage_since_last_result"`
	Structured json.RawMessage      `json:"structured_output"`
	Errors     []string             `json:"errors"`
	Denials    []struct {
		Tool string `json:"tool_name"`
	} `json:"permission_denials"`
}

type modelLine struct {
	Input         int     `json:"inputTokens"`
	Output        int     `json:"outputTokens"`
	CacheRead     int     `json:"cacheReadInputTokens"`
	CacheCreation int     `json:"cacheCreationInputTokens"`
	Window        int     `json:"contextWindow"`
	Cost          float64 `json:"costUSD"`
}

func newObservation(t *testing.T, out output) observation {
	t.Helper()
	o := observation{Exit: out.exit, Stderr: firstLine(out.stderr), ToolSurvives: out.toolSurvives}
	for text := range strings.Lines(out.stdout) {
		var line streamLine
		require.NoError(t, json.Unmarshal([]byte(text), &line), "not a JSON line: %s", text)
		o.add(t, line)
	}
	return o
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

func (o *observation) add(t *testing.T, line streamLine) {
	t.Helper()
	if line.SessionID != "" && !slices.Contains(o.SessionIDs, line.SessionID) {
		o.SessionIDs = append(o.SessionIDs, line.SessionID)
	}
	switch line.Type {
	case "system":
		o.addSystem(line)
	case "assistant", "user":
		o.addMessage(t, line)
	case "stream_event":
		o.addStreamed(t, line.Event)
	case "result":
		o.Events = append(o.Events, "result")
		o.Results = append(o.Results, line.view())
	case "rate_limit_event":
		if line.Limit.Status == "rejected" { // the others say how much is left
			o.Limits = append(o.Limits, line.Limit)
		}
	default: // unknown in this release: reported as a difference, and reading continues
		o.Events = append(o.Events, line.Type)
	}
}

func (o *observation) addSystem(line streamLine) {
	switch line.Subtype {
	case "init":
		o.Init = initView{line.Model, line.PermissionMode, line.Version, line.Tools}
	case "api_retry":
		status := "none"
		if line.ErrorStatus != nil {
			status = fmt.Sprint(*line.ErrorStatus)
		}
		line.Subtype += " " + status
	case "informational":
		if line.Tag != "hook_no_verdict" {
			return
		}
	case "permission_denied", "task_started", "task_notification", "model_refusal_no_fallback":
	default: // the driver ignores the others
		return
	}
	o.Events = append(o.Events, "system/"+line.Subtype)
}

func (o *observation) addMessage(t *testing.T, line streamLine) {
	t.Helper()
	require.Nil(t, line.Parent)
	var message messageLine
	require.NoError(t, json.Unmarshal(line.Message, &message))
	for _, block := range message.Content {
		name := line.Type + "/" + block.Type
		if block.Name != "" {
			name += " " + block.Name
		}
		o.Events = append(o.Events, name)
		if block.Type == "tool_result" {
			o.Tools = append(o.Tools, fmt.Sprintf("error=%t %s", block.IsError, gist(textOf(block.Content))))
		}
	}
	switch {
	case line.Type != "assistant":
	case message.Model == "<synthetic>":
		o.Classes = append(o.Classes, line.Class)
	default:
		o.Context = message.Usage
	}
}

// textOf returns the text of content that is a string or a list of text blocks.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	return string(content)
}

// gist reduces a message of the CLI to the part that identifies it. The driver does not depend on the rest.
func gist(text string) string {
	for _, prefix := range []string{
		"Permission to use Bash", "Permission to use Write", "Permission to use Read", "<tool_use_error>Error: No such tool available: Write.",
		"The user doesn't want to proceed with this tool use.", "File created successfully at: ", "File does not exist.",
		"[Tool call interrupted: ", "Command running in background", "<task-notification>",
		"API Error: 500", "API Error: 529", "Prompt is too long", "Failed to provide valid structured output after 5 attempts",
		"Error: --json-schema is not valid JSON", "Error: --json-schema is not a valid JSON Schema",
		"API Error: ",
	} {
		if strings.HasPrefix(text, prefix) {
			return prefix
		}
	}
	return resetTo.ReplaceAllString(text, "Shell cwd was reset")
}

// resetTo matches the end of the output of a command that left the working directory.
var resetTo = regexp.MustCompile(`Shell cwd was reset to \S+$`)

func (o *observation) addStreamed(t *testing.T, raw json.RawMessage) {
	t.Helper()
	var event struct {
		Type  string    `json:"type"`
		Usage usageView `json:"usage"`
	}
	require.NoError(t, json.Unmarshal(raw, &event))
	if event.Type == "message_delta" {
		o.Streamed = append(o.Streamed, event.Usage)
	}
}

func (line streamLine) view() resultView {
	r := resultView{
		Subtype: line.Subtype, Reason: line.Reason, SessionID: line.SessionID, Text: gist(line.Text), IsError: line.IsError,
		Turns: line.Turns, Status: line.Status, StopReason: line.StopReason, Usage: line.Usage, TotalCost: -1, Models: map[string]modelView{},
		HasOwnUsage: line.Since != nil,
	}
	if line.Total != nil {
		r.TotalCost = dollars(*line.Total)
	}
	for id, m := range line.Models {
		r.Models[id] = modelView{m.Input, m.Output, m.CacheRead, m.CacheCreation, m.Window, dollars(m.Cost)}
	}
	for _, m := range line.Since {
		r.OwnCost += m.Cost
	}
	r.OwnCost = dollars(r.OwnCost)
	for _, denial := range line.Denials {
		r.Denials = append(r.Denials, denial.Tool)
	}
	if line.Structured != nil {
		r.Structured = string(line.Structured)
	}
	for _, text := range line.Errors {
		if strings.HasPrefix(text, "[ede_diagnostic]") || text == "interrupted" {
			text = "diagnostic"
		}
		r.Errors = append(r.Errors, gist(text))
	}
	return r
}

// dollars removes rounding differences, which depend on the order of floating point additions.
func dollars(v float64) float64 { return math.Round(v*1e12) / 1e12 }

// transcriptFiles maps conversation ids to the contents of the transcripts below a home directory.
type transcriptFiles map[string]string

func readTranscripts(t *testing.T, p place) transcriptFiles {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(p.home, ".claude", "projects", "*", "*.jsonl"))
	require.NoError(t, err)
	files := transcriptFiles{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		id := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		if path != p.transcript(id) {
			id = "elsewhere " + id
		}
		files[id] = string(data)
	}
	return files
}

// changes describes how each transcript has changed.
func (before transcriptFiles) changes(after transcriptFiles) map[string]string {
	changes := map[string]string{}
	for id, content := range after {
		former, existed := before[id]
		switch {
		case !existed:
			changes[id] = "created"
		case former == content:
			changes[id] = "unchanged"
		case strings.HasPrefix(content, former):
			changes[id] = "appended"
		default:
			changes[id] = "rewritten"
		}
	}
	return changes
}

func viewRequests(requests []claudesim.Request) []requestView {
	var views []requestView
	for _, r := range requests {
		view := requestView{Model: r.Model, Prompts: r.Prompts(), Step: r.Step(), Thinking: r.Thinking()}
		for _, tool := range r.Tools {
			if tool != "DeferredToolPlaceholder" {
				view.Tools = append(view.Tools, tool)
			}
		}
		for _, result := range r.ToolResults() {
			view.Results = append(view.Results, gist(strings.TrimRight(result, " \t\n"))) // some releases cut it
		}
		views = append(views, view)
	}
	return views
}
