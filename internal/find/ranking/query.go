package ranking

import (
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"ken/internal/know/index"
)

// A Query is what is looked for.
type Query struct {
	Text   string
	Before []Before  // what was said before it, the latest first
	Vector []float32 // of the text, by the embedder whose vectors the segments hold beside their own; nil: there is none

	// English says that the embedder reads nothing else: a message in another
	// language has no vector.
	English bool
}

// Before is an earlier message and how much its words count, 0–1.
type Before struct {
	Text   string
	Weight float64
}

const (
	// LongestText is how much of a message is read: its beginning and its
	// end. People state their wish in one of them, and the middle of a long
	// message is what they pasted.
	LongestText = 8 << 10
	mostRead    = 1024    // distinct words that are read
	longestPast = 2 << 10 // how much of an earlier message
	mostTerms   = 96      // distinct words that count; the rarest are taken
)

// A term is one distinct word of a query.
type term struct {
	word    string // as it stands in the message, lowered
	weight  float32
	rarity  float32 // how much it says in this catalog
	says    float32 // how much it says in any
	clause  int32
	current bool     // it is in the message itself
	known   bool     // a visible capability has it
	ids     []uint32 // by part; none where the part lacks it
}

const none = ^uint32(0)

// asked is a query, read for one view.
type asked struct {
	terms   []term
	ids     []uint32 // what the terms' ids point into
	tokens  []index.Token
	run     []int32 // the message's terms in their order, -1 between clauses
	clauses int
	byWord  map[string]int32 // terms by the word that they stand for
	byID    map[uint64]int32 // and by their number in the first part that has them
	total   float32          // what having every word of the message is worth

	values   int  // numbers of the message that no capability mentions
	foreign  bool // the message is not in English
	pointing bool // the message means something said before
}

// shorten cuts the middle out of a long text, between characters.
func shorten(text string, most int) (head, tail string) {
	if len(text) <= most {
		return text, ""
	}
	end := most / 2
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	start := len(text) - most/2
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	return text[:end], text[start:]
}

// read takes a query apart and looks its words up.
func (a *asked) read(v *View, q Query) {
	a.terms, a.ids, a.run, a.clauses, a.total = a.terms[:0], a.ids[:0], a.run[:0], 0, 0
	if a.byWord == nil {
		a.byWord, a.byID = map[string]int32{}, map[uint64]int32{}
	}
	clear(a.byWord)
	clear(a.byID)
	a.values, a.foreign = 0, false
	head, tail := shorten(q.Text, LongestText)
	a.add(v, head, 1, true)
	a.add(v, tail, 1, true)
	// "Do it again for the other one" says little by itself: then what was
	// said before it belongs to it.
	alone, foreign := a.telling(v), a.foreign
	a.pointing = !alone
	for i, b := range q.Before {
		head, tail := shorten(b.Text, longestPast)
		a.add(v, head, float32(b.Weight), i == 0 && !alone)
		a.add(v, tail, float32(b.Weight), i == 0 && !alone)
	}
	a.foreign = foreign // what was said before has no say in that
	if len(a.terms) > mostTerms {
		a.rarest()
	}
	for i := range a.terms {
		if t := &a.terms[i]; t.current {
			a.total += t.worth()
		}
	}
}

// pointing are words that mean something said before.
var pointing = strings.Fields(`again another both else first instead last more next now ok okay one ones other others previous
	right same second sure thing things then third too yeah yes`)

// telling reports whether a message says by itself what it is about: in two
// words that capabilities have, or in one that is in a name. Where meaning is
// known too, any two words are enough.
func (a *asked) telling(v *View) bool {
	known, said := 0, 0
	for i := range a.terms {
		t := &a.terms[i]
		if slices.Contains(pointing, t.word) {
			continue
		}
		if said++; said == 2 && v.model != nil && !a.foreign {
			return true
		}
		if !t.known {
			continue
		}
		if known++; known == 2 || v.names(t) {
			return true
		}
	}
	return false
}

// names reports whether a term is in the name of a visible capability.
func (v *View) names(t *term) bool {
	for i, id := range t.ids {
		if id == none {
			continue
		}
		p := &v.parts[i]
		for _, post := range p.Postings.Of(id) {
			if p.visible.Has(int(post.Slot)) && p.Docs[post.Slot].IsInName(id) {
				return true
			}
		}
	}
	return false
}

// worth returns what having the term is worth. A word that no capability has is
// most likely a detail (a name, an address), not the task.
func (t *term) worth() float32 {
	if !t.known {
		return unknownPart * t.rarity
	}
	return t.rarity
}

const unknownPart = 0.4

// rarest leaves the words that say most.
func (a *asked) rarest() {
	order := make([]int, len(a.terms))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		x, y := &a.terms[i], &a.terms[j]
		switch {
		case x.known != y.known:
			if x.known {
				return -1
			}
			return 1
		case x.weight*x.rarity > y.weight*y.rarity:
			return -1
		case x.weight*x.rarity < y.weight*y.rarity:
			return 1
		}
		return 0
	})
	order = order[:mostTerms]
	slices.Sort(order)
	now := make([]int32, len(a.terms))
	for i := range now {
		now[i] = -1
	}
	for to, from := range order {
		a.terms[to], now[from] = a.terms[from], int32(to)
	}
	a.terms = a.terms[:mostTerms]
	for i, t := range a.run {
		if t >= 0 {
			a.run[i] = now[t]
		}
	}
}

