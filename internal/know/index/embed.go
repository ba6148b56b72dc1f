package index

import (
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/know/embed"
)

// embed makes the vector of the capability in a slot with the segment's own model.
func (w *writer) embed(c *capability.Capability, slot int) {
	m := w.next.Model
	if m == nil {
		return
	}
	if w.owned == nil {
		w.owned = map[int]bool{}
		w.next.VectorStore = w.next.VectorStore.changed(m.Model(), m.Dimensions())
	}
	if d, ok := DocumentOf(c); ok {
		w.vector = m.AppendDocument(w.vector[:0], d)
	} else {
		w.vector = append(w.vector[:0], make([]float32, m.Dimensions())...)
	}
	w.next.VectorStore.set(slot, w.vector, w.owned)
}

// codes returns the signs of the vectors of the words in a name, whose terms are
// the first of run.
func (w *writer) codes(inName []uint32) []uint64 {
	m := w.next.Model
	if m == nil || len(inName) == 0 {
		return nil
	}
	out := carve(w, &w.codes64, len(inName)*(m.Dimensions()/64))[:0]
	for _, id := range inName {
		word := w.spelt[slices.Index(w.run, id)]
		signs, ok := w.signs[word]
		if !ok {
			signs = m.AppendSigns(nil, word)
			if w.signs == nil {
				w.signs = map[string][]uint64{}
			}
			w.signs[strings.Clone(word)] = signs
		}
		out = append(out, signs...)
	}
	return out
}

// DocumentOf is what the built-in models read of a capability. One whose text
// it cannot read has a vector that says nothing: words alone find it.
func DocumentOf(c *capability.Capability) (embed.Document, bool) {
	if !MostlyASCII(c.Description) || c.Description == "" && !MostlyASCII(c.Name) {
		return embed.Document{}, false
	}
	d := embed.Document{Name: c.Name, Description: c.Description, Category: c.Category}
	if c.Triggers != nil && len(c.Triggers.Keywords) > 0 {
		d.Category = strings.TrimPrefix(d.Category+", "+strings.Join(c.Triggers.Keywords, ", "), ", ")
	}
	d.Parameters = make([]string, len(c.Parameters))
	for i, p := range c.Parameters {
		d.Parameters[i] = p.Name
	}
	return d, true
}
