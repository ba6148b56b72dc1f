package gemini

import (
	"io"
	"iter"
	"strings"
	"testing"

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