// add reads one text.
func (a *asked) add(v *View, text string, weight float32, current bool) {
	if text == "" || !(weight > 0) { // NaN is refused too
		return
	}
	a.tokens = index.AppendTokens(a.tokens[:0], text)
	lang := index.LanguageOf(a.tokens)
	a.foreign = a.foreign || current && lang != index.EnglishLanguage
	clause := -1
	for i := 0; i < len(a.tokens); i++ {
		t := &a.tokens[i]
		if index.IsStop(t.Text, lang) || index.IsStop(t.Text, index.EnglishLanguage) {
			continue
		}
		if t.Clause != clause && current {
			clause = t.Clause
			a.run = append(a.run, -1)
			a.clauses++
		}
		before := len(a.terms)
		at, known := a.term(v, t, lang, weight, current)
		if t.Joined > 0 && !known {
			a.drop(before) // its pieces say it
			continue
		}
		if at >= 0 && current {
			a.run = append(a.run, at)
		}
		i += t.Joined // its pieces say no more
	}
}

// drop takes back the terms beyond the first n.
func (a *asked) drop(n int) {
	for i := n; i < len(a.terms); i++ {
		delete(a.byWord, a.terms[i].word) // no capability has it, so it has no number
		a.ids = a.ids[:len(a.ids)-len(a.terms[i].ids)]
	}
	a.terms = a.terms[:n]
}

// term adds a word, or makes the same one of before heavier.
func (a *asked) term(v *View, t *index.Token, lang int, weight float32, current bool) (at int32, known bool) {
	start := len(a.ids)
	holders, says := a.lookup(v, t, lang)
	ids := a.ids[start:len(a.ids):len(a.ids)]
	if i, ok := a.same(t.Text, ids, holders); ok {
		before := &a.terms[i]
		a.ids = a.ids[:start]
		if current && before.current {
			before.weight = min(before.weight+0.3*weight, 1.6)
		} else {
			before.weight = max(before.weight, weight)
		}
		return i, before.known
	}
	if t.Digits && holders == 0 || len(a.terms) >= mostRead {
		a.ids = a.ids[:start]
		if current {
			a.values++
		}
		return -1, false // a number that no capability mentions is a value
	}
	a.note(t.Text, ids, holders, int32(len(a.terms)))
	a.terms = append(a.terms, term{
		word: t.Text, weight: weight, rarity: v.rarity(holders), says: says, clause: int32(a.clauses),
		current: current, known: holders > 0, ids: ids,
	})
	return int32(len(a.terms) - 1), holders > 0
}

// same finds the term that a word is another writing of.
func (a *asked) same(word string, ids []uint32, holders int) (int32, bool) {
	if i, ok := a.byWord[word]; ok {
		return i, true
	}
	if holders > 0 {
		for part, id := range ids {
			if id != none {
				i, ok := a.byID[uint64(part)<<32|uint64(id)]
				return i, ok
			}
		}
	}
	return 0, false
}

// note remembers where a term is.
func (a *asked) note(word string, ids []uint32, holders int, at int32) {
	a.byWord[word] = at
	if holders > 0 {
		for part, id := range ids {
			if id != none {
				a.byID[uint64(part)<<32|uint64(id)] = at
				return
			}
		}
	}
}

// lookup appends the number of a word's term in each part, and returns how many
// capabilities have the term and how much it says. A word of another language
// than English is looked up by its stem in that language, and as an English word
// if no visible capability has that stem: neither hidden or removed capabilities
// nor the part that a capability is in may decide which.
func (a *asked) lookup(v *View, t *index.Token, lang int) (holders int, says float32) {
	if t.Pair || t.Digits {
		return a.find(v, "", t.Text)
	}
	if lang != index.EnglishLanguage {
		start := len(a.ids)
		if holders, says = a.find(v, "", index.Stem(t.Text, lang)); holders > 0 {
			return holders, says
		}
		a.ids = a.ids[:start]
	}
	start := len(a.ids)
	if holders, says = a.find(v, t.Text, ""); holders > 0 || lang != index.EnglishLanguage {
		return holders, says
	}
	// A word alone does not show its language: those of the catalog are tried.
	for languages := v.languages &^ (1 << index.EnglishLanguage); languages != 0; languages &= languages - 1 {
		tried := len(a.ids)
		if h, s := a.find(v, "", index.Stem(t.Text, bits.TrailingZeros32(languages))); h > 0 {
			a.ids = append(a.ids[:start], a.ids[tried:]...)
			return h, s
		}
		a.ids = a.ids[:tried]
	}
	return holders, says
}

// find looks a stem up in every part. Where it is empty, it is that of an
// English word, and made only if a part has not seen the word.
func (a *asked) find(v *View, word, stemmed string) (holders int, says float32) {
	says = -1
	for i := range v.parts {
		p := &v.parts[i]
		id, ok := none, false
		if stemmed == "" {
			if id, ok = p.Words.Get(word); !ok {
				stemmed = index.Stem(word, index.EnglishLanguage)
			}
		}
		if !ok {
			id, ok = p.Stems.Get(stemmed)
		}
		if ok {
			holders, says = p.holders(id), p.Postings.Says[id]
		} else {
			id = none
		}
		a.ids = append(a.ids, id)
	}
	if says < 0 { // no part has it, so the stem was made
		says = index.Says(stemmed)
	}
	return holders, says
}
