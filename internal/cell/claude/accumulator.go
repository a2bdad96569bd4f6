package claude

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"time"
)

// accumulator collects facts from the CLI's stream, line by line. After each line it holds all facts so far. Only one
// goroutine may use it at a time.
type accumulator struct {
	sessionID string
	version   string
	initModel string
	lastText  string
	apiError  apiErrorClass
	apiStatus int // HTTP status of the last failed attempt
	// cut says what cut the last answer, if the CLI says it.
	cut cutReason
	// limit is a subscription's limit that is used up; nil if none is.
	limit *usedUp
	// refusal says why the model refused, if the API says it.
	refusal string
	// unauthorized counts the attempts at the current API call whose credentials were refused.
	unauthorized int
	lines        int // number of events
	results      []resultLine
	calls        toolCalls
	usage        meter
	denials      []denial
	phase        Phase
	output       outputText
}

// usedUp is a limit of an account that is used up.
type usedUp struct {
	until time.Time // zero if the provider does not say it
	kind  string    // see LimitedModel
}

// meter adds up the tokens of API calls.
type meter struct {
	calls []*apiCall
	byID  map[string]*apiCall
	// open holds the calls whose answers are being streamed: one for each subagent and one for the main thread. The key
	// is the tool call that started the subagent, or "" for the main thread (see envelope.Parent).
	open map[string]*apiCall
	// lastMain is the last call of the main thread. Its token count is the size of the context.
	lastMain *apiCall
	// reported is the number of calls before the last result line. The cost in that line includes these calls.
	reported int
}

// apiCall is one call of the API. It is identified by the id of the message in the API's answer.
type apiCall struct {
	model string
	main  bool
	usage usage
}

// line adds a line of the stream and returns the type of its event, or "" if the line is ignored.
func (a *accumulator) line(line []byte) eventType {
	if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' {
		return ""
	}
	var head envelope
	if !decode(line, &head) || head.Type == "" {
		return ""
	}
	a.lines++
	if head.SessionID != "" {
		a.sessionID = head.SessionID
	}
	switch head.Type {
	case eventSystem:
		a.system(head.Subtype, line)
	case eventAssistant:
		a.assistant(head.Parent, line)
	case eventUser:
		a.user(line)
	case eventStream:
		a.stream(head.Parent, line)
	case eventLimit:
		a.setLimit(line)
	case eventResult:
		a.result(line)
	}
	return head.Type
}

func (a *accumulator) system(subtype systemSubtype, line []byte) {
	var event systemLine
	if !decode(line, &event) {
		return
	}
	switch subtype {
	case systemInit:
		a.version, a.initModel = event.CLIVersion, event.Model
	case systemRetry:
		a.apiStatus = int(event.ErrorStatus)
		a.phase = PhaseRetrying
		if status := a.apiStatus; status == http.StatusUnauthorized || status == http.StatusForbidden {
			a.unauthorized++
		}
	case systemDenied:
		a.deny(denial{Tool: event.ToolName, ToolUseID: event.ToolUseID, Input: a.calls.input(event.ToolUseID)})
	case systemTaskStarted:
		a.calls.background(event.ToolUseID, event.TaskID)
	case systemTaskNotification:
		a.calls.backgroundEnded(event.TaskID)
	case systemRefusal:
		a.refusal = strings.Trim(event.RefusalCategory+": "+event.Refusal, ": ")
	case systemCompacted: // the transcript has the summary
	}
}

// assistant adds one block of a message. The number of output tokens in the block's usage is only a placeholder. The
// stream events have the true number, but for subagents the CLI does not print these events.
func (a *accumulator) assistant(parent string, line []byte) {
	var event messageLine
	if !decode(line, &event) {
		return
	}
	if event.Message.Model == syntheticModel {
		a.apiError, a.cut = event.Error, event.Details.Cut
		return
	}
	a.phase, a.apiError, a.cut, a.unauthorized = PhaseThinking, "", "", 0
	a.usage.add(event.Message.ID, parent, event.Message.Model, event.Message.Usage)
	for _, block := range event.Message.Content {
		switch block.Type {
		case blockText:
			if parent == "" {
				a.lastText = block.Text
			}
		case blockToolUse:
			a.calls.start(block)
			a.phase = PhaseTool
		case blockToolResult: // only a user's message has one
		}
	}
}

func (a *accumulator) user(line []byte) {
	var event messageLine
	if !decode(line, &event) {
		return
	}
	for _, block := range event.Message.Content {
		if block.Type == blockToolResult {
			a.calls.end(block.ToolUseID, block.IsError)
		}
	}
	if !a.calls.anyRunning() {
		a.phase = PhaseThinking
	}
}

