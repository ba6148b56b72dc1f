package link

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"ken/internal/tracecontext"
)

var traceMark = []byte(`"traceparent"`)

// traced puts the trace context (W3C) of a request's metadata into its headers, where
// proxies and servers look for it. body is the first of the request's body.
func traced(req *http.Request, body []byte) *http.Request {
	if !bytes.Contains(body, traceMark) || req.Header.Get("Traceparent") != "" {
		return req
	}
	r, err := req.GetBody()
	if err != nil {
		return req
	}
	defer r.Close()
	var m struct {
		Params struct {
			Meta struct {
				Parent  string `json:"traceparent"`
				State   string `json:"tracestate"`
				Baggage string `json:"baggage"`
			} `json:"_meta"`
		} `json:"params"`
	}
	whole, err := io.ReadAll(r)
	if err != nil || json.Unmarshal(whole, &m) != nil || !tracecontext.Parent(m.Params.Meta.Parent) {
		return req
	}
	out := req.Clone(req.Context())
	out.Header.Set("Traceparent", m.Params.Meta.Parent)
	for name, value := range map[string]string{"Tracestate": m.Params.Meta.State, "Baggage": m.Params.Meta.Baggage} {
		if tracecontext.Header(value) {
			out.Header.Set(name, value)
		}
	}
	return out
}
