// Package index finds capabilities by the words of a message.
//
// An [Index] is built once for a list of capabilities and never changes. It
// works on ordinals, positions in that list, so that a caller filters with a
// function or a bit set and no strings are touched while searching.
package index

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"ken/capability"
)

// How much a word counts by where it stands.
const (
	nameWeight    = 3.0
	triggerWeight = 3.0
	tagWeight     = 2.0
	textWeight    = 1.0
	paramWeight   = 0.5

	saturation = 1.2 // how soon more of the same word stops counting
	lengthPart = 0.5 // how much long texts are held back

	unknownPart = 0.25 // how much a word that no capability has counts against all
)

// An Index is immutable and safe for any number of goroutines.
type Index struct {
	postings map[string][]posting
	length   []float32 // weighted words per capability
	average  float64
	n        int
	byName   map[string][]int // folded names, ids and aliases
}

type posting struct {
	ordinal int32
	weight  float32
}

// Build makes an index of the capabilities in their order.
func Build(list []*capability.Capability) *Index {
	x := &Index{
		postings: map[string][]posting{}, length: make([]float32, len(list)), n: len(list), byName: map[string][]int{},
	}
	counts := map[string]float32{}
	total := 0.0
	for i, c := range list {
		clear(counts)
		add := func(weight float32, texts ...string) {
			for _, text := range texts {
				for _, w := range Words(text) {
					counts[w] += weight
				}
			}
		}
		add(nameWeight, c.Name, c.DisplayName)
		add(textWeight, c.Description, c.Category)
		add(tagWeight, c.Tags...)
		add(tagWeight, c.Aliases...)
		if c.Triggers != nil {
			add(triggerWeight, c.Triggers.Keywords...)
		}
		for _, p := range c.Parameters {
			add(paramWeight, p.Name)
		}
		var sum float32
		for w, weight := range counts {
			x.postings[w] = append(x.postings[w], posting{int32(i), weight})
			sum += weight
		}
		x.length[i] = sum
		total += float64(sum)
		for _, name := range append([]string{c.Name, string(c.ID)}, c.Aliases...) {
			key := strings.ToLower(name)
			x.byName[key] = append(x.byName[key], i)
		}
	}
	if x.n > 0 {
		x.average = max(1, total/float64(x.n))
	}
	return x
}

// A Hit is a capability found by a search.
type Hit struct {
	Ordinal int
	Score   float64  // 0–1: how much of the message's meaning it accounts for
	Words   []string // the words of the message that it has, in their order
	Exact   bool     // the message names it
}

// Search finds at most limit capabilities, best first; equal ones in their
// order. keep, when not nil, says which ordinals may be found.
func (x *Index) Search(text string, limit int, keep func(ordinal int) bool) []Hit {
	words := distinct(Words(text))
	var possible float64 // the score of a capability that had every word
	for _, w := range words {
		if len(x.postings[w]) == 0 {
			possible += unknownPart * x.rarity(w) // most likely a detail, not the task
			continue
		}
		possible += x.rarity(w)
	}
	hits := map[int32]*Hit{}
	at := func(i int32) *Hit {
		h := hits[i]
		if h == nil {
			h = &Hit{Ordinal: int(i)}
			hits[i] = h
		}
		return h
	}
	for _, w := range words {
		rarity := x.rarity(w)
		for _, p := range x.postings[w] {
			if keep != nil && !keep(int(p.ordinal)) {
				continue
			}
			h := at(p.ordinal)
			h.Score += rarity * x.share(p) / possible
			h.Words = append(h.Words, w)
		}
	}
	for _, i := range x.named(text) {
		if keep == nil || keep(i) {
			h := at(int32(i))
			h.Exact, h.Score = true, 1
		}
	}
	return best(hits, limit)
}

// share says how strongly an entry has a word, 0–1.
func (x *Index) share(p posting) float64 {
	norm := 1 - lengthPart + lengthPart*float64(x.length[p.ordinal])/x.average
	return float64(p.weight) * (1 + saturation*0.25) / (float64(p.weight) + saturation*norm)
}

func (x *Index) rarity(word string) float64 {
	df := float64(len(x.postings[word]))
	return math.Log(1 + (float64(x.n)-df+0.5)/(df+0.5))
}

// named finds what the message calls by its full name or id.
func (x *Index) named(text string) []int {
	text = strings.ToLower(text)
	var out []int
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == ',' || r == '"' || r == '`' || r == '\n' }) {
		word = strings.TrimRight(word, ".?!;:")
		// A plain word is weak evidence of a name; identifiers are not plain.
		if strings.ContainsAny(word, "_-:/.") {
			out = append(out, x.byName[word]...)
		}
	}
	return append(out, x.byName[strings.TrimSpace(text)]...)
}

func best(hits map[int32]*Hit, limit int) []Hit {
	out := make([]Hit, 0, len(hits))
	for _, h := range hits {
		h.Score = min(1, h.Score)
		out = append(out, *h)
	}
	slices.SortFunc(out, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	return out[:min(len(out), limit)]
}

func distinct(words []string) []string {
	seen := map[string]bool{}
	out := words[:0:0]
	for _, w := range words {
		if !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	return out
}
