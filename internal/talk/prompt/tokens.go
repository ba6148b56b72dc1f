package prompt

import (
	"ken/internal/talk/session"
	"ken/internal/tokenizer"
	"ken/llm"
)

// What wires add around what is said, and what a picture costs at most. They
// are above what the vendors publish, so that a plan errs on the safe side.
const (
	perMessage = 4
	perBlock   = 8
	perImage   = 1600
)

// Tokens counts what blocks take in a request, with what the wire puts around
// them.
func Tokens(count tokenizer.Counter, blocks []llm.Block) int {
	n := 0
	for i := range blocks {
		b := &blocks[i]
		switch {
		case b.Text != "":
			n += count(b.Text)
		case b.Image != nil:
			n += perImage
		case b.Call != nil:
			n += perBlock + count(b.Call.ID) + count(b.Call.Name) + count(string(b.Call.Arguments)) + len(b.Call.Opaque)/4
		case b.Result != nil:
			n += perBlock + count(b.Result.ID) + Tokens(count, b.Result.Blocks)
		case b.Reasoning != nil:
			n += perBlock + max(count(b.Reasoning.Text), len(b.Reasoning.Opaque)/4)
		}
		n += ToolTokens(count, b.Tools)
	}
	return n
}

// ToolTokens counts what tools take in a request.
func ToolTokens(count tokenizer.Counter, tools []llm.Tool) int {
	n := 0
	for i := range tools {
		t := &tools[i]
		n += perBlock + count(t.Name) + count(t.Description) + count(string(t.Schema))
	}
	return n
}

// size is what an entry takes: as it was counted, or else by [tokenizer.Count].
func size(e *session.Entry) int {
	switch {
	case e.Kind == session.Prefix || len(e.Blocks) == 0:
		return 0
	case e.Tokens > 0:
		return e.Tokens + perMessage
	}
	return Tokens(tokenizer.Count, e.Blocks) + perMessage
}
