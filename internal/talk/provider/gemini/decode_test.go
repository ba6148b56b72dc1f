package gemini

import (
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"ken/internal/talk/provider"
	"ken/internal/testkit/wiretest"
	"ken/llm"
)

func said(parts, more string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]}` + more + `}]}`
}

const stop = `,"finishReason":"STOP"`

// TestStreams plays recorded forms of the wire. Two calls are in the history: ids go
// on from there.
func TestStreams(t *testing.T) {
	req := llm.Request{
		Tools:    []llm.Tool{{Name: "read"}, {Name: "read_file"}, {Name: "f"}},
		Messages: []llm.Message{assistant(call("gemini-call-2", "read", "{}", ""), call("old", "read", "{}", ""))},
	}
	wiretest.Streams(t, func(_ string, r io.Reader) iter.Seq2[llm.Chunk, error] { return decode(provider.Events(r, 1<<20), req) })
}

func FuzzDecode(f *testing.F) {
	f.Add("data: " + said(`{"text":"x","thoughtSignature":"s"},{"functionCall":{"name":"f","args":{"a":1}}}`, stop) + "\n\n")
	f.Add("data: " + said(`{"text":"x","thought":true}`, `,"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"f("`) + "\n\n")
	f.Add(`data: {"promptFeedback":{"blockReason":"SAFETY"}}` + "\n\n")
	f.Add(`data: [{"error":{"code":429}}]` + "\n\ndata: [DONE]\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		chunks := decode(provider.Events(strings.NewReader(stream), 1<<20), llm.Request{Tools: []llm.Tool{{Name: "f"}}})
		wiretest.Answer(t, chunks, func(r llm.Request) ([]byte, error) { return encode(r, newest) })
	})
}

func TestClassify(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		kind   llm.Kind
		wait   time.Duration
	}{
		{"too fast", 429, `{"error":{"code":429,"message":"You exceeded your current quota. Please retry in 17.5s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"17.5s"}]}}`, llm.Rate, 17500 * time.Millisecond},
		{"the day is used up", 429, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"retryDelay":"40s"}]}}`, llm.Quota, 40 * time.Second},
		{"no credits", 429, `{"error":{"code":429,"message":"Your prepayment credits are depleted.","status":"RESOURCE_EXHAUSTED"}}`, llm.Quota, 0},
		{"exhausted", 429, `{"error":{"code":429,"message":"Resource has been exhausted.","status":"RESOURCE_EXHAUSTED"}}`, llm.Rate, 0},
		{"too long", 400, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, llm.TooLong, 0},
		{"too large", 400, `{"error":{"code":400,"message":"Request payload size exceeds the limit: 20971520 bytes.","status":"INVALID_ARGUMENT"}}`, llm.TooLong, 0},
		{"wrong key", 400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, llm.Auth, 0},
		{"no key", 403, `{"error":{"code":403,"message":"Method doesn't allow unregistered callers.","status":"PERMISSION_DENIED"}}`, llm.Auth, 0},
		{"wrong", 400, `{"error":{"code":400,"message":"Invalid JSON payload received.","status":"INVALID_ARGUMENT"}}`, llm.Invalid, 0},
		{"does not think", 400, `{"error":{"code":400,"message":"Thinking is not supported by this model.","status":"INVALID_ARGUMENT"}}`, llm.Unsupported, 0},
		{"no such model", 404, `{"error":{"code":404,"message":"models/x is not found","status":"NOT_FOUND"}}`, llm.Invalid, 0},
		{"busy", 503, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`, llm.Overloaded, 0},
		{"broken", 500, `[{"error":{"code":500,"message":"An internal error has occurred.","status":"INTERNAL"}}]`, llm.Overloaded, 0},
		{"in the stream", 0, `{"error":{"code":429,"message":"x"}}`, llm.Rate, 0},
		{"billing", 400, `{"error":{"code":400,"message":"Please enable billing on your project.","status":"FAILED_PRECONDITION"}}`, llm.Quota, 0},
	} {
		e := classify(tt.status, nil, []byte(tt.body))
		if e == nil || e.Kind != tt.kind || e.RetryAfter != tt.wait {
			t.Errorf("classify(%s) = %+v, want %v after %v", tt.name, e, tt.kind, tt.wait)
		}
	}
	for _, body := range []string{"", "<html>", "[]", "{}", `"error"`, "[5]"} {
		if e := classify(500, nil, []byte(body)); e != nil {
			t.Errorf("classify(%q) = %+v, want nil: the status says it", body, e)
		}
	}
}
