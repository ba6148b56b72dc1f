// Package index finds capabilities by the words of a message, and by vectors
// where an embedder gives some.
//
// A [Segment] holds capabilities in slots and never changes; [Segment.Change]
// makes a changed one that shares what stayed. A [View] narrows segments to
// what somebody may see: what is hidden has no influence on what is found. A
// search works on slots and bits; no string of a capability is touched.
package index

import (
	"cmp"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/know/embed"
)

// Fields of a capability, and how much a word counts by where it stands.
const (
	fieldName = iota
	fieldText
	fieldParams
	fieldTags
	fieldParamText
	fields
)

// A Segment is immutable and safe for any number of goroutines.
type Segment struct {
	docs     []doc // by slot; one without a capability is free
	live     Bits
	free     []int32 // slots without a capability
	words    layered[string, uint32]
	stems    layered[string, uint32]
	names    layered[uint64, called] // slots by the hash of a folded name, id or alias
	postings pages
	terms    int // of all capabilities together
	made     int // size when it had no word of anything gone

	spoken  [32]int32 // by language: how many capabilities are described in it
	vectors *vectors
	model   *embed.Model // makes the vectors of what is added; nil: nobody, or somebody else
}

// A doc is what a search knows of one capability.
type doc struct {
	capability *capability.Capability
	terms      []uint32 // distinct, ascending
	counts     []uint32 // of each term: how often by field, see pack
	inName     []uint32 // the terms of the name, distinct, in its order
	nameCodes  []uint64 // of each of these, the signs of its vector; none without a model
	pairs      []uint32 // hashes of neighbouring terms in name and description, ascending
	norm       [fields]float32
	lang       uint8
}

// A posting says how much a capability has of a term.
type posting struct {
	slot   int32
	impact float32 // 0 to saturation+1
}

const (
	countBits = 6 // of each field in a packed count
	countMax  = 1<<countBits - 1
)

func count(packed uint32, field int) float32 {
	return float32(packed >> (countBits * field) & countMax)
}

// How BM25 weighs the fields. The lengths are those of usual capabilities
// rather than of the catalog at hand: what one capability is worth must not
// depend on its neighbours, or each change would touch everything.
var (
	fieldWeight = [fields]float32{4.5, 0.8, 1, 0.4, 0.4}
	fieldLength = [fields]float32{3, 12.5, 4.3, 5, 26}
	fieldSlope  = [fields]float32{0.2, 0.55, 0.7, 0.25, 0.7}
)

const saturation = 1.2 // how soon more of the same word stops counting

func impact(packed uint32, norm *[fields]float32) float32 {
	var weight float32
	for f := range fields {
		if n := count(packed, f); n > 0 {
			weight += fieldWeight[f] * n * norm[f]
		}
	}
	return weight * (saturation + 1) / (weight + saturation)
}

// Build makes a segment of the capabilities: the first in slot 0, and so on.
func Build(list []*capability.Capability) *Segment { return BuildWith(nil, list) }

// BuildWith makes a segment of the capabilities, and gives them vectors of a
// model, those too that a [Segment.Change] adds. Without a model it is Build.
func BuildWith(model *embed.Model, list []*capability.Capability) *Segment {
	empty := Segment{model: model}
	s, _ := empty.Change(list, nil)
	return s
}

// Len returns the number of slots, free ones among them.
func (s *Segment) Len() int { return len(s.docs) }

// At returns the capability in a slot; nil when it is free.
func (s *Segment) At(slot int) *capability.Capability { return s.docs[slot].capability }

