// Package index holds capabilities by their words, and by vectors where an
// embedder makes some. Package find/ranking searches it.
//
// A [Segment] holds capabilities in slots and never changes; [Segment.Change]
// makes a changed one that shares what stayed. Its fields are open to reading,
// since a search walks them for every message; nothing outside this package
// writes to them. A [Cache] keeps segments in files.
package index

import (
	"hash/maphash"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/know/embed"
	"ken/internal/language"
)

// Fields of a capability, and how much a word counts by where it stands.
const (
	FieldName = iota
	FieldText
	fieldParams
	fieldTags
	FieldParamText
	fields
)

// A Segment is immutable and safe for any number of goroutines.
type Segment struct {
	Docs     []Doc // by slot; one without a capability is free
	Live     Bits
	free     []int32 // slots without a capability
	Words    layered[string, uint32]
	Stems    layered[string, uint32]
	Names    layered[uint64, called] // slots by the hash of a folded name, id or alias
	Postings pages
	Terms    int // of all capabilities together
	made     int // size when it had no word of anything gone

	Spoken      [32]int32    // by language: how many capabilities are described in it
	Model       *embed.Model // makes the vectors of what is added; nil: there are none
	VectorStore *Vectors     // of Model
	Second      *Vectors     // of an embedder, in the making: some slots may have none yet
}

// A Doc is what a search knows of one capability.
type Doc struct {
	Capability *capability.Capability
	Terms      []uint32 // distinct, ascending
	Counts     []uint32 // of each term: how often by field, see pack
	InName     []uint32 // the terms of the name, distinct, in its order
	nameCodes  []uint64 // of each of these, the signs of its vector; none without a model
	Pairs      []uint32 // hashes of neighbouring terms in name and description, ascending
	Norm       [fields]float32
	Lang       uint8
}

// A posting says how much a capability has of a term.
type posting struct {
	Slot   int32
	Impact float32 // 0 to saturation+1
}

const (
	countBits = 6 // of each field in a packed count
	countMax  = 1<<countBits - 1
)

// Count returns how often a term stands in a field, out of a packed count.
func Count(packed uint32, field int) float32 {
	return float32(packed >> (countBits * field) & countMax)
}

// Build makes a segment of the capabilities: the first in slot 0, and so on.
func Build(list []*capability.Capability) *Segment { return BuildWith(nil, list) }

// BuildWith makes a segment of the capabilities, and gives them vectors of a
// model, those too that a [Segment.Change] adds. Without a model it is Build.
func BuildWith(model *embed.Model, list []*capability.Capability) *Segment {
	empty := Segment{Model: model}
	s, _ := empty.Change(list, nil)
	return s
}

// Len returns the number of slots, free ones among them.
func (s *Segment) Len() int { return len(s.Docs) }

// At returns the capability in a slot; nil when it is free.
func (s *Segment) At(slot int) *capability.Capability { return s.Docs[slot].Capability }

// Change returns a segment without the capabilities in the slots removed and with
// those in add, and the slots that these are in. What is added goes to free
// slots first, removed ones among them, in ascending order.
func (s *Segment) Change(add []*capability.Capability, removed []int) (*Segment, []int) {
	w := newWriter(s)
	w.next.VectorStore, w.next.Second = s.VectorStore.without(removed), s.Second.without(removed)
	for _, slot := range removed {
		w.remove(slot)
	}
	w.names.room(namesEach * len(add))
	slots := make([]int, 0, len(add))
	for _, c := range add {
		slots = append(slots, w.add(c))
	}
	if w.postings.fresh {
		w.fill()
	}
	return w.done(), slots
}

