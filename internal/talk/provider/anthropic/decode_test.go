package anthropic

import (
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"

	"ken/internal/talk/provider"
	"ken/internal/testkit/wiretest"
	"ken/llm"
)

// wireText makes a stream of the data of events, each one line.
func wireText(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		_, name, _ := strings.Cut(d, `"type":"`)
		name, _, _ = strings.Cut(name, `"`)
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, d)
	}
	return b.String()
}

// decode returns the chunks of a stream and its error.
func decode(text string, uses features) ([]llm.Chunk, error) {
	var chunks []llm.Chunk
	var failure error
	read(strings.NewReader(text), uses, func(c llm.Chunk, err error) bool {
		if err != nil {
			failure = err
			return false
		}
		chunks = append(chunks, c)
		return true
	})
	return chunks, failure
}

const (
	begin = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude","stop_reason":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":200,"cache_read_input_tokens":3000,"output_tokens":1}}}`
	end   = `{"type":"message_stop"}`
)

func stopped(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":42,"output_tokens_details":{"thinking_tokens":7}}}`
}

func start(index int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)
}

func delta(index int, delta string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, delta)
}

func stop(index int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index) }

// TestStreams plays recorded forms of the wire.
func TestStreams(t *testing.T) {
	wiretest.Streams(t, func(_ string, r io.Reader) iter.Seq2[llm.Chunk, error] {
		return func(yield func(llm.Chunk, error) bool) { read(r, features{}, yield) }
	})
}

// TestDecodeHalfACall: a call whose arguments were cut off before their first
// piece is not one without arguments.
func TestDecodeHalfACall(t *testing.T) {
	for _, tt := range []struct {
		reason string
		after  bool // another block comes after it
		want   string
	}{
		{"tool_use", false, "{}"}, {"end_turn", false, "{}"}, {"max_tokens", false, ""}, {"refusal", false, ""}, {"pause_turn", false, ""},
		{"max_tokens", true, "{}"},
	} {
		for _, input := range []string{``, `,"input":{}`, `,"input":{ }`, `,"input":null`} {
			for _, closed := range []bool{true, false} {
				events := []string{begin, start(0, `{"type":"tool_use","id":"1","name":"wipe"`+input+`}`)}
				if closed {
					events = append(events, stop(0))
				}
				if tt.after {
					events = append(events, start(1, `{"type":"text","text":"So"}`), stop(1))
				}
				got, err := decode(wireText(append(events, stopped(tt.reason), end)...), features{})
				var calls []string
				for _, c := range got {
					if c.Block != nil && c.Block.Call != nil {
						calls = append(calls, string(c.Block.Call.Arguments))
					}
				}
				if tt.after && !closed {
					continue // it is unknown which of the two was cut
				}
				if err != nil || len(calls) != 1 || calls[0] != tt.want {
					t.Errorf("%s%s, closed %v: calls %q, %v; want %q", tt.reason, input, closed, calls, err, tt.want)
				}
			}
		}
	}
}

// TestCallsGetIDs: a server that gives calls no ids gets results all the same.
func TestCallsGetIDs(t *testing.T) {
	got, err := decode(wireText(start(0, `{"type":"tool_use","name":"a"}`), start(1, `{"type":"tool_use","name":"a"}`), end), features{})
	if err != nil || len(got) != 3 {
		t.Fatalf("read = %+v, %v; want two calls and the end", got, err)
	}
	one, two := got[0].Block.Call.ID, got[1].Block.Call.ID
	if one == two || id(one) != one || id(two) != two {
		t.Errorf("ids %q and %q, want two that the wire takes", one, two)
	}
}

func TestMalformedStreams(t *testing.T) {
	for name, stream := range map[string]string{
		"not JSON": "data: oops\n\n", "JSON of another wire": "data: [1]\n\n", "too many blocks": strings.Repeat(wireText(start(0, `{"type":"text"}`)), mostBlocks+1),
	} {
		if _, err := decode(stream, features{}); llm.KindOf(err) != llm.Malformed {
			t.Errorf("%s: read = %v, want malformed", name, err)
		}
	}
}

func TestClassify(t *testing.T) {
	all := features{inline: true, search: true, effort: true}
	tests := []struct {
		status  int
		word    string
		message string
		uses    features
		want    llm.Kind
		feature string
	}{
		{400, "invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum", all, llm.TooLong, ""},
		{400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000", all, llm.TooLong, ""},
		{413, "request_too_large", "Request exceeds the maximum size", all, llm.TooLong, ""},
		{400, "invalid_request_error", "Your credit balance is too low", all, llm.Quota, ""},
		{402, "billing_error", "pay", all, llm.Quota, ""},
		{401, "authentication_error", "invalid x-api-key", all, llm.Auth, ""},
		{403, "permission_error", "no", all, llm.Auth, ""},
		{404, "not_found_error", "model: nope", all, llm.Invalid, ""},
		{429, "rate_limit_error", "slow down", all, llm.Rate, ""},
		{500, "api_error", "Internal server error", all, llm.Overloaded, ""},
		{504, "timeout_error", "too slow", all, llm.Overloaded, ""},
		{529, "overloaded_error", "Overloaded", all, llm.Overloaded, ""},
		{529, "new_error", "?", all, llm.Overloaded, ""},
		{400, "invalid_request_error", "messages.1: role 'system' is not supported on this model", all, llm.Unsupported, llm.Inline},
		{400, "invalid_request_error", "messages.2.content.0: Input tag 'tool_addition' found", all, llm.Unsupported, llm.Inline},
		{400, "invalid_request_error", "Unexpected value(s) `inline-tools-2026-09-15` for the `anthropic-beta` header", all, llm.Unsupported, llm.Inline},
		{400, "invalid_request_error", "tools.3.defer_loading: Extra inputs are not permitted", all, llm.Unsupported, llm.Search},
		{400, "invalid_request_error", "This model does not support the effort parameter.", all, llm.Unsupported, "effort"},
		{400, "invalid_request_error", "messages.0.role: Input should be 'user'", features{}, llm.Invalid, ""},
		{400, "invalid_request_error", "tools.0.name: String should match pattern", all, llm.Invalid, ""},
	}
	for _, tt := range tests {
		body := fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, tt.word, tt.message)
		got := tt.uses.classify(tt.status, nil, []byte(body))
		if got == nil || got.Kind != tt.want || got.Feature != tt.feature || got.Message != tt.message || got.Code != tt.word {
			t.Errorf("classify(%d, %s) = %+v, want %v %q", tt.status, body, got, tt.want, tt.feature)
		}
	}
	for _, body := range []string{"", "<html>", "{}", `{"error":"no"}`, `{"detail":"Not Found"}`} {
		if got := all.classify(500, nil, []byte(body)); got != nil {
			t.Errorf("classify(500, %q) = %+v, want nil", body, got)
		}
	}
}

// FuzzDecode: whatever a server sends is an answer, or an error.
func FuzzDecode(f *testing.F) {
	f.Add(wireText(begin, start(0, `{"type":"tool_use","id":"1","name":"a"}`), delta(0, `{"partial_json":"{"}`), stop(0), stopped("tool_use"), end))
	f.Add("data: {\"type\":\"message_stop\"}\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		wiretest.Answer(t, func(yield func(llm.Chunk, error) bool) { read(strings.NewReader(text), features{}, yield) }, New(provider.Config{}).Encode)
	})
}
