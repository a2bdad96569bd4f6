package claudesim

import (
	"context"
	"fmt"
	"strings"
)

// outcome describes how a run, or one of its turns, ended. The result line reports the outcome.
type outcome struct {
	subtype    resultSubtype
	reason     string // terminal_reason
	isError    bool
	text       string // result
	structured []byte
	stopReason string
	apiError   *APIError
	errors     []string
	origin     string // the cause of the turn, if not the prompt
	exit       *int   // nil: derived from isError
	neverRan   bool   // there was no conversation
}

// resultSubtype is the subtype of a result line.
type resultSubtype string

const (
	subtypeSuccess   resultSubtype = "success"
	subtypeExecution resultSubtype = "error_during_execution"
	subtypeTurns     resultSubtype = "error_max_turns"
	subtypeBudget    resultSubtype = "error_max_budget_usd"
	subtypeSchema    resultSubtype = "error_max_structured_output_retries"
)

// reasonAPIError is the terminal_reason of an API error.
const reasonAPIError = "api_error"

// maxMismatches is the number of structured outputs that violate the schema after which the run fails.
const maxMismatches = 5

// enforceNotice is the message to a model that answered without structured output.
const enforceNotice = "[structured-output-enforce] You MUST call the StructuredOutput tool to complete this request. " +
	"Call this tool now."

// crashError is a scripted crash of the process.
type crashError struct{ Crash }

func (e *crashError) Error() string { return fmt.Sprintf("scripted crash, code %d", e.Code) }

// loop calls the model and runs its tool calls until there is an outcome. An error means that the process ends without
// an outcome.
func (s *session) loop(ctx context.Context) (outcome, error) {
	for {
		if crash := s.fault.Crash; crash != nil && s.calls >= crash.After {
			return outcome{}, &crashError{*crash}
		}
		message, failed, err := s.callModel(ctx)
		if err != nil || failed != nil {
			return deref(failed), err
		}
		s.calls++
		if s.hangs(ctx, HangAfterReply) {
			return outcome{}, context.Cause(ctx)
		}
		if s.overspent() {
			return s.overBudget(), nil
		}
		end, again := s.cut()
		if end == nil && !again {
			end = s.react(ctx, message)
		}
		if end != nil {
			return *end, nil
		}
	}
}

// Messages of the CLI to a model whose answer was cut.
const (
	safeguardNotice = "Your response above was stopped by a safety classifier — this is not a tool or API error."
	cutNotice       = "Output token limit hit. Resume directly."
)

// maxCuts is the number of answers in a row that are cut after which the run fails.
const maxCuts = 4

// cut handles an answer that a refusal or its size has cut. It returns nil and false if the answer is whole. If the
// model is asked again, again is true.
func (s *session) cut() (end *outcome, again bool) {
	s.cuts++
	switch s.stopReason {
	case StopRefusal:
		if s.cuts == 1 {
			s.say(userText(safeguardNotice), event{"isSynthetic": true})
			return nil, true
		}
		s.out.emit("system", event{
			"subtype": "model_refusal_no_fallback", "api_refusal_category": nil,
			"api_refusal_explanation": nil,
		})
		end = s.fails("API Error: the model can't help with this.", "invalid_request", reasonAPIError)
		end.stopReason = StopRefusal
		return end, false
	case StopMaxTokens:
		if s.cuts < maxCuts {
			s.say(userText(cutNotice), event{"isSynthetic": true})
			return nil, true
		}
		end = s.fails("API Error: Claude's response exceeded the output token maximum.", "max_output_tokens",
			reasonAPIError)
		return end, false
	}
	s.cuts = 0
	return nil, false
}

func deref(end *outcome) outcome {
	if end == nil {
		return outcome{}
	}
	return *end
}

// react handles the model's message. It returns nil if the loop must call the model again.
func (s *session) react(ctx context.Context, message Message) *outcome {
	var calls []Block
	text := ""
	for _, block := range message.Blocks {
		switch block.Type {
		case BlockToolUse:
			calls = append(calls, block)
		case BlockText:
			text = block.Text
		case BlockThinking:
		case BlockToolResult: // models do not send these
		}
	}
	if len(calls) == 0 {
		return s.answered(text)
	}
	for _, call := range calls {
		if end := s.useTool(ctx, call); end != nil {
			return end
		}
	}
	if s.maxTurns > 0 && s.turns > s.maxTurns {
		return &outcome{
			subtype: subtypeTurns, isError: true, reason: "max_turns", stopReason: stopToolUse,
			errors: []string{fmt.Sprintf("Reached maximum number of turns (%d)", s.maxTurns)},
		}
	}
	return nil
}

// answered handles a message without tool calls. If structured output is missing and the model was not reminded yet,
// answered reminds the model. In all other cases the message ends the run.
func (s *session) answered(text string) *outcome {
	if s.schema != nil && !s.nudged {
		s.nudged = true
		s.say(userText(enforceNotice), event{"isSynthetic": true})
		return nil
	}
	return &outcome{subtype: subtypeSuccess, reason: "completed", text: text, stopReason: stopEndTurn}
}

// structuredOutput checks a call of the StructuredOutput tool. It returns nil if the output is wrong and the model can
// try again.
func (s *session) structuredOutput(call Block) *outcome {
	problem := s.schema.check(call.Input)
	if problem == "" {
		s.say(toolResult(call, "Structured output provided successfully", false), event{})
		return &outcome{
			subtype: subtypeSuccess, reason: "completed", text: string(call.Input), structured: call.Input,
			stopReason: stopToolUse,
		}
	}
	problem = "Output does not match required schema: " + problem
	s.say(toolResult(call, problem, true), event{"tool_use_result": "Error: " + problem})
	s.mismatches++
	if s.mismatches < maxMismatches {
		return nil
	}
	s.ledger.cutShort()
	return &outcome{
		subtype: subtypeSchema, isError: true, reason: "structured_output_retry_exhausted", stopReason: stopToolUse,
		errors: []string{fmt.Sprintf("Failed to provide valid structured output after %d attempts", maxMismatches)},
	}
}

// overspent reports whether the budget is exhausted.
func (s *session) overspent() bool { return s.maxBudgetUSD > 0 && s.ledger.own() >= s.maxBudgetUSD }

func (s *session) overBudget() outcome {
	s.ledger.cutShort()
	budget := strings.TrimRight(fmt.Sprintf("%.10f", s.maxBudgetUSD), "0")
	stopReason := stopToolUse
	if s.release.cutsOverspent && s.calls == 1 {
		stopReason = ""
	}
	return outcome{
		subtype: subtypeBudget, isError: true, reason: "budget_exhausted", stopReason: stopReason,
		errors: []string{fmt.Sprintf("Reached maximum budget ($%s)", strings.TrimRight(budget, "."))},
	}
}