// A writer makes a changed segment.
type writer struct {
	next     *Segment
	words    *layer[string, uint32]
	stems    *layer[string, uint32]
	names    *layer[uint64, called]
	postings *pageWriter

	tokens []Token
	others []Token  // of a text that is not name or description
	terms  []uint64 // of the capability that is being read: the term, and one in its field as pack has it
	totals totals
	run    []uint32
	spelt  []string // how the words of run are spelt
	firsts []uint32 // the terms of the name, each once
	pairs  []uint32 // of neighbouring terms
	vector []float32
	owned  map[int]bool // pages of vectors that are this writer's own

	// params are the terms of English texts of parameters. The tools of one server
	// often have the same parameters: of 6,067 real tools, half of that text stood in
	// one before.
	params map[string][]uint32
	signs  map[string][]uint64 // of words in names: few words make many names
	recent [1 << 10]spelling   // by hash of the word

	// Lists of docs lie side by side in large pieces, which costs less memory than many
	// small ones.
	numbers []uint32
	codes64 []uint64
}

func newWriter(s *Segment) *writer {
	next := &Segment{Docs: slices.Clone(s.Docs), Live: slices.Clone(s.Live), free: slices.Clone(s.free), Terms: s.Terms, made: s.made, Spoken: s.Spoken, VectorStore: s.VectorStore, Model: s.Model, Second: s.Second}
	w := &writer{next: next, words: s.Words.changed(), stems: s.Stems.changed(), names: s.Names.changed(), postings: s.Postings.changed()}
	w.postings.fresh = len(s.Docs) == 0 // capabilities without a word have names, which are shared
	return w
}

func (w *writer) done() *Segment {
	n := w.next
	n.Words, n.Stems, n.Names = w.words.done(), w.stems.done(), w.names.done()
	n.Postings = w.postings.done()
	if w.postings.fresh {
		n.made = n.size()
	}
	return n
}

func (w *writer) remove(slot int) {
	d := &w.next.Docs[slot]
	w.next.Terms -= len(d.Terms)
	w.next.Spoken[d.Lang]--
	for _, t := range d.Terms {
		list := w.postings.at(t)
		i, _ := slices.BinarySearchFunc(*list, int32(slot), bySlot)
		*list = slices.Delete(*list, i, i+1)
	}
	for key := range nameKeys(d.Capability) {
		old, _ := w.names.Get(key)
		w.names.set(key, old.without(int32(slot)))
	}
	w.next.Docs[slot] = Doc{}
	w.next.Live[slot>>6] &^= 1 << (slot & 63)
	i, _ := slices.BinarySearch(w.next.free, int32(slot))
	w.next.free = slices.Insert(w.next.free, i, int32(slot))
}

func bySlot(p posting, slot int32) int { return int(p.Slot) - int(slot) }

func (w *writer) add(c *capability.Capability) int {
	slot := len(w.next.Docs)
	if len(w.next.free) > 0 {
		slot = int(w.next.free[0])
		w.next.free = w.next.free[1:]
	} else {
		w.next.Docs = append(w.next.Docs, Doc{})
		if slot>>6 >= len(w.next.Live) {
			w.next.Live = append(w.next.Live, 0)
		}
	}
	w.next.Live.Set(slot)
	d := w.doc(c)
	w.next.Docs[slot] = d
	w.embed(c, slot)
	w.next.Terms += len(d.Terms)
	w.next.Spoken[d.Lang]++
	if w.postings.fresh {
		w.name(c, slot)
		return slot // fill writes the postings at once
	}
	for i, t := range d.Terms {
		p := posting{int32(slot), impact(d.Counts[i], &d.Norm)}
		list := w.postings.at(t)
		if n := len(*list); n == 0 || (*list)[n-1].Slot < p.Slot {
			*list = append(*list, p)
			continue
		}
		at, _ := slices.BinarySearchFunc(*list, p.Slot, bySlot)
		*list = slices.Insert(*list, at, p)
	}
	w.name(c, slot)
	return slot
}

