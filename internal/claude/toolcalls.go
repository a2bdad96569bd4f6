package claude

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/redact"
)

// structuredOutputTool is the tool by which the agent gives its conclusion. It has no effect
// outside, so it is never in flight.
const structuredOutputTool = "StructuredOutput"

const (
	// previewRunes is how long a preview of a tool call's input is at most.
	previewRunes = 120
	// maxInputBytes is how much of a tool call's input is kept.
	maxInputBytes = 2048
)

// ledger follows tool calls from their start to their end.
type ledger struct {
	calls []*toolCall
	byID  map[string]*toolCall
	tasks map[string]*toolCall // commands that run as tasks, by task
	// mask masks secrets in what is kept.
	mask *redact.Redactor
	// frozen says that the CLI is being stopped: what it says of calls from then on is no
	// account of their effect. It calls an interrupted command rejected, though it ran.
	frozen bool
}

// toolCall is one call as far as it has come.
type toolCall struct {
	ToolCall
	preview string
	status  ToolStatus
	// task is the call's command that is still running, possibly in the background; empty is none.
	task string
}

// pending reports whether the call's effect is not known yet.
func (c *toolCall) pending() bool { return c.status == ToolRunning || c.task != "" }

// start notes a call.
func (l *ledger) start(block contentBlock) {
	if l.byID[block.ID] != nil {
		return
	}
	if l.byID == nil {
		l.byID, l.tasks = map[string]*toolCall{}, map[string]*toolCall{}
	}
	tool, input, preview := l.masked(block.Name, block.Input)
	call := &toolCall{ToolCall: ToolCall{ID: block.ID, Tool: tool, Input: input}, preview: preview, status: ToolRunning}
	l.calls = append(l.calls, call)
	l.byID[block.ID] = call
}

// maxMaskedBytes is how long an input may be that is masked as a whole. Of a longer one only what tells most is kept.
const maxMaskedBytes = 64 << 10

// masked returns the tool's name, its input and a preview of that, all with secrets masked before anything is
// cut: half a secret would stay. The work is bounded, however long the input is.
func (l *ledger) masked(tool string, input json.RawMessage) (name string, kept json.RawMessage, short string) {
	name = l.mask.Beginning(tool, maxInputBytes)
	if len(input) <= maxMaskedBytes {
		input = l.mask.JSON(input)
		return name, clip(input), preview(input)
	}
	key, text := telling(input)
	if text == "" {
		text = l.mask.Beginning(string(input), maxInputBytes)
		return name, encodeJSON(beginning(text)), oneLine(text, previewRunes)
	}
	text = l.mask.Beginning(text, maxInputBytes)
	return name, encodeJSON(map[string]string{key: beginning(text)}), oneLine(text, previewRunes)
}

// encodeJSON is json.Marshal for what cannot fail, and leaves "<", ">" and "&" as they are.
func encodeJSON(value any) json.RawMessage {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // strings and maps of strings only
	return bytes.TrimSpace(text.Bytes())
}

// end notes a call's result.
func (l *ledger) end(id string, failed bool) {
	call := l.byID[id]
	if call == nil || l.frozen {
		return
	}
	call.status = ToolDone
	if failed {
		call.status = ToolFailed
	}
}

// background notes that a call runs as a task, which may outlive its result.
func (l *ledger) background(id, task string) {
	if call := l.byID[id]; call != nil && task != "" {
		call.task = task
		l.tasks[task] = call
	}
}

// backgroundEnded notes the end of a task.
func (l *ledger) backgroundEnded(task string) {
	if call := l.tasks[task]; call != nil && !l.frozen {
		call.task = ""
		delete(l.tasks, task)
	}
}

// input returns what a call was made with, or nil.
func (l *ledger) input(id string) []byte {
	if call := l.byID[id]; call != nil {
		return call.Input
	}
	return nil
}

func (l *ledger) anyRunning() bool {
	for _, call := range l.calls {
		if call.status == ToolRunning {
			return true
		}
	}
	return false
}

// inFlight returns the calls whose effect is unknown, in the order of their start.
func (l *ledger) inFlight() []ToolCall {
	var calls []ToolCall
	for _, call := range l.calls {
		if call.pending() && call.Tool != structuredOutputTool {
			calls = append(calls, call.ToolCall)
		}
	}
	return calls
}

// made returns the calls that came to an end, in the order of their start.
func (l *ledger) made() []MadeCall {
	var calls []MadeCall
	for _, call := range l.calls {
		if call.status != ToolRunning {
			calls = append(calls, MadeCall{ID: call.ID, Tool: call.Tool, Failed: call.status == ToolFailed})
		}
	}
	return calls
}

// recent returns the latest calls, oldest first.
func (l *ledger) recent() []ToolActivity {
	first := max(len(l.calls)-RecentCalls, 0)
	activities := make([]ToolActivity, 0, len(l.calls)-first)
	for i, call := range l.calls[first:] {
		activities = append(activities, ToolActivity{
			Sequence: first + i + 1,
			Tool:     call.Tool,
			Preview:  call.preview,
			Status:   call.status,
		})
	}
	return activities
}

// previewKeys are the inputs that tell most about a call, most telling first.
func previewKeys() []string {
	return []string{"command", "file_path", "pattern", "url", "path", "description"}
}

// telling returns the field of a tool call's input that tells most about it, or "".
func telling(input []byte) (key, text string) {
	var fields map[string]any
	if json.Unmarshal(input, &fields) != nil {
		return "", ""
	}
	for _, key := range previewKeys() {
		if text, ok := fields[key].(string); ok && text != "" {
			return key, text
		}
	}
	return "", ""
}

// preview puts a tool call's input on one short line of printable text.
func preview(input []byte) string {
	if _, text := telling(input); text != "" {
		return oneLine(text, previewRunes)
	}
	return oneLine(string(input), previewRunes)
}

// clip returns a copy of a tool call's input, and of a long one the beginning of what tells most:
// as an object with that one field, or else as a text.
func clip(input []byte) json.RawMessage {
	if len(input) <= maxInputBytes {
		return bytes.Clone(input)
	}
	if key, text := telling(input); text != "" {
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
	text = text[:min(len(text), 8*limit)] // enough for a beginning, however long the text is
	return plaintext.Cut(plaintext.Compact(strings.ToValidUTF8(text, "")), limit)
}
