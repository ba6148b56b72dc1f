package mcpserver

import (
	"bytes"
	"encoding/json"
	"net/http"

	"ken/internal/tracecontext"
)

// withTrace puts the trace context (W3C) of a request's headers into the metadata of
// its body, from where it reaches servers. What the body says itself stays.
func withTrace(r *http.Request, body []byte) []byte {
	parent := r.Header.Get("Traceparent")
	if !tracecontext.Parent(parent) || bytes.Contains(body, []byte(`"traceparent"`)) {
		return body
	}
	var m, params, meta map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil || m["method"] == nil || m["id"] == nil {
		return body
	}
	if len(m["params"]) > 0 && json.Unmarshal(m["params"], &params) != nil {
		return body
	}
	if len(params["_meta"]) > 0 && json.Unmarshal(params["_meta"], &meta) != nil {
		return body
	}
	if params == nil {
		params = map[string]json.RawMessage{}
	}
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	for name, value := range map[string]string{"traceparent": parent, "tracestate": r.Header.Get("Tracestate"), "baggage": r.Header.Get("Baggage")} {
		if tracecontext.Header(value) {
			meta[name], _ = json.Marshal(value) // a text cannot fail
		}
	}
	params["_meta"], _ = json.Marshal(meta) // it was read from JSON
	m["params"], _ = json.Marshal(params)
	out, err := json.Marshal(m)
	if err != nil {
		return body
	}
	return out
}
