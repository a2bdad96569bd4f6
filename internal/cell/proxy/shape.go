package proxy

// shape describes a value in a request. A value of no other kind passes, except null.
type shape struct {
	// scalar permits a string, a number or a truth value. members permits an object with these members.
	scalar  bool
	members map[string]shape
	// list means that the value is a list of what the other fields permit.
	list bool
	// opaque permits every value, unread.
	opaque bool
}

// requestShape returns what a session may send: what the measured versions of the CLI send, and what chooses a model,
// which the proxy compares with the session's. Other members can make the API run programs (mcp_servers, container),
// charge other prices (speed, service_tier, inference_geo) or choose the model itself (a word for fallbacks). The
// conversation, the system prompt and the input schemas of tools are opaque: they name no model, and make up most of a
// request.
func requestShape() shape {
	scalar, scalars, opaque := shape{scalar: true}, shape{scalar: true, list: true}, shape{opaque: true}
	object := func(members map[string]shape) shape { return shape{members: members} }
	each := func(members map[string]shape) shape { return shape{members: members, list: true} }
	amount := shape{scalar: true, members: map[string]shape{"type": scalar, "value": scalar}}
	cache := object(map[string]shape{"type": scalar, "ttl": scalar, "scope": scalar})
	format := object(map[string]shape{"type": scalar, "schema": opaque})
	return object(map[string]shape{
		"model": scalar, "messages": opaque, "system": opaque, "max_tokens": scalar, "stream": scalar,
		"temperature": scalar, "top_p": scalar, "top_k": scalar, "stop_sequences": scalars, "cache_control": cache,
		"metadata": object(map[string]shape{"user_id": scalar}),
		"tools": each(map[string]shape{
			"type": scalar, "name": scalar, "description": scalar, "input_schema": opaque, "cache_control": cache,
			"strict": scalar, "eager_input_streaming": scalar, "defer_loading": scalar,
			"max_uses": scalar, "allowed_domains": scalars, "blocked_domains": scalars, // of the web search
		}),
		"tool_choice":   object(map[string]shape{"type": scalar, "name": scalar, "disable_parallel_tool_use": scalar}),
		"thinking":      object(map[string]shape{"type": scalar, "budget_tokens": scalar, "display": scalar}),
		"output_config": object(map[string]shape{"effort": scalar, "format": format}),
		"output_format": format,
		"context_management": object(map[string]shape{"edits": each(map[string]shape{
			"type": scalar, "keep": amount, "trigger": amount, "clear_at_least": amount,
			"clear_tool_inputs": scalar, "exclude_tools": scalars,
		})}),
		"diagnostics": object(map[string]shape{"previous_message_id": scalar}),
		"fallbacks":   each(map[string]shape{"model": scalar}),
	})
}
