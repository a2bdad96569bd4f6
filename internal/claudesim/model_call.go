package claudesim

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// retryPause is the pause between attempts at a model call. The real CLI starts with a pause of half a second, and
// doubles it after each attempt. Tests do not need that wait.
const retryPause = 5 * time.Millisecond

// callModel makes one model call with its retries. It prints the model's message and adds the message to the
// conversation. If the API fails permanently, callModel returns an outcome. If a signal arrives first, it returns an
// error.
func (s *session) callModel(ctx context.Context) (Message, *outcome, error) {
	request := s.request()
	for attempt := 1; ; attempt++ {
		reply := s.scenario.play(request, s.records.count("call-"+request.fingerprint()))
		if reply.Error != nil && reply.Error.Status == StatusNoLogin {
			return Message{}, s.fails("Not logged in · Please run /login", "authentication_failed", reasonAPIError), nil
		}
		s.records.add(requestsFile, request)
		if !sleep(ctx, reply.Delay.Std()) {
			return Message{}, nil, s.interruptedCall(ctx)
		}
		if reply.Error == nil {
			message, err := s.receive(request, reply)
			return message, nil, err
		}
		if !s.retry(*reply.Error, attempt) {
			return Message{}, s.apiFailed(*reply.Error), nil
		}
		if !sleep(ctx, retryPause) {
			return Message{}, nil, s.interruptedCall(ctx)
		}
	}
}

// interruptedCall handles a signal that arrived during a model call, and returns the signal as an error.
func (s *session) interruptedCall(ctx context.Context) error {
	s.say(userText("[Request interrupted by user]"), event{})
	return context.Cause(ctx)
}

// sleep waits for d. It returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// receive prints the reply in the CLI's form, one line for each block. It also adds the reply to the conversation.
func (s *session) receive(request Request, reply Reply) (Message, error) {
	blocks, err := reply.blocks(request)
	if err != nil {
		return Message{}, err
	}
	for i := range blocks {
		if blocks[i].Type == BlockText {
			blocks[i].Text = s.out.pad(blocks[i].Text)
		}
	}
	message := newWireMessage(request, blocks, reply.usage()).stoppedBy(reply.Stop)
	s.stopReason = reply.Stop
	message.pause = reply.PieceDelay.Std()
	if reply.CreditsUntil != 0 {
		s.emitLimit(reply.CreditsUntil, "five_hour", true)
	}
	s.ledger.add(s.model, reply.usage())
	s.emitMessage(message)
	received := Message{Role: RoleAssistant, Blocks: blocks}
	s.conversation.messages = append(s.conversation.messages, received)
	for _, block := range message.Content {
		s.conversation.writeMessage(RoleAssistant, withContent(message, block), s.stamp())
	}
	return received, nil
}

// withContent returns message in the API's form, with block as its only content.
func withContent(message wireMessage, block map[string]any) map[string]any {
	return map[string]any{
		"id": message.ID, "type": message.Type, "role": message.Role, "model": message.Model,
		"content": []map[string]any{block}, "stop_reason": message.StopReason, "stop_sequence": nil,
		"usage": message.Usage,
	}
}

// emitMessage prints an assistant's message, one line for each block. In these lines the number of output tokens is the
// API's placeholder. If the command line asks for partial messages, emitMessage also prints stream events.
func (s *session) emitMessage(message wireMessage) {
	s.emitStream(message.opening())
	for i, block := range message.Content {
		parts, end := message.blockEvents(i)
		for _, part := range parts {
			time.Sleep(message.pause)
			s.emitStream(part)
		}
		unfinished := message
		unfinished.StopReason, unfinished.Usage.OutputTokens = nil, 1
		s.out.assistant(withContent(unfinished, block), nil)
		s.emitStream(end)
	}
	if !s.release.cutsOverspent || !s.overspent() {
		s.emitStream(message.closing()...)
	}
}

func (s *session) emitStream(events ...streamEvent) {
	if !s.partial {
		return
	}
	for _, e := range events {
		s.out.emit("stream_event", event{"event": e, "parent_tool_use_id": nil})
	}
}

