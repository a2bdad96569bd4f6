package claudesim

import (
	"encoding/json"
	"time"
)

// conclude prints the result of a run. The fault can omit, change or repeat the result.
func (s *session) conclude(end outcome) {
	s.conversation.write(map[string]any{"type": "last-prompt", "lastPrompt": s.prompt, "sessionId": s.id})
	if s.fault.OmitResult {
		return
	}
	s.emitResult(end)
	for range s.fault.RepeatResult {
		s.emitResult(end)
	}
	s.denials = nil // each result lists only the denials since the previous one
}

// emitResult prints one result line.
func (s *session) emitResult(end outcome) {
	since, usage := s.ledger.takeSince()
	totals := s.ledger.totals(s.fault.Cost)
	elapsed := time.Since(s.started).Milliseconds()
	line := event{
		"subtype": end.subtype, "is_error": end.isError, "num_turns": s.turns, "stop_reason": nil,
		"duration_ms": elapsed, "duration_api_ms": elapsed,
		"total_cost_usd": totals.TotalCostUSD, "usage": usage.wire(), "modelUsage": s.shown(totals.ModelUsage),
		"permission_denials": s.denied(), "result_index": s.results,
	}
	end.describe(line)
	if len(end.structured) > 0 && !s.fault.OmitStructured {
		line["structured_output"] = json.RawMessage(end.structured)
	}
	if s.release.reportsOwn {
		if !end.neverRan {
			line["model_usage_since_last_result"] = s.shown(since)
		}
		if e := end.apiError; e != nil && e.Status != StatusRefused {
			line["api_error_type"] = e.kind()
		}
	}
	s.out.emit("result", line)
	s.results++
	s.turns = 1
}

// describe adds fields to a result line: the fields that only some outcomes have.
func (end outcome) describe(line event) {
	if end.stopReason != "" {
		line["stop_reason"] = end.stopReason
	}
	if end.reason != "" {
		line["terminal_reason"] = end.reason
	}
	if end.subtype == subtypeSuccess {
		line["result"], line["api_error_status"] = end.text, nil
	}
	if e := end.apiError; e != nil && e.Status != StatusRefused {
		line["api_error_status"] = e.Status
	}
	if end.errors != nil {
		line["errors"] = end.errors
	}
	if end.origin != "" {
		line["origin"] = map[string]string{"kind": end.origin}
	}
}

// shown returns usage without the fields that the fault omits.
func (s *session) shown(usage map[string]modelUsage) map[string]modelUsage {
	if s.fault.OmitWindow {
		for id, entry := range usage {
			entry.ContextWindow = 0
			usage[id] = entry
		}
	}
	return usage
}

func (s *session) denied() []map[string]any {
	if s.denials == nil {
		return []map[string]any{}
	}
	return s.denials
}