// name adds what a capability can be called by.
func (w *writer) name(c *capability.Capability, slot int) {
	for key := range nameKeys(c) {
		old, ok := w.names.Get(key)
		w.names.set(key, old.with(int32(slot), ok, w.postings.fresh))
	}
}

// doc reads the words of a capability.
func (w *writer) doc(c *capability.Capability) Doc {
	d := Doc{Capability: c}
	w.terms, w.run, w.spelt = w.terms[:0], w.run[:0], w.spelt[:0]
	w.tokens = AppendTokens(w.tokens[:0], c.Name)
	ofName := len(w.tokens)
	w.tokens = AppendTokens(w.tokens, c.Description)
	lang := w.language(w.tokens)
	d.Lang = uint8(lang)

	w.fieldOf(&d, FieldName, lang, w.tokens[:ofName])
	if c.DisplayName != "" && c.DisplayName != c.Name {
		w.field(&d, fieldTags, lang, c.DisplayName)
	}
	w.firsts = firsts(w.firsts[:0], w.run)
	d.InName = w.list(w.firsts)
	d.nameCodes = w.codes(d.InName)
	w.fieldOf(&d, FieldText, lang, w.tokens[ofName:])
	w.pairs = pairsOf(w.pairs[:0], w.run)
	d.Pairs = w.list(w.pairs)
	w.field(&d, fieldTags, lang, c.Category)
	for _, t := range c.Tags {
		w.field(&d, fieldTags, lang, t)
	}
	for _, a := range c.Aliases {
		w.field(&d, fieldTags, lang, a)
	}
	if c.Triggers != nil {
		for _, k := range c.Triggers.Keywords {
			w.field(&d, fieldTags, lang, k)
		}
	}
	for _, p := range c.Parameters {
		w.param(&d, fieldParams, lang, p.Name)
		w.param(&d, FieldParamText, lang, p.Description)
	}
	for f := range fields {
		d.Norm[f] = 1 / (1 - fieldSlope[f] + fieldSlope[f]*d.Norm[f]/fieldLength[f])
	}
	w.sum(&d)
	return d
}

// totals are the counts of one capability, while they are added up.
type totals struct {
	of    []uint32 // by term
	terms []uint32 // each once
}

// sum adds up the counts of each term.
func (w *writer) sum(d *Doc) {
	sum := &w.totals
	sum.of = append(sum.of, make([]uint32, w.postings.Count-len(sum.of))...)
	sum.terms = sum.terms[:0]
	for _, t := range w.terms {
		id, packed := uint32(t>>32), uint32(t)
		if sum.of[id] == 0 {
			sum.terms = append(sum.terms, id)
		} else {
			packed = addPacked(sum.of[id], packed)
		}
		sum.of[id] = packed
	}
	slices.Sort(sum.terms)
	n := len(sum.terms)
	both := carve(w, &w.numbers, 2*n)
	d.Terms, d.Counts = both[:n:n], both[n:]
	copy(d.Terms, sum.terms)
	for i, id := range sum.terms {
		d.Counts[i], sum.of[id] = sum.of[id], 0
	}
}

// addPacked adds counts field by field, each up to the most it can hold.
func addPacked(a, b uint32) uint32 {
	var sum uint32
	for f := range fields {
		n := min(a>>(countBits*f)&countMax+b>>(countBits*f)&countMax, countMax)
		sum |= n << (countBits * f)
	}
	return sum
}

// field adds the words of one text.
func (w *writer) field(d *Doc, field, lang int, text string) {
	if text != "" {
		w.others = AppendTokens(w.others[:0], text)
		w.fieldOf(d, field, lang, w.others)
	}
}

