package claude

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/redact"
)

// structuredOutputTool is the tool by which the agent returns its structured output. The tool has no side effects, so
// its calls never count as in flight.
const structuredOutputTool = "StructuredOutput"

const (
	// previewRunes limits the preview of a tool call's input, in characters.
	previewRunes = 120
	// maxInputBytes limits the kept part of a tool call's input.
	maxInputBytes = 2048
)

// toolCalls tracks tool calls from their start to their end.
type toolCalls struct {
	calls []*toolCall
	byID  map[string]*toolCall
	tasks map[string]*toolCall // calls whose command runs as a task, by task id
	// mask masks secrets in all that is kept.
	mask *redact.Redactor
	// frozen is true after the stop of the CLI has begun. The CLI then reports an interrupted command as rejected,
	// although the command ran. So while frozen is true, toolCalls ignores reports of failed calls and of ended tasks.
	frozen bool
}

// toolCall is the current state of a call.
type toolCall struct {
	ToolCall
	preview string
	status  ToolStatus
	// task is the id of the task that runs the call's command, possibly in the background. It is empty if no task runs
	// the command, or if the task has ended.
	task string
}

// pending reports whether the call's effect is unknown.
func (c *toolCall) pending() bool { return c.status == ToolRunning || c.task != "" }

// start adds a call.
func (t *toolCalls) start(block contentBlock) {
	if t.byID[block.ID] != nil {
		return
	}
	if t.byID == nil {
		t.byID, t.tasks = map[string]*toolCall{}, map[string]*toolCall{}
	}
	tool, input, preview := t.masked(block.Name, block.Input)
	call := &toolCall{ToolCall: ToolCall{ID: block.ID, Tool: tool, Input: input}, preview: preview, status: ToolRunning}
	t.calls = append(t.calls, call)
	t.byID[block.ID] = call
}

// maxMaskedBytes is the size of the longest tool input that is masked as a whole. Of a longer input, toolCalls masks
// and keeps only the most informative field.
const maxMaskedBytes = 64 << 10

// masked returns the tool's name, its input and a preview of the input, with secrets masked. It masks the texts before
// it shortens them, so that no part of a secret is left. Its running time is limited for inputs of any length.
func (t *toolCalls) masked(tool string, input json.RawMessage) (name string, kept json.RawMessage, short string) {
	name = t.mask.Beginning(tool, maxInputBytes)
	if len(input) <= maxMaskedBytes {
		input = t.mask.JSON(input)
		return name, clip(input), preview(input)
	}
	key, text := mainField(input)
	if text == "" {
		text = t.mask.Beginning(string(input), maxInputBytes)
		return name, encodeJSON(beginning(text)), oneLine(text, previewRunes)
	}
	text = t.mask.Beginning(text, maxInputBytes)
	return name, encodeJSON(map[string]string{key: beginning(text)}), oneLine(text, previewRunes)
}

// encodeJSON returns value as JSON. value must be a string or a map of strings, so that encoding cannot fail.
// encodeJSON does not escape "<", ">" and "&".
func encodeJSON(value any) json.RawMessage {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // strings and maps of strings only
	return bytes.TrimSpace(text.Bytes())
}

// end records the result of a call. A call that fails after the stop of the CLI has begun stays in flight, because the
// stop has interrupted it. A call that succeeds had ended before the stop.
func (t *toolCalls) end(id string, failed bool) {
	call := t.byID[id]
	if call == nil || t.frozen && failed {
		return
	}
	call.status = ToolDone
	if failed {
		call.status = ToolFailed
	}
}

// background records that a task runs a call's command. The task can end after the call's result.
func (t *toolCalls) background(id, task string) {
	if call := t.byID[id]; call != nil && task != "" {
		call.task = task
		t.tasks[task] = call
	}
}

// backgroundEnded records the end of a task.
func (t *toolCalls) backgroundEnded(task string) {
	if call := t.tasks[task]; call != nil && !t.frozen {
		call.task = ""
		delete(t.tasks, task)
	}
}

// input returns the input of a call, or nil.
func (t *toolCalls) input(id string) []byte {
	if call := t.byID[id]; call != nil {
		return call.Input
	}
	return nil
}

func (t *toolCalls) anyRunning() bool {
	for _, call := range t.calls {
		if call.status == ToolRunning {
			return true
		}
	}
	return false
}

// inFlight returns the pending calls in the order of their start, except the call for the structured output.
func (t *toolCalls) inFlight() []ToolCall {
	var calls []ToolCall
	for _, call := range t.calls {
		if call.pending() && call.Tool != structuredOutputTool {
			calls = append(calls, call.ToolCall)
		}
	}
	return calls
}

// made returns the calls that have ended, in the order of their start.
func (t *toolCalls) made() []MadeCall {
	var calls []MadeCall
	for _, call := range t.calls {
		if call.status != ToolRunning {
			calls = append(calls, MadeCall{ID: call.ID, Tool: call.Tool, Failed: call.status == ToolFailed})
		}
	}
	return calls
}

// recent returns the latest calls, oldest first.
func (t *toolCalls) recent() []ToolActivity {
	first := max(len(t.calls)-RecentCalls, 0)
	activities := make([]ToolActivity, 0, len(t.calls)-first)
	for i, call := range t.calls[first:] {
		activities = append(activities, ToolActivity{
			Sequence: first + i + 1,
			Tool:     call.Tool,
			Preview:  call.preview,
			Status:   call.status,
		})
	}
	return activities
}

// mainFields returns the names of the most informative fields of tool calls' inputs, best first.
func mainFields() []string {
	return []string{"command", "file_path", "pattern", "url", "path", "description"}
}

// mainField returns the most informative field of a tool call's input, or "".
func mainField(input []byte) (key, text string) {
	var fields map[string]any
	if json.Unmarshal(input, &fields) != nil {
		return "", ""
	}
	for _, key := range mainFields() {
		if text, ok := fields[key].(string); ok && text != "" {
			return key, text
		}
	}
	return "", ""
}

// preview returns a tool call's input on one short line of printable text.
func preview(input []byte) string {
	if _, text := mainField(input); text != "" {
		return oneLine(text, previewRunes)
	}
	return oneLine(string(input), previewRunes)
}

// clip returns a copy of a tool call's input. For a long input it returns the beginning of the main field, as an object
// with only that field. If there is no main field, it returns the beginning of the input as a string.
func clip(input []byte) json.RawMessage {
	if len(input) <= maxInputBytes {
		return bytes.Clone(input)
	}
	if key, text := mainField(input); text != "" {
		return encodeJSON(map[string]string{key: beginning(text)})
	}
	return encodeJSON(beginning(string(input)))
}

// beginning returns text, cut to maxInputBytes.
func beginning(text string) string {
	if len(text) <= maxInputBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxInputBytes], "") + "…"
}

// oneLine returns at most limit characters of text on one line, printable only.
func oneLine(text string, limit int) string {
	text = text[:min(len(text), 8*limit)] // limits the work; enough for limit characters
	return plaintext.Cut(plaintext.Compact(strings.ToValidUTF8(text, "")), limit)
}
