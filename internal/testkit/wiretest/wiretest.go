// Package wiretest holds what the tests of single wires share: conversations that
// are drawn, the property that prompt caches live from, and what every decoder
// promises. The contract of a model over a scripted server is llmtest.Test.
package wiretest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"ken/internal/talk/provider"
	"ken/llm"
)

// Key is the key of models that [Serve] configures.
const Key = "sk-very-secret-0123456789"

// Serve starts a server that reads each request before it answers, and returns a
// configuration for it, with a client of its own so that nothing is left of it.
func Serve(t testing.TB, answer func(w http.ResponseWriter, r *http.Request, body string)) provider.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer(w, r, string(body))
	}))
	cfg := Config(t, server.URL)
	t.Cleanup(server.Close)
	return cfg
}

// Config is a configuration for a server.
func Config(t testing.TB, baseURL string) provider.Config {
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return provider.Config{
		BaseURL: baseURL, Model: "scripted", MaxTokens: 100, Client: client,
		Key:   func(context.Context) (string, error) { return Key, nil },
		Retry: provider.Retry{Tries: 3, First: 2 * time.Millisecond},
	}
}

// Ask returns the text of an answer, and the error that ended it.
func Ask(ctx context.Context, m llm.Model, req llm.Request) (string, error) {
	said := ""
	for c, err := range m.Generate(ctx, req) {
		if err != nil {
			return said, err
		}
		said += c.Text
	}
	return said, nil
}

func User(blocks ...llm.Block) llm.Message { return llm.Message{Role: llm.User, Blocks: blocks} }

func Assistant(blocks ...llm.Block) llm.Message {
	return llm.Message{Role: llm.Assistant, Blocks: blocks}
}

func Text(s string) llm.Block { return llm.Block{Text: s} }

func Give(tools ...llm.Tool) llm.Block { return llm.Block{Tools: tools} }

// Call is a call of a tool; opaque may be empty.
func Call(id, name, args, opaque string) llm.Block {
	return llm.Block{Call: &llm.ToolCall{ID: id, Name: name, Arguments: []byte(args), Opaque: json.RawMessage(opaque)}}
}

func Result(id, name string, blocks ...llm.Block) llm.Block {
	return llm.Block{Result: &llm.ToolResult{ID: id, Name: name, Blocks: blocks}}
}

// Messages draws a conversation of anything that a model, a person or a tool may
// say. With inTurn the two speak alternately, and none says nothing; with tools
// some are given in the middle.
func Messages(t *rapid.T, inTurn, tools bool) []llm.Message {
	words := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "\x00\xff", "\"\\\n\u2028", "]}", `{"x":1}`, "["}))
	list := make([]llm.Message, rapid.IntRange(1, 8).Draw(t, "messages"))
	n := 0
	for i := range list {
		m := &list[i]
		m.Role = []llm.Role{llm.User, llm.Assistant}[i%2]
		if !inTurn && rapid.Bool().Draw(t, "again") {
			m.Role = llm.User
		}
		for range rapid.IntRange(0, 4).Draw(t, "blocks") {
			n++
			m.Blocks = append(m.Blocks, block(t, m.Role, fmt.Sprint("c", n), words, tools))
		}
		if inTurn {
			m.Blocks = append(m.Blocks, Text("x"))
		}
	}
	return list
}

func block(t *rapid.T, role llm.Role, id string, words *rapid.Generator[string], tools bool) llm.Block {
	given := Give(llm.Tool{Name: "given", Description: words.Draw(t, "description"), Schema: []byte(`{"type":"object"}`)})
	kind := rapid.SampledFrom([]string{"text", "image", "call or result", "reasoning or tools"}).Draw(t, "kind")
	switch {
	case kind == "image":
		return llm.Block{Image: &llm.Image{MIME: "image/png", Data: []byte(words.Draw(t, "data"))}}
	case kind == "call or result" && role == llm.Assistant:
		return Call(id, rapid.OneOf(words, rapid.Just("f")).Draw(t, "name"), words.Draw(t, "arguments"), rapid.SampledFrom([]string{"", `{"thoughtSignature":"s"}`, "x"}).Draw(t, "opaque"))
	case kind == "call or result":
		r := Result(id, "f", Text(words.Draw(t, "result")))
		if r.Result.Failed = rapid.Bool().Draw(t, "failed"); tools && rapid.Bool().Draw(t, "found") {
			r.Result.Blocks = append(r.Result.Blocks, given)
		}
		return r
	case kind == "reasoning or tools" && role == llm.Assistant:
		return llm.Block{Reasoning: &llm.Reasoning{
			Wire: rapid.SampledFrom([]string{"openai-chat", "openai-responses", "anthropic", "gemini"}).Draw(t, "wire"),
			Opaque: json.RawMessage(rapid.SampledFrom([]string{
				`{"type":"reasoning","encrypted_content":"e"}`, `{"reasoning":"r"}`, `{"type":"redacted_thinking","data":"d"}`, `{"text":"t","thought":true}`, `{"thoughtSignature":"s"}`,
			}).Draw(t, "opaque")),
		}}
	case kind == "reasoning or tools" && tools:
		return given
	}
	return Text(words.Draw(t, "text"))
}

