package ranking

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/llm"
)

// embedBatch is how many texts an embedder is given at once.
const embedBatch = 64

// Embed makes a vector for every capability of the latest snapshot of a catalog that
// has none yet, and stores them batch by batch: a search meanwhile finds by words and by
// the vectors stored so far. It returns when all have one, when the embedder
// fails, or when ctx ends; calling it again continues from there.
func Embed(ctx context.Context, c *catalog.Catalog, e llm.Embedder) error {
	for {
		s := c.Snapshot()
		x := IndexOf(s)
		slots := x.missing(e.Model())
		if len(slots) == 0 {
			return ctx.Err()
		}
		slots = slots[:min(len(slots), embedBatch)]
		texts := make([]string, len(slots))
		for i, slot := range slots {
			texts[i] = textFor(e, x.Segment.At(slot))
		}
		vectors, err := Vectors(ctx, e, texts)
		if err != nil {
			return fmt.Errorf("make vectors of capabilities with %s: %w", e.Model(), err)
		}
		if len(vectors) != len(texts) {
			return fmt.Errorf("make vectors of capabilities with %s: got %d vectors for %d texts; the embedder is broken", e.Model(), len(vectors), len(texts))
		}
		of := make(map[int][]float32, len(slots))
		for i, slot := range slots {
			of[slot] = vectors[i]
		}
		segment, err := x.Segment.WithVectors(e.Model(), e.Dimensions(), of)
		if err != nil {
			return err
		}
		attached(s).replace(x, &Index{Segment: segment, slots: x.slots, ordinals: x.ordinals, entries: x.entries})
	}
}

// TextsWithout returns what an embedder would read of the capabilities of the
// latest snapshot of a catalog that have no vector of it.
func TextsWithout(c *catalog.Catalog, e llm.Embedder) iter.Seq[string] {
	return func(yield func(string) bool) {
		x := IndexOf(c.Snapshot())
		for _, slot := range x.missing(e.Model()) {
			if !yield(textFor(e, x.Segment.At(slot))) {
				return
			}
		}
	}
}

// textFor is what an embedder reads of a capability: one that was trained on
// texts of a certain shape says which.
func textFor(e llm.Embedder, c *capability.Capability) string {
	if own, ok := e.(interface {
		DocumentText(*capability.Capability) string
	}); ok {
		return own.DocumentText(c)
	}
	return EmbeddingText(c)
}

// Vectors calls an embedder, which is foreign code: it may panic, and it may
// ignore the end of ctx. In that case Vectors returns without waiting for it.
func Vectors(ctx context.Context, e llm.Embedder, texts []string) ([][]float32, error) {
	type answer struct {
		vectors [][]float32
		err     error
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				a.err = fmt.Errorf("panic: %v", p)
			}
			done <- a
		}()
		a.vectors, a.err = e.Embed(ctx, texts)
	}()
	select {
	case a := <-done:
		return a.vectors, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// missing returns the slots whose capabilities have no vector of a model.
func (x *Index) missing(model string) []int {
	var out []int
	for _, slot := range x.slots {
		if !x.Segment.HasVector(model, int(slot)) {
			out = append(out, int(slot))
		}
	}
	return out
}

// EmbeddingText is what an embedder reads of a capability: what it is called,
// what it is for, and what it takes; not its schema, its body or its secrets.
func EmbeddingText(c *capability.Capability) string {
	const longest, longestDescription = 1200, 700 // bytes; about 300 tokens in all
	description := strings.TrimSpace(c.Description)
	if len(description) > longestDescription {
		description = strings.ToValidUTF8(description[:longestDescription], "")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s). %s", c.Title(), c.Name, description)
	list := func(head string, items []string) {
		if len(items) > 0 {
			fmt.Fprintf(&b, "\n%s: %s", head, strings.Join(items, ", "))
		}
	}
	if c.Category != "" {
		list("Category", []string{c.Category})
	}
	uses := c.Tags
	if c.Triggers != nil {
		uses = append(uses[:len(uses):len(uses)], c.Triggers.Keywords...)
	}
	list("Use cases", uses)
	var params []string
	for _, p := range c.Parameters {
		params = append(params, p.Name)
	}
	list("Parameters", params)
	list("Requires", append(c.RequiredTools[:len(c.RequiredTools):len(c.RequiredTools)], c.RequiredBins...))
	text := b.String()
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "")
	}
	return text
}
