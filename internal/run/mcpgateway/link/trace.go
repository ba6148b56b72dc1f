package link

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
)

var (
	traceMark   = []byte(`"traceparent"`)
	traceParent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)
)

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
	if err != nil || json.Unmarshal(whole, &m) != nil || !traceParent.MatchString(m.Params.Meta.Parent) {
		return req
	}
	out := req.Clone(req.Context())
	out.Header.Set("Traceparent", m.Params.Meta.Parent)
	for name, value := range map[string]string{"Tracestate": m.Params.Meta.State, "Baggage": m.Params.Meta.Baggage} {
		if tracePart(value) {
			out.Header.Set(name, value)
		}
	}
	return out
}

// tracePart reports whether a text can be a header with trace context.
func tracePart(s string) bool {
	return s != "" && len(s) <= 8192 && !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' })
}