func (a *accumulator) stream(parent string, line []byte) {
	if !bytes.Contains(line, []byte(streamMessageStart)) && !bytes.Contains(line, []byte(streamMessageDelta)) &&
		(parent != "" || !a.output.wants(line)) {
		return // most lines are pieces of text; do not decode them
	}
	var event streamLine
	if !decode(line, &event) {
		return
	}
	switch event.Event.Type {
	case streamMessageStart:
		a.phase, a.apiStatus, a.unauthorized = PhaseThinking, 0, 0
		a.usage.begin(event.Event.Message.ID, parent, event.Event.Message.Model, event.Event.Message.Usage)
	case streamMessageDelta:
		a.usage.update(parent, event.Event.Usage)
	case streamBlockStart:
		a.output.begin(event.Event.Block)
	case streamBlockDelta:
		a.output.add(event.Event.Delta.JSON)
	}
}

// setLimit adds what the CLI says about a subscription's limit. A limit that is not used up ends an earlier one.
func (a *accumulator) setLimit(line []byte) {
	var event limitLine
	if !decode(line, &event) {
		return
	}
	a.limit = nil
	if event.Info.Status != limitRejected || event.Info.Credits {
		return
	}
	a.limit = &usedUp{kind: event.Info.Type}
	if event.Info.ResetsAt > 0 {
		a.limit.until = time.Unix(int64(event.Info.ResetsAt), 0).UTC()
	}
}

func (a *accumulator) result(line []byte) {
	var event resultLine
	if !decode(line, &event) {
		return
	}
	if bytes.Equal(event.Structured, []byte("null")) {
		event.Structured = nil
	}
	event.Structured = bytes.Clone(event.Structured)
	for _, d := range event.Denials {
		a.deny(d)
	}
	a.results = append(a.results, event)
	a.usage.reported = len(a.usage.calls)
	a.phase = PhaseEnding
}

// deny records a refused tool call once, although the CLI reports each refusal twice: immediately, and again in the
// result.
func (a *accumulator) deny(d denial) {
	known := func(other denial) bool { return other.ToolUseID == d.ToolUseID }
	if d.ToolUseID == "" || !slices.ContainsFunc(a.denials, known) {
		d.Tool, d.Input, _ = a.calls.masked(d.Tool, d.Input)
		a.denials = append(a.denials, d)
	}
}

// last returns the last result, or nil. The last result says how the run ended.
func (a *accumulator) last() *resultLine {
	if len(a.results) == 0 {
		return nil
	}
	return &a.results[len(a.results)-1]
}

// mainModel returns the full name of the model that the main thread used last.
func (a *accumulator) mainModel() string {
	if a.usage.lastMain != nil && a.usage.lastMain.model != "" {
		return a.usage.lastMain.model
	}
	return a.initModel
}

// add records the usage of an API call. It adds a call if the message id is new. Otherwise it updates the existing
// call.
func (m *meter) add(id, parent, model string, u usage) *apiCall {
	call := m.byID[id]
	if call == nil {
		call = &apiCall{model: strings.Clone(model), main: parent == ""}
		m.calls = append(m.calls, call)
		if m.byID == nil {
			m.byID = map[string]*apiCall{}
		}
		m.byID[strings.Clone(id)] = call
	}
	call.usage = call.usage.max(u)
	if call.main {
		m.lastMain = call
	}
	return call
}

// begin adds a call whose stream has begun.
func (m *meter) begin(id, parent, model string, u usage) {
	if m.open == nil {
		m.open = map[string]*apiCall{}
	}
	m.open[parent] = m.add(id, parent, model, u)
}

// update merges the usage in a stream event into the call that is being streamed. The argument parent is the key of
// that call in the field open.
func (m *meter) update(parent string, u usage) {
	if call := m.open[parent]; call != nil {
		call.usage = call.usage.max(u)
	}
}

// mainTokens returns the sum of the tokens of the main thread's calls.
func (m *meter) mainTokens() Tokens {
	var total Tokens
	for _, call := range m.calls {
		if call.main {
			total = total.Add(call.usage.tokens())
		}
	}
	return total
}

// turns counts the main thread's calls.
func (m *meter) turns() int {
	turns := 0
	for _, call := range m.calls {
		if call.main {
			turns++
		}
	}
	return turns
}

// context returns the number of tokens in the context window after the last message of the main thread.
func (m *meter) context() int {
	if m.lastMain == nil {
		return 0
	}
	return m.lastMain.usage.tokens().Total()
}