// AppendOnly holds an encoder to what prompt caches live from: the same request is
// the same bytes, always JSON, and a conversation that has grown begins with the
// bytes that it had. head takes off what follows the messages, and what may move.
func AppendOnly(t *testing.T, tools bool, encode func(llm.Request) ([]byte, error), head func(body string) string) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		req := llm.Request{System: rapid.String().Draw(rt, "system"), Cache: "s", Tools: []llm.Tool{{Name: "f", Schema: []byte(`{"type":"object"}`)}}}
		if tools { // the first search declares it, and from there on it stays
			req.Messages = []llm.Message{User(Text("go")), Assistant(Call("used", "f", "{}", "")), User(Result("used", "f", Give(llm.Tool{Name: "given"})))}
		}
		least := len(req.Messages)
		req.Messages = append(req.Messages, Messages(rt, true, tools)...)
		body := func() string {
			one, err := encode(req)
			two, _ := encode(req)
			if err != nil || string(one) != string(two) || !json.Valid(one) {
				rt.Fatalf("encode twice gave\n%s\n%s\n%v", one, two, err)
			}
			return head(string(one))
		}
		all, whole := req.Messages, body()
		for n := least; n < len(all); n++ {
			req.Messages = all[:n]
			if part := body(); !strings.HasPrefix(whole, part) {
				rt.Fatalf("the first %d messages:\n%s\nall:\n%s", n, part, whole)
			}
		}
	})
}

// Answer holds a decoder to what any answer, however broken, must be: fragments
// make up the blocks of text, an end or an error comes last and once, every call
// has an id of its own, and the blocks can be sent again.
func Answer(t *testing.T, chunks iter.Seq2[llm.Chunk, error], encode func(llm.Request) ([]byte, error)) {
	t.Helper()
	fragments, text := "", ""
	ended := 0
	var blocks, results []llm.Block
	ids := map[string]bool{}
	for c, err := range chunks {
		if ended > 0 {
			t.Fatalf("chunk %+v, %v after the end", c, err)
		}
		switch {
		case err != nil || c.Stop != "":
			ended++
			if err == nil && (c.Usage == nil || fragments != text) {
				t.Fatalf("the usage is %v, the fragments make up %q, the blocks %q", c.Usage, fragments, text)
			}
		case c.Block != nil:
			blocks = append(blocks, *c.Block)
			text += c.Block.Text
			if call := c.Block.Call; call != nil {
				if call.ID == "" || ids[call.ID] {
					t.Fatalf("id %q of a call is empty or not new", call.ID)
				}
				ids[call.ID] = true
				results = append(results, Result(call.ID, call.Name, Text("ok")))
			}
		case c.Text == "" && c.Thought == "":
			t.Fatal("a chunk with nothing in it")
		default:
			fragments += c.Text
		}
	}
	if ended != 1 {
		t.Fatalf("%d ends, want 1", ended)
	}
	body, err := encode(llm.Request{Tools: []llm.Tool{{Name: "f"}}, Messages: []llm.Message{Assistant(blocks...), User(results...)}})
	if err != nil || !json.Valid(body) || !utf8.Valid(body) {
		t.Fatalf("what came cannot be sent again: %v: %s", err, body)
	}
}

// Streams plays the recorded streams of testdata/stream, in one piece and byte by
// byte. Each is a txtar file: what the server sent, in a part that says over which
// wire, and then what [Render] makes of it.
func Streams(t *testing.T, decode func(wire string, r io.Reader) iter.Seq2[llm.Chunk, error]) {
	t.Helper()
	files, err := filepath.Glob("testdata/stream/*.txtar")
	if err != nil || len(files) < 20 {
		t.Fatalf("Glob = %d files, %v, want at least 20", len(files), err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			stream, want := string(archive.Files[0].Data), string(archive.Files[1].Data)
			if strings.HasSuffix(stream, "[CUT]\n") || strings.HasSuffix(stream, "[DO\n") {
				stream = strings.TrimSuffix(strings.TrimSuffix(stream, "\n"), "[CUT]") // broken off within a line
			}
			for _, cut := range []func(io.Reader) io.Reader{
				func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.DataErrReader,
			} {
				if got := Render(decode(archive.Files[0].Name, cut(strings.NewReader(stream)))); got != want {
					t.Errorf("decode(%s) =\n%swant\n%s", name, got, want)
				}
			}
		})
	}
}

// Render writes chunks as lines. An id that was made up is the same in all of them.
func Render(chunks iter.Seq2[llm.Chunk, error]) string {
	var b strings.Builder
	for c, err := range chunks {
		e, ok := errors.AsType[*llm.Error](err)
		switch {
		case ok:
			fmt.Fprintf(&b, "error %v %d %q", e.Kind, e.Status, e.Message)
			if e.RetryAfter > 0 {
				fmt.Fprintf(&b, " after %v", e.RetryAfter)
			}
			b.WriteByte('\n')
		case err != nil:
			fmt.Fprintf(&b, "error: %v\n", err)
		case c.Text != "":
			fmt.Fprintf(&b, "text %q\n", c.Text)
		case c.Thought != "":
			fmt.Fprintf(&b, "thought %q\n", c.Thought)
		case c.Block != nil && c.Block.Call != nil:
			call := c.Block.Call
			id := call.ID
			if strings.HasPrefix(id, "call_") && len(id) == 25 {
				id = "(made)"
			}
			fmt.Fprintf(&b, "block call %s %s %s", id, call.Name, call.Arguments)
			if call.Opaque != nil {
				fmt.Fprintf(&b, " opaque=%s", call.Opaque)
			}
			b.WriteByte('\n')
		case c.Block != nil && c.Block.Reasoning != nil:
			fmt.Fprintf(&b, "block reasoning %s %q %s\n", c.Block.Reasoning.Wire, c.Block.Reasoning.Text, c.Block.Reasoning.Opaque)
		case c.Block != nil:
			fmt.Fprintf(&b, "block text %q\n", c.Block.Text)
		default:
			u := c.Usage
			fmt.Fprintf(&b, "end %s in=%d read=%d write=%d out=%d thought=%d\n", c.Stop, u.Input, u.CachedRead, u.CachedWrite, u.Output, u.Thought)
		}
	}
	return b.String()
}
