package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"

	"ken/llm"
)

func (gemini) usage(u llm.Usage) fields {
	m := fields{
		"promptTokenCount": u.Input, "candidatesTokenCount": u.Output - u.Thought, "totalTokenCount": u.Input + u.Output,
		"promptTokensDetails": []fields{{"modality": "TEXT", "tokenCount": u.Input}},
	}
	if u.CachedRead > 0 {
		m["cachedContentTokenCount"] = u.CachedRead
	}
	if u.Thought > 0 {
		m["thoughtsTokenCount"] = u.Thought
	}
	return m
}

// parts are what a model of Gemini's says, piece by piece.
func (gemini) parts(in *incoming, r Reply, n int) []fields {
	var list []fields
	for _, f := range fragments(r.Thought, n) {
		list = append(list, fields{"text": f, "thought": true})
	}
	for _, f := range fragments(r.Text, n) {
		list = append(list, fields{"text": f})
	}
	for i, call := range r.Calls {
		var args map[string]json.RawMessage
		if json.Unmarshal(call.Arguments, &args) != nil || args == nil {
			continue
		}
		c := fields{"name": call.Name, "args": json.RawMessage(call.Arguments)}
		if call.ID != "" {
			c["id"] = call.ID
		}
		part := fields{"functionCall": c}
		if r.Thought != "" && i == 0 {
			signature := sign(Gemini, call.Name+string(call.Arguments))
			part["thoughtSignature"] = signature
			in.server.mu.Lock()
			in.server.signed[call.ID+"/"+call.Name] = signature
			in.server.mu.Unlock()
		}
		list = append(list, part)
	}
	if r.Thought != "" && len(r.Calls) == 0 {
		list = append(list, fields{"text": "", "thoughtSignature": sign(Gemini, "")})
	}
	return list
}

func (gemini) reason(r Reply) (reason, message string) {
	for _, call := range r.Calls {
		var args map[string]json.RawMessage
		if json.Unmarshal(call.Arguments, &args) != nil || args == nil {
			return "MALFORMED_FUNCTION_CALL", "Malformed function call: " + call.Name + "(" + string(call.Arguments) + ")"
		}
	}
	switch r.Stop {
	case llm.StopLength:
		return "MAX_TOKENS", ""
	case llm.StopRefuse:
		return "SAFETY", ""
	}
	return "STOP", ""
}

func (g gemini) response(in *incoming, parts []fields, r *Reply) fields {
	candidate := fields{"index": 0}
	if len(parts) > 0 {
		candidate["content"] = fields{"role": "model", "parts": parts}
	}
	m := fields{"candidates": []fields{candidate}, "modelVersion": in.Request.Model, "responseId": "llmtest" + in.id}
	if r == nil {
		m["usageMetadata"] = fields{"promptTokenCount": 1, "totalTokenCount": 1}
		return m
	}
	reason, message := g.reason(*r)
	candidate["finishReason"] = reason
	if message != "" {
		candidate["finishMessage"] = message
	}
	m["usageMetadata"] = g.usage(r.Usage)
	return m
}

func (g gemini) play(out *sink, in *incoming, r Reply) {
	for _, part := range g.parts(in, r, r.Fragments) {
		out.fragment("", g.response(in, []fields{part}, nil))
	}
	out.finish()
	out.event("", g.response(in, []fields{{"text": ""}}, &r))
}

func (g gemini) whole(in *incoming, r Reply) any {
	return g.response(in, g.parts(in, r, 1), &r)
}

func (gemini) failure(f failure) any {
	if f.kind == "" {
		f.kind = "INVALID_ARGUMENT"
		if f.status == http.StatusNotFound {
			f.kind = "NOT_FOUND"
		}
	}
	e := fields{"code": f.status, "message": f.message, "status": f.kind}
	var details []any
	if f.detail != nil {
		details = append(details, f.detail)
	}
	if f.retry > 0 {
		details = append(details, fields{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%.9fs", f.retry.Seconds())})
	}
	if details != nil {
		e["details"] = details
	}
	return fields{"error": e}
}

func (g gemini) failed(out *sink, f failure) { out.event("", g.failure(f)) }

func quotaFailure(id string) fields {
	return fields{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []fields{{
		"quotaMetric": "generativelanguage.googleapis.com/generate_content_requests", "quotaId": id,
	}}}
}

func (gemini) fault(f Fault) failure {
	switch f {
	case Rate:
		return failure{status: http.StatusTooManyRequests, kind: "RESOURCE_EXHAUSTED", detail: quotaFailure("GenerateRequestsPerMinutePerProjectPerModel"),
			message: "Resource exhausted. Please try again later."}
	case Overloaded:
		return failure{status: http.StatusServiceUnavailable, kind: "UNAVAILABLE", message: "The model is overloaded. Please try again later."}
	case TooLong:
		return failure{status: http.StatusBadRequest, kind: "INVALID_ARGUMENT",
			message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}
	case Auth:
		return failure{status: http.StatusBadRequest, kind: "INVALID_ARGUMENT", message: "API key not valid. Please pass a valid API key.",
			detail: fields{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}}
	case Quota:
		return failure{status: http.StatusTooManyRequests, kind: "RESOURCE_EXHAUSTED", detail: quotaFailure("GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
			message: "You exceeded your current quota, please check your plan and billing details."}
	case UnsupportedInline, UnsupportedSearch:
		return failure{status: http.StatusBadRequest, kind: "INVALID_ARGUMENT", message: "The wire has no such thing."}
	}
	return failure{status: http.StatusInternalServerError, kind: "INTERNAL", message: "An internal error has occurred. Please retry."}
}