// retry reports whether another attempt follows after the error e. If so, retry prints an announcement, except after
// the statuses 400 and 404.
func (s *session) retry(e APIError, attempt int) bool {
	limit := s.maxRetries()
	switch {
	case e.tooLong(), e.LimitedUntil != 0, e.final():
		return false
	case e.Status == http.StatusNotFound:
		return attempt == 1 // without an announcement
	case e.Status == http.StatusBadRequest:
		return attempt <= s.release.quietRetries // without an announcement
	case e.Status == 529:
		limit = min(limit, 2)
	}
	if attempt > limit {
		return false
	}
	var status any
	if e.Status != StatusRefused {
		status = e.Status
	}
	s.out.emit("system", event{
		"subtype": "api_retry", "attempt": attempt, "max_retries": limit, "error_status": status,
		"retry_delay_ms": retryPause.Milliseconds(), "error": e.category(),
	})
	return true
}

// limitKind returns the API's name for the limit of an account.
func (e APIError) limitKind() string { return cmp.Or(e.LimitKind, "five_hour") }

// category returns the CLI's name for the failure.
func (e APIError) category() string {
	switch {
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return "authentication_failed"
	case strings.Contains(strings.ToLower(e.Message), "credit balance is too low"):
		return "billing_error"
	case e.Status == http.StatusNotFound:
		return "model_not_found"
	case e.Status == http.StatusTooManyRequests:
		return "rate_limit"
	case e.tooLong():
		return "invalid_request"
	case e.Status >= 500 || e.Status == StatusRefused:
		return "server_error"
	default:
		return "unknown"
	}
}

// final reports whether the CLI knows from the message that no retry helps.
func (e APIError) final() bool {
	message := strings.ToLower(e.Message)
	return e.Status == http.StatusBadRequest &&
		(strings.Contains(message, "credit balance is too low") || strings.Contains(message, "signature"))
}

// tooLong reports whether the conversation exceeds the model's window.
func (e APIError) tooLong() bool {
	return e.Status == http.StatusBadRequest && strings.Contains(strings.ToLower(e.Message), "prompt is too long")
}

// sentence returns the CLI's message to a person about the failure.
func (e APIError) sentence() string {
	switch {
	case e.tooLong():
		return "Prompt is too long"
	case e.Status == http.StatusUnauthorized:
		return fmt.Sprintf("Failed to authenticate. API Error: 401 %s", e.text())
	case e.Status == http.StatusTooManyRequests:
		return fmt.Sprintf("API Error: Request rejected (429) · %s", e.text())
	case e.Status == StatusRefused:
		return "API Error: Unable to connect to API"
	default:
		return fmt.Sprintf("API Error: %d %s", e.Status, e.text())
	}
}

// apiFailed prints the message that the CLI shows instead of the model's message when the API has failed. It returns
// the outcome. The transcript keeps the message, so that the conversation can be resumed.
func (s *session) apiFailed(e APIError) *outcome {
	if e.LimitedUntil != 0 {
		s.emitLimit(e.LimitedUntil, e.limitKind(), false)
	}
	reason := reasonAPIError
	if e.tooLong() {
		reason = "prompt_too_long"
	}
	end := s.fails(e.sentence(), e.category(), reason)
	end.apiError = &e
	return end
}

// emitLimit says that a limit of the account is used up, and whether the account pays for what it uses beyond it. The
// CLI says so only for the accounts of a subscription.
func (s *session) emitLimit(until int64, kind string, credits bool) {
	if s.env["CLAUDE_CODE_OAUTH_TOKEN"] != "" {
		s.out.emit("rate_limit_event", event{"rate_limit_info": map[string]any{
			"status": "rejected", "resetsAt": until, "rateLimitType": kind, "isUsingOverage": credits,
		}})
	}
}

// fails prints the message that the CLI shows instead of the model's message, with the class of the error. It returns
// the outcome.
func (s *session) fails(sentence, class, reason string) *outcome {
	text := Block{Type: BlockText, Text: sentence}
	message := newWireMessage(Request{Model: "<synthetic>", Messages: s.conversation.messages}, []Block{text}, Usage{})
	stop := "stop_sequence"
	message.StopReason = &stop
	line := withContent(message, text.wire())
	s.out.assistant(line, event{"error": class, "is_api_error_message": true})
	s.conversation.writeMessage(RoleAssistant, line, s.stamp())
	s.conversation.messages = append(s.conversation.messages, Message{Role: RoleAssistant, Blocks: []Block{text}})
	return &outcome{subtype: subtypeSuccess, isError: true, reason: reason, text: text.Text, stopReason: stop}
}
