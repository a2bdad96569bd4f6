package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

// eventType is the type of a line of the stream.
type eventType string

// These are the types of lines that this package uses. It ignores all other types, because every version of the CLI
// adds some.
const (
	eventSystem    eventType = "system"
	eventAssistant eventType = "assistant"
	eventUser      eventType = "user"
	eventStream    eventType = "stream_event"
	eventResult    eventType = "result"
	eventLimit     eventType = "rate_limit_event" // only for the accounts of a subscription
)

// systemSubtype is the subtype of a system event.
type systemSubtype string

const (
	systemInit             systemSubtype = "init"
	systemRetry            systemSubtype = "api_retry"
	systemDenied           systemSubtype = "permission_denied"
	systemTaskStarted      systemSubtype = "task_started"
	systemTaskNotification systemSubtype = "task_notification"
	systemCompacted        systemSubtype = "compact_boundary"
	systemRefusal          systemSubtype = "model_refusal_no_fallback"
)

// envelope has the fields that all lines share.
type envelope struct {
	Type      eventType     `json:"type"`
	Subtype   systemSubtype `json:"subtype"`
	SessionID string        `json:"session_id"`
	// Parent is the tool call that started the subagent of this line; empty for the main thread.
	Parent string `json:"parent_tool_use_id"`
}

// systemLine has the used fields of system events.
type systemLine struct {
	Model       string `json:"model"`
	CLIVersion  string `json:"claude_code_version"`
	ErrorStatus count  `json:"error_status"`
	ToolName    string `json:"tool_name"`
	ToolUseID   string `json:"tool_use_id"`
	TaskID      string `json:"task_id"`
	// RefusalCategory and Refusal say why the model refused, if the API says it.
	RefusalCategory string `json:"api_refusal_category"`
	Refusal         string `json:"api_refusal_explanation"`
}

// limitLine says how much of a subscription's limit is used.
type limitLine struct {
	Info struct {
		Status   limitStatus `json:"status"`
		ResetsAt count       `json:"resetsAt"` // Unix time in seconds
		Type     string      `json:"rateLimitType"`
		// Credits reports that the account pays for its calls beyond the limit, so that they succeed.
		Credits bool `json:"isUsingOverage"`
	} `json:"rate_limit_info"`
}

// limitStatus is the status of a subscription's limit.
type limitStatus string

const limitRejected limitStatus = "rejected"

// messageLine is a message of an assistant or a user, or one content block of such a message.
type messageLine struct {
	Message struct {
		ID      string         `json:"id"`
		Model   string         `json:"model"`
		Content []contentBlock `json:"content"`
		Usage   usage          `json:"usage"`
	} `json:"message"`
	// Error is the class of the API error, in a message that the CLI wrote instead of the model.
	Error apiErrorClass `json:"error"`
	// Details says more about an error of the class max_output_tokens. Old versions do not print it.
	Details struct {
		Cut cutReason `json:"cut"`
	} `json:"api_error_params"`
}

// syntheticModel is the model name in messages that the CLI itself wrote.
const syntheticModel = "<synthetic>"

