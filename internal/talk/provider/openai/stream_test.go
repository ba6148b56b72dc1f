package openai

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"ken/llm"

	"github.com/rogpeppe/go-internal/txtar"
)

// searched is a history in which one call has the id "used" and the search for
// tools is called discover.
func searched() []llm.Message {
	return []llm.Message{
		{Role: llm.User, Blocks: []llm.Block{{Text: "go"}}},
		{Role: llm.Assistant, Blocks: []llm.Block{{Call: &llm.ToolCall{ID: "used", Name: "discover", Arguments: []byte(`{}`)}}}},
		{Role: llm.User, Blocks: []llm.Block{{Result: &llm.ToolResult{ID: "used", Name: "discover", Blocks: []llm.Block{
			{Tools: []llm.Tool{{Name: "mail", Description: "Mails.", Schema: []byte(`{"type":"object"}`)}}},
		}}}}},
	}
}

// TestStreams plays recorded forms of the wires, in one piece and byte by byte.
func TestStreams(t *testing.T) {
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
			want := string(archive.Files[1].Data)
			for _, cut := range []func(io.Reader) io.Reader{
				func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.DataErrReader,
			} {
				stream := string(archive.Files[0].Data)
				if strings.HasSuffix(stream, "[DO\n") {
					stream = strings.TrimSuffix(stream, "\n") // broken off within a line
				}
				r := cut(strings.NewReader(stream))
				chunks := decodeChat(r, searched(), 0)
				if archive.Files[0].Name == "responses" {
					chunks = decodeResponses(r, searched(), 0)
				}
				if got := render(chunks); got != want {
					t.Errorf("decode(%s) =\n%swant\n%s", name, got, want)
				}
			}
		})
	}
}

// render writes chunks as lines.
func render(chunks iter.Seq2[llm.Chunk, error]) string {
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
