package index

import (
	"iter"
	"math/bits"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/know/embed"
)

// embed gives the capability in a slot a vector of the segment's own model.
func (w *writer) embed(c *capability.Capability, slot int) {
	m := w.next.model
	if m == nil {
		return
	}
	if w.owned == nil {
		w.owned = map[int]bool{}
		w.next.vectors = w.next.vectors.changed(m.Model(), m.Dimensions())
	}
	if d, ok := documentOf(c); ok {
		w.vector = m.AppendDocument(w.vector[:0], d)
	} else {
		w.vector = append(w.vector[:0], make([]float32, m.Dimensions())...)
	}
	w.next.vectors.set(slot, w.vector, w.owned)
}

// codes returns the signs of the vectors of the words in a name, whose terms are
// the first of run.
func (w *writer) codes(inName []uint32) []uint64 {
	m := w.next.model
	if m == nil || len(inName) == 0 {
		return nil
	}
	out := make([]uint64, 0, len(inName)*(m.Dimensions()/64))
	for _, id := range inName {
		out = m.AppendSigns(out, w.spelt[slices.Index(w.run, id)])
	}
	return out
}

// documentOf is what the built-in model reads of a capability. One whose text
// it cannot read has a vector that says nothing: words alone find it.
func documentOf(c *capability.Capability) (embed.Document, bool) {
	if !mostlyASCII(c.Description) || c.Description == "" && !mostlyASCII(c.Name) {
		return embed.Document{}, false
	}
	d := embed.Document{Name: c.Name, Description: c.Description, Category: c.Category}
	if c.Triggers != nil && len(c.Triggers.Keywords) > 0 {
		d.Category = strings.TrimPrefix(d.Category+", "+strings.Join(c.Triggers.Keywords, ", "), ", ")
	}
	for _, p := range c.Parameters {
		d.Parameters = append(d.Parameters, p.Name)
	}
	return d, true
}

// meaning returns the vector of a query: the one it has, or that of the model of
// the view. Nil: words alone answer.
func (s *searcher) meaning(v *View, q Query) []float32 {
	if q.Vector != nil || v.model == nil || s.asked.foreign || !mostlyASCII(q.Text) {
		return q.Vector
	}
	text := ends(q.Text)
	if s.asked.pointing && len(q.Before) > 0 {
		text += "\n" + ends(q.Before[0].Text)
	}
	start := time.Now()
	s.vector = v.model.AppendMessage(s.vector[:0], text)
	s.embedding = time.Since(start)
	return s.vector
}

const (
	longestMeant  = 600 // bytes: the model reads 256 tokens, and both ends must be among them
	mostClauses   = 8
	mostSpelt     = 24 // words of a message that those of names are compared with
	leastInClause = 2  // words
)

// ends returns the beginning and the end of a long text: what is between them was
// pasted.
func ends(text string) string {
	head, tail := shorten(text, longestMeant)
	if tail == "" {
		return head
	}
	return head + " . " + tail
}

// clauses says of every candidate how near it is to the clause of the message
// that it is nearest to: people ask for several things at once, and what fits
// one of them is not near the whole. Only the built-in model is asked for the
// vectors of clauses: another may cost. Their signs are enough for a second
// opinion, and are compared in a twentieth of the time.
func (s *searcher) clauses(v *View, text string, mean, deviation float32) {
	text = ends(text)
	s.phrases = slices.AppendSeq(s.phrases[:0], clausesOf(text))
	if len(s.phrases) == 1 && len(s.phrases[0]) == len(text) {
		return
	}
	if n := len(s.phrases); n > mostClauses {
		s.phrases = slices.Delete(s.phrases, mostClauses/2, n-mostClauses/2)
	}
	// All codes first: making them is what embedding takes, comparing is not.
	start := time.Now()
	s.codes = s.codes[:0]
	for _, clause := range s.phrases {
		s.codes = v.model.AppendSigns(s.codes, clause)
	}
	s.embedding += time.Since(start)
	n := v.model.Dimensions() / 64
	for rest := s.codes; len(rest) >= n && n > 0; rest = rest[n:] {
		code := rest[:n]
		if silent(code) {
			continue
		}
		for i := range s.candidates {
			if c := &s.candidates[i]; c.compared {
				cos := cosOf(differences(code, v.parts[c.part].vectors.code(int(c.slot))), v.model.Dimensions())
				c.nearClause = max(c.nearClause, min((cos-mean)/deviation, mostNear))
			}
		}
	}
}