// contentBlock is one block of a message's content.
type contentBlock struct {
	Type      blockType       `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
}

// blockType is the kind of a content block.
type blockType string

const (
	blockText       blockType = "text"
	blockToolUse    blockType = "tool_use"
	blockToolResult blockType = "tool_result"
)

// streamLine is an event of the API's own stream, which the CLI passes through.
type streamLine struct {
	Event struct {
		Type  streamType   `json:"type"`
		Block contentBlock `json:"content_block"`
		Delta struct {
			// JSON is a piece of a tool call's input.
			JSON string `json:"partial_json"`
		} `json:"delta"`
		Message struct {
			ID    string `json:"id"`
			Model string `json:"model"`
			Usage usage  `json:"usage"`
		} `json:"message"`
		Usage usage `json:"usage"`
	} `json:"event"`
}

// streamType is the kind of an API stream event.
type streamType string

const (
	streamMessageStart streamType = "message_start" // has the input tokens; its output tokens are a placeholder
	streamMessageDelta streamType = "message_delta" // has the output tokens
	streamBlockStart   streamType = "content_block_start"
	streamBlockDelta   streamType = "content_block_delta"
)

// resultLine holds the fields of a result line that this package uses. A stream can have no result line, one or
// several. If background work ends after a result, the CLI makes another turn and prints another result.
type resultLine struct {
	Subtype        resultSubtype   `json:"subtype"`
	IsError        bool            `json:"is_error"`
	Text           string          `json:"result"`
	Errors         []string        `json:"errors"`
	Structured     json.RawMessage `json:"structured_output"`
	Turns          count           `json:"num_turns"`
	APIStatus      count           `json:"api_error_status"`
	TerminalReason terminalReason  `json:"terminal_reason"`
	StopReason     stopReason      `json:"stop_reason"`
	// Usage and Turns cover the time since the previous result line. TotalCostUSD covers the whole run so far.
	Usage        usage                 `json:"usage"`
	TotalCostUSD dollars               `json:"total_cost_usd"`
	ModelUsage   map[string]modelUsage `json:"modelUsage"`
	// SinceLastResult is nil if the version does not report it.
	SinceLastResult map[string]modelUsage `json:"model_usage_since_last_result"`
	Denials         []denial              `json:"permission_denials"`
}

// resultSubtype is the way a run ended.
type resultSubtype string

const (
	resultSuccess      resultSubtype = "success" // also used for API errors, with is_error set
	resultMaxTurns     resultSubtype = "error_max_turns"
	resultMaxBudget    resultSubtype = "error_max_budget_usd"
	resultSchemaNotMet resultSubtype = "error_max_structured_output_retries"
)

// terminalReason is the CLI's reason for the end of a run. It is more specific than resultSubtype.
type terminalReason string

const reasonPromptTooLong terminalReason = "prompt_too_long"

// stopReason is the API's reason for the end of the last answer.
type stopReason string

const stopRefusal stopReason = "refusal"

// cutReason names the limit that cut an answer.
type cutReason string

const cutByWindow cutReason = "context_window"

// apiErrorClass is the CLI's own classification of an API error.
type apiErrorClass string

const (
	classAuthentication apiErrorClass = "authentication_failed"
	classRateLimit      apiErrorClass = "rate_limit"
	classOverloaded     apiErrorClass = "overloaded"
	classServerError    apiErrorClass = "server_error" // also used if there is no connection
	classBilling        apiErrorClass = "billing_error"
	classAnswerTooLong  apiErrorClass = "max_output_tokens"
)

type modelUsage struct {
	CostUSD       dollars `json:"costUSD"`
	ContextWindow count   `json:"contextWindow"`
}

type denial struct {
	Tool      string          `json:"tool_name"`
	ToolUseID string          `json:"tool_use_id"`
	Input     json.RawMessage `json:"tool_input"`
}

// usage is the API's token count of one call.
type usage struct {
	Input         count `json:"input_tokens"`
	Output        count `json:"output_tokens"`
	CacheRead     count `json:"cache_read_input_tokens"`
	CacheCreation count `json:"cache_creation_input_tokens"`
	// Creation splits CacheCreation by the time for which the cache keeps the tokens.
	Creation struct {
		OneHour count `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	// ServerTools counts the tools that the API itself ran.
	ServerTools struct {
		WebSearches count `json:"web_search_requests"`
	} `json:"server_tool_use"`
}

// tokens returns the four token counts of u, without Creation and ServerTools.
func (u usage) tokens() Tokens {
	return Tokens{
		Input:         int(u.Input),
		Output:        int(u.Output),
		CacheRead:     int(u.CacheRead),
		CacheCreation: int(u.CacheCreation),
	}
}

// max returns a usage with the larger value of each count in u and other. During a call the counts only grow, but a
// later report sometimes omits some of them.
func (u usage) max(other usage) usage {
	merged := usage{
		Input:         max(u.Input, other.Input),
		Output:        max(u.Output, other.Output),
		CacheRead:     max(u.CacheRead, other.CacheRead),
		CacheCreation: max(u.CacheCreation, other.CacheCreation),
	}
	merged.Creation.OneHour = max(u.Creation.OneHour, other.Creation.OneHour)
	merged.ServerTools.WebSearches = max(u.ServerTools.WebSearches, other.ServerTools.WebSearches)
	return merged
}

const (
	maxCount   = 1e12
	maxDollars = 1e9
)

// count is a number of things. A value that is not a number between 0 and maxCount is read as 0. Otherwise a stream
// could make a sum overflow or shrink.
type count int

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (c *count) UnmarshalJSON(text []byte) error {
	*c = count(boundedNumber(text, maxCount))
	return nil
}

// dollars is an amount in US dollars. If a value is not a number between 0 and maxDollars, it is read as 0.
type dollars float64

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (d *dollars) UnmarshalJSON(text []byte) error {
	*d = dollars(boundedNumber(text, maxDollars))
	return nil
}

func (d dollars) usd() float64 { return float64(d) }

// boundedNumber returns the JSON number in text, or 0 if text is not a number between 0 and limit.
func boundedNumber(text []byte, limit float64) float64 {
	number, err := strconv.ParseFloat(string(bytes.TrimSpace(text)), 64)
	if err != nil || math.IsNaN(number) || number < 0 || number > limit {
		return 0
	}
	return number
}

// decode reads line into target. It skips fields of an unexpected type and keeps the others. It returns false if line
// is not JSON.
func decode(line []byte, target any) bool {
	err := json.Unmarshal(line, target)
	var mismatch *json.UnmarshalTypeError
	return err == nil || errors.As(err, &mismatch)
}