// Change returns a segment without the capabilities in the slots removed and with
// those in add, and the slots that these are in. What is added goes to free
// slots first, removed ones among them, in ascending order.
func (s *Segment) Change(add []*capability.Capability, removed []int) (*Segment, []int) {
	w := newWriter(s)
	w.next.vectors = s.vectors.without(removed)
	for _, slot := range removed {
		w.remove(slot)
	}
	slots := make([]int, 0, len(add))
	for _, c := range add {
		slots = append(slots, w.add(c))
	}
	if w.postings.fresh {
		w.fill()
		w.next.compact()
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

	tokens []token
	terms  []termCount
	run    []uint32
	spelt  []string // how the words of run are spelt
	vector []float32
	owned  map[int]bool // pages of vectors that are this writer's own
}

type termCount struct{ term, packed uint32 }

func newWriter(s *Segment) *writer {
	next := &Segment{docs: slices.Clone(s.docs), live: slices.Clone(s.live), free: slices.Clone(s.free), terms: s.terms, made: s.made, spoken: s.spoken, vectors: s.vectors, model: s.model}
	w := &writer{next: next, words: s.words.changed(), stems: s.stems.changed(), names: s.names.changed(), postings: s.postings.changed()}
	w.postings.fresh = len(s.docs) == 0 // capabilities without a word have names, which are shared
	return w
}

func (w *writer) done() *Segment {
	n := w.next
	n.words, n.stems, n.names = w.words.done(), w.stems.done(), w.names.done()
	n.postings = w.postings.done()
	if w.postings.fresh {
		n.made = n.size()
	}
	return n
}

func (w *writer) remove(slot int) {
	d := &w.next.docs[slot]
	w.next.terms -= len(d.terms)
	w.next.spoken[d.lang]--
	for _, t := range d.terms {
		list := w.postings.at(t)
		i, _ := slices.BinarySearchFunc(*list, int32(slot), bySlot)
		*list = slices.Delete(*list, i, i+1)
	}
	for key := range nameKeys(d.capability) {
		old, _ := w.names.get(key)
		w.names.set(key, old.without(int32(slot)))
	}
	w.next.docs[slot] = doc{}
	w.next.live[slot>>6] &^= 1 << (slot & 63)
	i, _ := slices.BinarySearch(w.next.free, int32(slot))
	w.next.free = slices.Insert(w.next.free, i, int32(slot))
}

func bySlot(p posting, slot int32) int { return int(p.slot) - int(slot) }

func (w *writer) add(c *capability.Capability) int {
	slot := len(w.next.docs)
	if len(w.next.free) > 0 {
		slot = int(w.next.free[0])
		w.next.free = w.next.free[1:]
	} else {
		w.next.docs = append(w.next.docs, doc{})
		if slot>>6 >= len(w.next.live) {
			w.next.live = append(w.next.live, 0)
		}
	}
	w.next.live.Set(slot)
	d := w.doc(c)
	w.next.docs[slot] = d
	w.embed(c, slot)
	w.next.terms += len(d.terms)
	w.next.spoken[d.lang]++
	if w.postings.fresh {
		w.name(c, slot)
		return slot // fill writes the postings at once
	}
	for i, t := range d.terms {
		p := posting{int32(slot), impact(d.counts[i], &d.norm)}
		list := w.postings.at(t)
		if n := len(*list); n == 0 || (*list)[n-1].slot < p.slot {
			*list = append(*list, p)
			continue
		}
		at, _ := slices.BinarySearchFunc(*list, p.slot, bySlot)
		*list = slices.Insert(*list, at, p)
	}
	w.name(c, slot)
	return slot
}

// name adds what a capability can be called by.
func (w *writer) name(c *capability.Capability, slot int) {
	for key := range nameKeys(c) {
		old, ok := w.names.get(key)
		w.names.set(key, old.with(int32(slot), ok, w.postings.fresh))
	}
}

// doc reads the words of a capability.
func (w *writer) doc(c *capability.Capability) doc {
	d := doc{capability: c}
	w.terms, w.run, w.spelt = w.terms[:0], w.run[:0], w.spelt[:0]
	w.tokens = appendTokens(appendTokens(w.tokens[:0], c.Name), c.Description)
	lang := languageOf(w.tokens)
	d.lang = uint8(lang)

	w.field(&d, fieldName, lang, c.Name)
	if c.DisplayName != "" && c.DisplayName != c.Name {
		w.field(&d, fieldTags, lang, c.DisplayName)
	}
	d.inName = firsts(w.run)
	d.nameCodes = w.codes(d.inName)
	w.field(&d, fieldText, lang, c.Description)
	d.pairs = pairsOf(w.run)
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
		w.field(&d, fieldParams, lang, p.Name)
		w.field(&d, fieldParamText, lang, p.Description)
	}
	for f := range fields {
		d.norm[f] = 1 / (1 - fieldSlope[f] + fieldSlope[f]*d.norm[f]/fieldLength[f])
	}
	slices.SortFunc(w.terms, func(a, b termCount) int { return cmp.Compare(a.term, b.term) })
	n := 0
	for _, t := range w.terms {
		if n > 0 && w.terms[n-1].term == t.term {
			w.terms[n-1].packed = addPacked(w.terms[n-1].packed, t.packed)
			continue
		}
		w.terms[n] = t
		n++
	}
	both := make([]uint32, 2*n) // one allocation for two lists
	d.terms, d.counts = both[:n:n], both[n:]
	for i, t := range w.terms[:n] {
		d.terms[i], d.counts[i] = t.term, t.packed
	}
	return d
}

