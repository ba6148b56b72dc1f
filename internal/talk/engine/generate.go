package engine

import (
	"slices"
	"strings"

	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/llm"
)

// received is what came of an answer.
type received struct {
	any    bool            // something came
	shown  strings.Builder // the fragments of the text
	blocks []llm.Block
	stop   llm.StopReason
	usage  llm.Usage
	flood  bool // it was too much and was cut
}

// generate streams one answer.
func (t *turn) generate(req llm.Request) (got *received, err error) {
	got = &received{}
	defer t.guard("the model", &err)
	size := 0
	for c, err := range t.model.Generate(t.ctx, req) {
		if err != nil {
			return got, err
		}
		got.any = true
		size += len(c.Text) + len(c.Thought) + blockSize(c.Block)
		switch {
		case c.Text != "":
			got.shown.WriteString(c.Text)
			t.emit(event.Delta{Text: c.Text})
		case c.Thought != "":
			t.emit(event.Delta{Thought: c.Thought})
		case c.Block != nil:
			got.blocks = append(got.blocks, *c.Block)
		}
		if c.Stop != "" {
			got.stop = c.Stop
		}
		if c.Usage != nil {
			got.usage = *c.Usage
		}
		if t.ctx.Err() != nil {
			return got, t.ctx.Err()
		}
		if over(size, 2*t.terms.Limits.AnswerBytes) && t.terms.Limits.AnswerBytes > 0 {
			got.flooded(t.terms.Limits.AnswerBytes)
			return got, nil
		}
	}
	if err := t.ctx.Err(); err != nil {
		return got, err
	}
	if got.stop == "" { // a model that ends without saying so
		return got, &llm.Error{Kind: llm.Cut, Provider: string(t.model.Row.Wire), Model: t.model.Name, Message: "the stream ended without its end"}
	}
	got.whole()
	return got, nil
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

// flooded keeps the beginning of a text that would not end, and none of its
// calls.
func (r *received) flooded(limit int) {
	text := r.shown.String()
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "")
	}
	r.blocks, r.stop, r.flood = nil, llm.StopLength, true
	if text != "" {
		r.blocks = []llm.Block{{Text: text}}
	}
}

// whole makes sure that what was shown is kept, whatever the provider made of
// it, and leaves out blocks that say nothing.
func (r *received) whole() {
	r.blocks = slices.DeleteFunc(r.blocks, func(b llm.Block) bool {
		return b.Text == "" && b.Image == nil && b.Call == nil && b.Result == nil && b.Reasoning == nil
	})
	if textOf(r.blocks) == "" && strings.TrimSpace(r.shown.String()) != "" {
		at := slices.IndexFunc(r.blocks, func(b llm.Block) bool { return b.Call != nil })
		if at < 0 {
			at = len(r.blocks)
		}
		r.blocks = slices.Insert(r.blocks, at, llm.Block{Text: r.shown.String()})
	}
}

// entry is the answer as it is written down. It counts what it cost.
func (r *received) entry(t *turn) session.Entry {
	usage, dollars := r.usage, t.model.Row.Price.Cost(r.usage)
	t.spend(usage, dollars)
	return session.Entry{Kind: session.Assistant, Blocks: r.blocks, Usage: &usage, Cost: dollars}
}

// event tells of the request.
func (r *received) event(t *turn) event.Step {
	return event.Step{Number: t.steps, Usage: r.usage, Plain: plainInput(r.usage), Cost: t.model.Row.Price.Cost(r.usage), Stop: r.stop}
}
