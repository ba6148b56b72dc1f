package llmtest

import (
	"encoding/json"
	"net/http"

	"ken/llm"
)

func (messages) usage(u llm.Usage, output int) fields {
	return fields{
		"input_tokens":                u.Input - u.CachedRead - u.CachedWrite,
		"cache_read_input_tokens":     u.CachedRead,
		"cache_creation_input_tokens": u.CachedWrite,
		"cache_creation":              fields{"ephemeral_5m_input_tokens": u.CachedWrite, "ephemeral_1h_input_tokens": 0},
		"output_tokens":               output,
		"output_tokens_details":       fields{"thinking_tokens": min(u.Thought, output)},
		"service_tier":                "standard",
	}
}

func (messages) stop(s llm.StopReason) string {
	return map[llm.StopReason]string{
		llm.StopEnd: "end_turn", llm.StopCalls: "tool_use", llm.StopLength: "max_tokens", llm.StopRefuse: "refusal",
	}[s]
}

func (m messages) play(out *sink, in *incoming, r Reply) {
	send := func(name string, data fields) {
		data["type"] = name
		out.event(name, data)
	}
	send("message_start", fields{"message": fields{
		"id": "msg_" + in.id, "type": "message", "role": "assistant", "model": in.Request.Model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": m.usage(r.Usage, min(1, r.Usage.Output)),
	}})
	index := 0
	block := func(start fields, delta, field, text string, end ...fields) {
		send("content_block_start", fields{"index": index, "content_block": start})
		if index == 0 {
			send("ping", fields{})
		}
		for _, f := range fragments(text, r.Fragments) {
			send("content_block_delta", fields{"index": index, "delta": fields{"type": delta, field: f}})
			out.said()
		}
		for _, d := range end {
			send("content_block_delta", fields{"index": index, "delta": d})
		}
		send("content_block_stop", fields{"index": index})
		index++
	}
	if r.Thought != "" {
		block(fields{"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking", r.Thought,
			fields{"type": "signature_delta", "signature": sign(Messages, r.Thought)})
	}
	if r.Text != "" {
		block(fields{"type": "text", "text": ""}, "text_delta", "text", r.Text)
	}
	for i, call := range r.Calls {
		block(fields{"type": "tool_use", "id": callID("toolu_", in, i, call), "name": call.Name, "input": fields{}},
			"input_json_delta", "partial_json", string(call.Arguments))
	}
	out.finish()
	usage := m.usage(r.Usage, r.Usage.Output)
	delete(usage, "cache_creation")
	delete(usage, "service_tier")
	send("message_delta", fields{"delta": fields{"stop_reason": m.stop(r.Stop), "stop_sequence": nil}, "usage": usage})
	send("message_stop", fields{})
}

func (m messages) whole(in *incoming, r Reply) any {
	content := []fields{}
	if r.Thought != "" {
		content = append(content, fields{"type": "thinking", "thinking": r.Thought, "signature": sign(Messages, r.Thought)})
	}
	if r.Text != "" {
		content = append(content, fields{"type": "text", "text": r.Text})
	}
	for i, call := range r.Calls {
		content = append(content, fields{"type": "tool_use", "id": callID("toolu_", in, i, call), "name": call.Name, "input": asObject(call.Arguments)})
	}
	return fields{
		"id": "msg_" + in.id, "type": "message", "role": "assistant", "model": in.Request.Model, "content": content,
		"stop_reason": m.stop(r.Stop), "stop_sequence": nil, "usage": m.usage(r.Usage, r.Usage.Output),
	}
}

// asObject is arguments where the wire has no text for them: {} for what is no
// object.
func asObject(raw []byte) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil || m == nil {
		return json.RawMessage("{}")
	}
	return raw
}

func (messages) failure(f failure) any {
	if f.kind == "" {
		f.kind = "invalid_request_error"
		if f.status == http.StatusNotFound {
			f.kind = "not_found_error"
		}
	}
	return fields{"type": "error", "error": fields{"type": f.kind, "message": f.message}, "request_id": "req_llmtest"}
}

func (m messages) failed(out *sink, f failure) { out.event("error", m.failure(f)) }

func (messages) fault(f Fault) failure {
	switch f {
	case Rate:
		return failure{status: http.StatusTooManyRequests, kind: "rate_limit_error",
			message: "This request would exceed your account's rate limit. Please try again later."}
	case Overloaded:
		return failure{status: 529, kind: "overloaded_error", message: "Overloaded"}
	case TooLong:
		return failure{status: http.StatusBadRequest, kind: "invalid_request_error", message: "prompt is too long: 213462 tokens > 200000 maximum"}
	case Auth:
		return failure{status: http.StatusUnauthorized, kind: "authentication_error", message: "invalid x-api-key"}
	case Quota:
		return failure{status: http.StatusBadRequest, kind: "invalid_request_error",
			message: "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}
	case UnsupportedInline:
		return failure{status: http.StatusBadRequest, kind: "invalid_request_error",
			message: "messages.1.content.0: 'tool_addition' blocks are not supported on this model."}
	case UnsupportedSearch:
		return failure{status: http.StatusBadRequest, kind: "invalid_request_error",
			message: "'tool_reference' blocks and 'defer_loading' are not supported on this model."}
	}
	return failure{status: http.StatusInternalServerError, kind: "api_error", message: "Internal server error"}
}