// compact moves the lists of all docs into one, which costs less memory than
// many small ones.
func (s *Segment) compact() {
	total, spelt := 0, 0
	for i := range s.docs {
		d := &s.docs[i]
		spelt += len(d.nameCodes)
		total += len(d.terms) + len(d.counts) + len(d.inName) + len(d.pairs)
	}
	all := make([]uint32, 0, total)
	codes := make([]uint64, 0, spelt)
	move := func(list []uint32) []uint32 {
		start := len(all)
		all = append(all, list...)
		return all[start:len(all):len(all)]
	}
	for i := range s.docs {
		d := &s.docs[i]
		d.terms, d.counts, d.inName, d.pairs = move(d.terms), move(d.counts), move(d.inName), move(d.pairs)
		start := len(codes)
		codes = append(codes, d.nameCodes...)
		d.nameCodes = codes[start:len(codes):len(codes)]
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

// field adds the words of one text. run takes the terms of name and
// description in their order.
func (w *writer) field(d *doc, field, lang int, text string) {
	if text == "" {
		return
	}
	w.tokens = appendTokens(w.tokens[:0], text)
	for i := 0; i < len(w.tokens); i++ {
		t := &w.tokens[i]
		if isStop(t.text, lang) || t.text == "" {
			continue
		}
		d.norm[field]++ // the length for now
		term := w.term(t, lang)
		w.terms = append(w.terms, termCount{term, 1 << (countBits * field)})
		if lang != englishLanguage && !t.pair && !t.digits {
			if plain := w.term(t, englishLanguage); plain != term {
				w.terms = append(w.terms, termCount{plain, 1 << (countBits * field)})
			}
		}
		if field == fieldName || field == fieldText {
			w.run = append(w.run, term)
			w.spelt = append(w.spelt, t.text)
		}
	}
}

// term returns the number of a word's term, a new one if need be.
func (w *writer) term(t *token, lang int) uint32 {
	if lang == englishLanguage {
		if id, ok := w.words.get(t.text); ok {
			return id
		}
	}
	stemmed := t.text
	if !t.pair && !t.digits {
		stemmed = stem(t.text, lang)
	}
	id, ok := w.stems.get(stemmed)
	if !ok {
		id = w.postings.grow(saysOf(stemmed))
		w.stems.set(strings.Clone(stemmed), id)
	}
	if lang == englishLanguage {
		w.words.set(strings.Clone(t.text), id)
	}
	return id
}

// firsts returns each term once, in the order of the text: sums over them must
// not depend on how terms came to be numbered.
func firsts(terms []uint32) []uint32 {
	if len(distinct(slices.Clone(terms))) == len(terms) {
		return slices.Clone(terms)
	}
	seen := make(map[uint32]bool, len(terms))
	var out []uint32
	for _, t := range terms {
		if !seen[t] {
			seen[t] = true
			out = append(out, t)
		}
	}
	return out
}

func distinct(terms []uint32) []uint32 {
	slices.Sort(terms)
	return slices.Clip(slices.Compact(terms))
}

// pairsOf hashes each pair of neighbouring terms.
func pairsOf(run []uint32) []uint32 {
	if len(run) < 2 {
		return nil
	}
	out := make([]uint32, 0, len(run)-1)
	for i := range len(run) - 1 {
		out = append(out, pairOf(run[i], run[i+1]))
	}
	return distinct(out)
}

func pairOf(a, b uint32) uint32 {
	h := uint64(a)*0x9E3779B97F4A7C15 ^ uint64(b)*0xC2B2AE3D27D4EB4F
	return uint32(h>>32) ^ uint32(h)
}