// clausesOf cuts a text at the ends of sentences and lines, at commas and at words like
// "and then". A piece with hardly a word stays with the one before it.
func clausesOf(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, words := 0, 0
		for i := 0; i < len(text); {
			end := i
			for end < len(text) && text[end] > ' ' {
				end++
			}
			word := text[i:end]
			cut := words >= leastInClause && joins(word)
			if cut {
				if !yield(text[start:i]) {
					return
				}
				start, words = i, 0
			}
			if word != "" && !joins(word) {
				words++
			}
			next := end
			for next < len(text) && text[next] <= ' ' {
				next++
			}
			stops := word != "" && strings.IndexByte(".,;!?", word[len(word)-1]) >= 0 || strings.IndexByte(text[end:next], '\n') >= 0
			if stops && words >= leastInClause {
				if !yield(text[start:end]) {
					return
				}
				start, words = end, 0
			}
			i = next
		}
		if words >= leastInClause || start == 0 {
			yield(text[start:])
		}
	}
}

func joins(word string) bool {
	switch word {
	case "and", "then", "also", "plus", "And", "Then", "Also", "Plus", "after", "After":
		return true
	}
	return false
}

// spell makes the codes of the message's words, which those of names are
// compared with.
func (s *searcher) spell(v *View) {
	s.spelt = s.spelt[:0]
	if v.model == nil || !s.compared {
		return
	}
	start := time.Now()
	words := 0
	for i := range s.asked.terms {
		if t := &s.asked.terms[i]; t.current && words < mostSpelt {
			words++
			before := len(s.spelt)
			if s.spelt = v.model.AppendSigns(s.spelt, t.word); silent(s.spelt[before:]) {
				s.spelt = s.spelt[:before]
			}
		}
	}
	s.embedding += time.Since(start)
}

// likest says how similar a word of a name is to the word of the message that
// it is most like.
func (s *searcher) likest(code []uint64) float32 {
	n := len(code)
	if n == 0 || silent(code) {
		return 0
	}
	least := 64 * n / 2 // as different as unrelated words are
	for rest := s.spelt; len(rest) >= n; rest = rest[n:] {
		least = min(least, differences(code, rest))
	}
	return cosOf(least, 64*n)
}

// silent reports the code of a text of which the model knows nothing.
func silent(code []uint64) bool {
	for _, w := range code {
		if w != 0 {
			return false
		}
	}
	return true
}

// differences counts the bits of a that are others in b.
func differences(a, b []uint64) int {
	if len(a) == 4 && len(b) >= 4 { // the usual size, unrolled
		return bits.OnesCount64(a[0]^b[0]) + bits.OnesCount64(a[1]^b[1]) + bits.OnesCount64(a[2]^b[2]) + bits.OnesCount64(a[3]^b[3])
	}
	n := 0
	for i, w := range a {
		n += bits.OnesCount64(w ^ b[i])
	}
	return n
}

// nameCode returns the code of the i-th word of a name; none if it has no codes.
func (d *doc) nameCode(i int) []uint64 {
	if len(d.nameCodes) == 0 {
		return nil
	}
	n := len(d.nameCodes) / len(d.inName)
	return d.nameCodes[i*n : (i+1)*n]
}

// mostlyASCII reports whether a text is one for the built-in model, whose words
// are English: at least half of its letters are plain.
func mostlyASCII(text string) bool {
	plain, other := 0, 0
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case 'a' <= b|0x20 && b|0x20 <= 'z':
			plain++
		case b >= utf8.RuneSelf && utf8.RuneStart(b):
			other++
		}
	}
	return plain >= other
}
