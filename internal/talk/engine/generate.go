package engine

import (
	"context"
	"slices"
	"strings"

	"ken/internal/talk/event"
	"ken/llm"
)

// An answer is what came of a request to the model.
type answer struct {
	any       bool             // something came
	shown     *strings.Builder // the fragments of the text
	blocks    []llm.Block
	stop      llm.StopReason
	usage     llm.Usage
	truncated bool // it was too much and was cut
}

// generate streams one answer.
func (t turn) generate(ctx context.Context, req llm.Request) (got answer, err error) {
	got.shown = &strings.Builder{}
	defer t.out.recoverInto("the model", &err)
	size := 0
	for c, err := range t.model.Generate(ctx, req) {
		if err != nil {
			return got, err
		}
		got.any = true
		size += len(c.Text) + len(c.Thought) + blockSize(c.Block)
		switch {
		case c.Text != "":
			got.shown.WriteString(c.Text)
			t.out.emit(event.Delta{Text: c.Text})
		case c.Thought != "":
			t.out.emit(event.Delta{Thought: c.Thought})
		case c.Block != nil:
			got.blocks = append(got.blocks, *c.Block)
		}
		if c.Stop != "" {
			got.stop = c.Stop
		}
		if c.Usage != nil {
			got.usage = *c.Usage
		}
		if ctx.Err() != nil {
			return got, ctx.Err()
		}
		if over(size, 2*t.terms.Limits.AnswerBytes) && t.terms.Limits.AnswerBytes > 0 {
			return got.truncate(t.terms.Limits.AnswerBytes), nil
		}
	}
	if err := ctx.Err(); err != nil {
		return got, err
	}
	if got.stop == "" { // a model that ends without saying so
		return got, &llm.Error{Kind: llm.Cut, Provider: string(t.model.Row.Wire), Model: t.model.Name, Message: "the stream ended without its end"}
	}
	return got.complete(), nil
}

// blockSize is what a block takes besides the text whose fragments were counted.
func blockSize(b *llm.Block) int {
	switch {
	case b == nil:
		return 0
	case b.Call != nil:
		return len(b.Call.Arguments) + len(b.Call.Name)
	case b.Reasoning != nil:
		return len(b.Reasoning.Opaque)
	}
	return len(b.Text)
}

// truncate keeps the beginning of a text that would not end, and none of its
// calls.
func (a answer) truncate(limit int) answer {
	text := a.shown.String()
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "")
	}
	a.blocks, a.stop, a.truncated = nil, llm.StopLength, true
	if text != "" {
		a.blocks = []llm.Block{{Text: text}}
	}
	return a
}

// complete makes sure that what was shown is kept, whatever the provider made of
// it, and leaves out blocks that say nothing.
func (a answer) complete() answer {
	a.blocks = slices.DeleteFunc(a.blocks, func(b llm.Block) bool {
		return b.Text == "" && b.Image == nil && b.Call == nil && b.Result == nil && b.Reasoning == nil
	})
	if textOf(a.blocks) == "" && strings.TrimSpace(a.shown.String()) != "" {
		at := slices.IndexFunc(a.blocks, func(b llm.Block) bool { return b.Call != nil })
		if at < 0 {
			at = len(a.blocks)
		}
		a.blocks = slices.Insert(a.blocks, at, llm.Block{Text: a.shown.String()})
	}
	return a
}
