package gemini

import (
	"fmt"
	"strings"
	"testing"

	"ken/internal/talk/provider"
	"ken/internal/testkit/wiretest"
	"ken/llm"
)

// play decodes events that are given without their frame.
func play(req llm.Request, events ...string) (chunks []llm.Chunk, err error) {
	stream := ""
	for _, e := range events {
		stream += "data: " + e + "\r\n\r\n"
	}
	return drain(stream, req)
}

func drain(stream string, req llm.Request) (chunks []llm.Chunk, err error) {
	for c, e := range decode(provider.Events(strings.NewReader(stream), 1<<20), req) {
		if e != nil {
			return chunks, e
		}
		chunks = append(chunks, c)
	}
	return chunks, nil
}

// show writes chunks in one line each.
func show(chunks []llm.Chunk) string {
	var lines []string
	for _, c := range chunks {
		switch {
		case c.Text != "":
			lines = append(lines, fmt.Sprintf("text %q", c.Text))
		case c.Thought != "":
			lines = append(lines, fmt.Sprintf("thought %q", c.Thought))
		case c.Block != nil && c.Block.Call != nil:
			call := c.Block.Call
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("CALL %s %s %s %s", call.ID, call.Name, call.Arguments, call.Opaque)))
		case c.Block != nil && c.Block.Reasoning != nil:
			lines = append(lines, fmt.Sprintf("REASON %q %s", c.Block.Reasoning.Text, c.Block.Reasoning.Opaque))
		case c.Block != nil:
			lines = append(lines, fmt.Sprintf("TEXT %q", c.Block.Text))
		default:
			u := c.Usage
			lines = append(lines, fmt.Sprintf("stop %s in %d read %d out %d thought %d", c.Stop, u.Input, u.CachedRead, u.Output, u.Thought))
		}
	}
	return strings.Join(lines, "\n")
}

