package openai

import (
	"bytes"
	"encoding/json"
	"iter"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"ken/internal/talk/provider"
	"ken/llm"

	"github.com/rogpeppe/go-internal/txtar"
)

// seeds are the streams of testdata for one wire.
func seeds(f *testing.F, wire string) {
	files, err := filepath.Glob("testdata/stream/" + wire + "_*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatalf("Glob = %v, %v, want some", files, err)
	}
	for _, name := range files {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(archive.Files[0].Data)
	}
}

// checkAnswer holds what any answer, however broken, must be: fragments make up
// the blocks of text, an end or an error comes last and once, and the blocks can
// be sent again.
func checkAnswer(t *testing.T, chunks iter.Seq2[llm.Chunk, error], encode func(llm.Request) ([]byte, error)) {
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
			if err == nil && c.Usage == nil {
				t.Fatal("the end has no usage")
			}
			if err == nil && fragments != text {
				t.Fatalf("fragments make up %q, blocks %q", fragments, text)
			}
		case c.Block != nil:
			blocks = append(blocks, *c.Block)
			text += c.Block.Text
			if call := c.Block.Call; call != nil {
				if call.ID == "" || ids[call.ID] {
					t.Fatalf("id %q of a call is empty or not new", call.ID)
				}
				ids[call.ID] = true
				results = append(results, llm.Block{Result: &llm.ToolResult{ID: call.ID, Name: call.Name, Blocks: []llm.Block{{Text: "ok"}}}})
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
	body, err := encode(llm.Request{Messages: []llm.Message{{Role: llm.Assistant, Blocks: blocks}, {Role: llm.User, Blocks: results}}})
	if err != nil || !json.Valid(body) || !utf8.Valid(body) {
		t.Fatalf("what came cannot be sent again: %v: %s", err, body)
	}
}

func FuzzChat(f *testing.F) {
	seeds(f, "chat")
	f.Fuzz(func(t *testing.T, stream []byte) {
		checkAnswer(t, decodeChat(bytes.NewReader(stream), nil, 0), func(r llm.Request) ([]byte, error) {
			body, _, err := encodeChat(provider.Config{}, r, 0)
			return body, err
		})
	})
}

func FuzzResponses(f *testing.F) {
	seeds(f, "responses")
	f.Fuzz(func(t *testing.T, stream []byte) {
		checkAnswer(t, decodeResponses(bytes.NewReader(stream), nil, 0), func(r llm.Request) ([]byte, error) {
			body, _, err := encodeResponses(provider.Config{}, r, false, 0)
			return body, err
		})
	})
}

func FuzzFault(f *testing.F) {
	f.Add(400, []byte(`{"error":{"message":"Unsupported parameter: 'max_tokens'","param":"max_tokens","code":"unsupported_parameter"}}`))
	f.Add(0, []byte(`{"error":{"code":502,"message":["x"],"metadata":{"raw":{"a":1}}}}`))
	f.Add(422, []byte(`{"detail":[{"loc":["body","x"]}]}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		e := faultOf(status, body, ^omit(0))
		if e.Kind == llm.Unsupported && e.Feature == "" {
			t.Errorf("faultOf(%d, %q) = unsupported without a feature", status, body)
		}
	})
}