// fieldOf adds words. run takes the terms of name and description in their order.
func (w *writer) fieldOf(d *Doc, field, lang int, tokens []Token) {
	for i := range tokens {
		t := &tokens[i]
		s := w.spelling(t.Text)
		if s.stop&(1<<lang) != 0 || t.Text == "" {
			continue
		}
		d.Norm[field]++ // the length for now
		term := s.term
		switch {
		case lang != EnglishLanguage:
			term = w.term(t, lang)
		case !s.met:
			term = w.term(t, lang)
			s.term, s.met = term, true
		}
		w.count(term, field)
		if lang != EnglishLanguage && !t.Pair && !t.Digits {
			if plain := w.term(t, EnglishLanguage); plain != term {
				w.count(plain, field)
			}
		}
		if field == FieldName || field == FieldText {
			w.run = append(w.run, term)
			w.spelt = append(w.spelt, t.Text)
		}
	}
}

// A spelling is what is known of a word.
type spelling struct {
	text string
	stop uint32 // the languages in which it says nothing, see [language.StopIn]
	term uint32 // in English
	met  bool   // term is known
}

// spelling returns what is known of a word. It is valid until the next call. Most of a
// catalog's text is made of few words, which are found here sooner than in the maps.
func (w *writer) spelling(text string) *spelling {
	s := &w.recent[maphash.String(nameSeed, text)%uint64(len(w.recent))]
	if s.text != text {
		*s = spelling{text: text, stop: language.StopIn(text)}
	}
	return s
}

// language is [LanguageOf].
func (w *writer) language(tokens []Token) int {
	var g language.Guess
	for i := range tokens[:min(len(tokens), longestGuessed)] {
		g.AddIn(w.spelling(tokens[i].Text).stop)
	}
	return g.Language()
}

// count adds a term to those of the capability.
func (w *writer) count(term uint32, field int) {
	w.terms = append(w.terms, uint64(term)<<32|1<<(countBits*field))
}

// param is field for the text of a parameter. The terms of one in another language
// than English are not remembered: it may have more of them than words.
func (w *writer) param(d *Doc, field, lang int, text string) {
	if text == "" {
		return
	}
	if lang != EnglishLanguage || !w.postings.fresh {
		w.field(d, field, lang, text)
		return
	}
	if terms, ok := w.params[text]; ok {
		d.Norm[field] += float32(len(terms))
		for _, t := range terms {
			w.count(t, field)
		}
		return
	}
	from := len(w.terms)
	w.field(d, field, lang, text)
	terms := make([]uint32, 0, len(w.terms)-from)
	for _, t := range w.terms[from:] {
		terms = append(terms, uint32(t>>32))
	}
	if w.params == nil {
		w.params = map[string][]uint32{}
	}
	w.params[text] = terms
}

// term returns the number of a word's term, a new one if need be.
func (w *writer) term(t *Token, lang int) uint32 {
	if lang == EnglishLanguage {
		if id, ok := w.words.Get(t.Text); ok {
			return id
		}
	}
	stemmed := t.Text
	if !t.Pair && !t.Digits {
		stemmed = Stem(t.Text, lang)
	}
	id, ok := w.stems.Get(stemmed)
	if !ok {
		id = w.postings.grow(Says(stemmed))
		w.stems.set(strings.Clone(stemmed), id)
	}
	if lang == EnglishLanguage {
		w.words.set(strings.Clone(t.Text), id)
	}
	return id
}

// PairOf returns the hash of two neighbouring terms.
func PairOf(a, b uint32) uint32 {
	h := uint64(a)*0x9E3779B97F4A7C15 ^ uint64(b)*0xC2B2AE3D27D4EB4F
	return uint32(h>>32) ^ uint32(h)
}

// NameCode returns the code of the i-th word of a name; none if it has no codes.
func (d *Doc) NameCode(i int) []uint64 {
	if len(d.nameCodes) == 0 {
		return nil
	}
	n := len(d.nameCodes) / len(d.InName)
	return d.nameCodes[i*n : (i+1)*n]
}

// IsInName reports whether a term is in the name.
func (d *Doc) IsInName(id uint32) bool {
	for _, t := range d.InName {
		if t == id {
			return true
		}
	}
	return false
}
