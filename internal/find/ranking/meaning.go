package ranking

import (
	"iter"
	"slices"
	"strings"
	"time"

	"ken/internal/know/index"
)

// meaning returns the vector of a query by the model of the view; nil where that
// cannot read it.
func (s *searcher) meaning(v *View, q Query) []float32 {
	if v.model == nil {
		return nil
	}
	if s.asked.foreign || !index.MostlyASCII(q.Text) {
		s.vectors.unread = len(s.asked.terms) > 0 // a smiley is of no language
		return nil
	}
	text := ends(q.Text)
	if s.asked.pointing && len(q.Before) > 0 {
		text += "\n" + ends(q.Before[0].Text)
	}
	start := time.Now()
	s.vectors.vector = v.model.AppendMessage(s.vectors.vector[:0], text)
	s.vectors.embedding = time.Since(start)
	return s.vectors.vector
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
	s.vectors.phrases = slices.AppendSeq(s.vectors.phrases[:0], clausesOf(text))
	if len(s.vectors.phrases) == 1 && len(s.vectors.phrases[0]) == len(text) {
		return
	}
	if n := len(s.vectors.phrases); n > mostClauses {
		s.vectors.phrases = slices.Delete(s.vectors.phrases, mostClauses/2, n-mostClauses/2)
	}
	// All codes first: making them is what embedding takes, comparing is not.
	start := time.Now()
	s.vectors.codes = s.vectors.codes[:0]
	for _, clause := range s.vectors.phrases {
		s.vectors.codes = v.model.AppendSigns(s.vectors.codes, clause)
	}
	s.vectors.embedding += time.Since(start)
	n := v.model.Dimensions() / 64
	for rest := s.vectors.codes; len(rest) >= n && n > 0; rest = rest[n:] {
		code := rest[:n]
		if index.Silent(code) {
			continue
		}
		for i := range s.candidates {
			if c := &s.candidates[i]; c.compared {
				cos := index.Cosine(index.Differences(code, v.parts[c.part].VectorStore.Code(int(c.slot))), v.model.Dimensions())
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
	s.vectors.spelt = s.vectors.spelt[:0]
	if v.model == nil || !s.vectors.compared {
		return
	}
	start := time.Now()
	words := 0
	for i := range s.asked.terms {
		if t := &s.asked.terms[i]; t.current && words < mostSpelt {
			words++
			before := len(s.vectors.spelt)
			if s.vectors.spelt = v.model.AppendSigns(s.vectors.spelt, t.word); index.Silent(s.vectors.spelt[before:]) {
				s.vectors.spelt = s.vectors.spelt[:before]
			}
		}
	}
	s.vectors.embedding += time.Since(start)
}

// likest says how similar a word of a name is to the word of the message that
// it is most like.
func (s *searcher) likest(code []uint64) float32 {
	n := len(code)
	if n == 0 || index.Silent(code) {
		return 0
	}
	least := 64 * n / 2 // as different as unrelated words are
	for rest := s.vectors.spelt; len(rest) >= n; rest = rest[n:] {
		least = min(least, index.Differences(code, rest))
	}
	return index.Cosine(least, 64*n)
}