func said(parts, more string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]}` + more + `}]}`
}

const stop = `,"finishReason":"STOP"`

func TestDecode(t *testing.T) {
	tools := []llm.Tool{{Name: "read"}, {Name: "read_file"}}
	for _, tt := range []struct {
		name   string
		events []string
		want   string
	}{
		{
			"text in pieces",
			[]string{
				said(`{"text":"Hel"}`, ""),
				`{"candidates":[{"content":{"parts":[{"text":"lo"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":7,"thoughtsTokenCount":5,"toolUsePromptTokenCount":3,"totalTokenCount":115},"modelVersion":"x"}`,
			},
			"text \"Hel\"\ntext \"lo\"\nTEXT \"Hello\"\nstop end in 103 read 60 out 12 thought 5",
		},
		{
			"thoughts, text and calls",
			[]string{
				said(`{"text":"I ","thought":true}`, ""), said(`{"text":"think","thought":true}`, ""), said(`{"text":"Well."}`, ""),
				said(`{"functionCall":{"name":"read","args":{"p":1}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"read"}}`, ""),
				said(`{"functionCall":{"id":"wire-1","name":"read","args":null}}`, stop),
			},
			"thought \"I \"\nthought \"think\"\n" + `REASON "I think" {"text":"I think","thought":true}` + "\ntext \"Well.\"\nTEXT \"Well.\"\n" +
				"CALL gemini-call-3 read {\"p\":1} {\"thoughtSignature\":\"c2ln\"}\nCALL gemini-call-4 read {}\nCALL wire-1 read {}\nstop calls in 0 read 0 out 0 thought 0",
		},
		{
			"a signature on a text, on an empty one and on a thought",
			[]string{
				said(`{"text":"hm","thought":true,"thoughtSignature":"t"}`, ""), said(`{"text":"a"}`, ""),
				said(`{"text":"b","thoughtSignature":"s"}`, ""), said(`{"text":"","thoughtSignature":"e"}`, stop),
			},
			"thought \"hm\"\n" + `REASON "hm" {"text":"hm","thought":true,"thoughtSignature":"t"}` + "\ntext \"a\"\nTEXT \"a\"\ntext \"b\"\nTEXT \"b\"\n" +
				`REASON "" {"thoughtSignature":"s"}` + "\n" + `REASON "" {"text":"","thoughtSignature":"e"}` + "\nstop end in 0 read 0 out 0 thought 0",
		},
		{
			"parts of other kinds are kept",
			[]string{said(`{"text":"x"},{"executableCode":{"code":"1"}},{"inlineData":{"mimeType":"image/png","data":"cHg="},"thoughtSignature":"i"}`, stop)},
			"text \"x\"\nTEXT \"x\"\n" + `REASON "" {"executableCode":{"code":"1"}}` + "\n" + `REASON "" {"thoughtSignature":"i","inlineData":{"mimeType":"image/png","data":"cHg="}}` + "\nstop end in 0 read 0 out 0 thought 0",
		},
		{"an id twice", []string{said(`{"functionCall":{"id":"old","name":"a"}},{"functionCall":{"id":"a b","name":"a"}}`, stop)},
			"CALL gemini-call-3 a {}\nCALL gemini-call-4 a {}\nstop calls in 0 read 0 out 0 thought 0"},
		{"length", []string{said(`{"text":"x"}`, `,"finishReason":"MAX_TOKENS"`)}, "text \"x\"\nTEXT \"x\"\nstop length in 0 read 0 out 0 thought 0"},
		{"safety", []string{said("", `,"finishReason":"SAFETY"`)}, "stop refused in 0 read 0 out 0 thought 0"},
		{"recitation", []string{said("", `,"finishReason":"RECITATION"`)}, "stop refused in 0 read 0 out 0 thought 0"},
		{"a reason of tomorrow", []string{said("", `,"finishReason":"BAD_WEATHER"`)}, "stop refused in 0 read 0 out 0 thought 0"},
		{"the prompt was blocked", []string{`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":9}}`}, "stop refused in 9 read 0 out 0 thought 0"},
		{
			"a call that the provider could not read",
			[]string{said("", `,"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: default_api.read_file(path='a')"`)},
			"CALL gemini-call-3 read_file path='a'\nstop calls in 0 read 0 out 0 thought 0",
		},
		{
			"a call in another form, beside a word that is a name too",
			[]string{said("", `,"finishReason":"UNEXPECTED_TOOL_CALL","finishMessage":"cannot read (x): call:default_api:read_file{path:<ctrl46>a<ctrl46>}"`)},
			"CALL gemini-call-3 read_file {path:<ctrl46>a<ctrl46>}\nstop calls in 0 read 0 out 0 thought 0",
		},
		{"usage without sense", []string{said(`{"text":"x"}`, stop), `{"usageMetadata":{"promptTokenCount":9223372036854775807,"toolUsePromptTokenCount":1e300,"candidatesTokenCount":"many","thoughtsTokenCount":-3}}`, `[DONE]`},
			"text \"x\"\nTEXT \"x\"\nstop end in 2199023255552 read 0 out 0 thought 0"},
		{"usage behind the end", []string{said(`{"text":"x"}`, stop), `{"usageMetadata":{"promptTokenCount":4,"cachedContentTokenCount":9,"candidatesTokenCount":-1}}`, `[DONE]`},
			"text \"x\"\nTEXT \"x\"\nstop end in 4 read 4 out 0 thought 0"},
		{"only the first candidate", []string{`{"candidates":[{"index":1,"content":{"parts":[{"text":"no"}]},"finishReason":"STOP"},{"content":{"parts":[{"text":"yes"}]},"finishReason":"STOP"}]}`},
			"text \"yes\"\nTEXT \"yes\"\nstop end in 0 read 0 out 0 thought 0"},
		{"nothing at all", []string{said("", stop)}, "stop end in 0 read 0 out 0 thought 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Two calls are in the history: ids go on from there.
			req := llm.Request{Tools: tools, Messages: []llm.Message{assistant(call("gemini-call-2", "read", "{}", ""), call("old", "read", "{}", ""))}}
			chunks, err := play(req, tt.events...)
			if err != nil {
				t.Fatal(err)
			}
			if got := show(chunks); got != tt.want {
				t.Errorf("decode gave\n%s\nwant\n%s", got, tt.want)
			}
			again, _ := play(req, tt.events...)
			if show(again) != show(chunks) {
				t.Errorf("decode gave other chunks the second time:\n%s", show(again))
			}
		})
	}
}

func TestDecodeFaults(t *testing.T) {
	for _, tt := range []struct {
		name   string
		stream string
		kind   llm.Kind
		chunks int
	}{
		{"no event", "", llm.Cut, 0},
		{"no reason to end", "data: " + said(`{"text":"x"}`, "") + "\n\n", llm.Cut, 1},
		{"cut within a line", "data: " + said(`{"text":"x"}`, stop) + "\n\ndata: {", llm.Unknown, 3},
		{"not JSON", "data: <html>\n\n", llm.Malformed, 0},
		{"not the wire", "data: {\"candidates\":5}\n\n", llm.Malformed, 0},
		{"an error in the stream", `data: {"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}` + "\n\n", llm.Overloaded, 0},
		{"an error behind text", "data: " + said(`{"text":"x"}`, "") + "\n\n" + `data: {"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"slow down"}}` + "\n\n", llm.Rate, 1},
		{"an error without a form", "data: {\"error\":{}}\n\n", llm.Malformed, 0},
		{"a message that only mentions a tool", "data: " + said("", `,"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"it has no form (f) of a call, nor xf(1)"`) + "\n\n", llm.Malformed, 0},
		{"a call of a tool that is not known", "data: " + said("", `,"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"x"`) + "\n\n", llm.Malformed, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			chunks, err := drain(tt.stream, llm.Request{Tools: []llm.Tool{{Name: "f"}}})
			if llm.KindOf(err) != tt.kind || (err == nil) != (tt.kind == llm.Unknown) || len(chunks) != tt.chunks {
				t.Errorf("decode gave %d chunks and the error %v, want %d and %v", len(chunks), err, tt.chunks, tt.kind)
			}
		})
	}
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
