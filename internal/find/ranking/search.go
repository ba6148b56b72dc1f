package ranking

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"ken/internal/know/index"
)

// An Answer is what a search found.
type Answer struct {
	// Fit is the probability, 0–1, that one of the first five hits is what
	// was asked for.
	Fit  float64
	Hits []Hit // best first

	// Unread says that no model could read the message, as it is in another
	// language than theirs: words alone were compared. It is false where the
	// segments have no model.
	Unread bool

	// Embedding is the time that the vectors of the message, of its clauses
	// and of its words took to make.
	Embedding time.Duration
}

// A Hit is a capability found by a search.
type Hit struct {
	Part, Slot int
	Score      float64  // 0–1: the probability that it is what was asked for
	Exact      bool     // the message names it
	Near       float64  // how many standard deviations nearer its vector is than usual; 0 without vectors
	Words      []string // of the message, that the capability has, in their order
}

// shortlist is how many of the first pass are looked at closely.
const shortlist = 32

// A place is where a capability is, with what orders it.
type place struct {
	score      float32
	part, slot int32
}

// A candidate is a capability of the shortlist.
type candidate struct {
	place              // with the first pass's score, and then the ranking's
	first      float32 // the first pass's score
	exact      bool    // the message names it
	compared   bool    // it has a vector
	near       float32 // how much more similar that is than usual
	cos        float32 // how similar it is
	nearClause float32 // the same of the clause of the message that it is nearest to
	nearRead   float32 // near and cos by the embedder; by the own model where that has not read it
	cosRead    float32
	covered    float32 // how much of the message it has
	matched    [2]uint64
	features   [features]float32
}

// has reports whether the capability has term j of the message.
func (c *candidate) has(j int) bool { return c.matched[j>>6]&(1<<(j&63)) != 0 }

// A searcher holds what a search needs, to be used again.
type searcher struct {
	asked      asked
	scores     []float32
	first      []place     // the best of the first pass
	candidates []candidate // the shortlist
	order      []int32     // of the candidates, best first
	places     [][]uint8   // by part and term: where the message has it, from 1
	counts     [mostTerms]uint32
	called     []place // by the message
	weights    *weights
	evidence   float32 // how much words say of the message, 0–1

	// By clause of the message.
	clause, clauseTotal []float32

	vectors vectorSearch
}

// A vectorSearch is the part of a search that compares vectors.
type vectorSearch struct {
	own       channel       // of the model of the index
	embedder  channel       // of another embedder
	compared  bool          // vectors had a say
	read      bool          // those of an embedder had one, too
	unread    bool          // the message is in a language that no model at hand reads
	outside   bool          // an embedder that reads more than English has a vector of the message
	embedding time.Duration // that the message's vector took
	vector    []float32
	codes     []uint64 // of these
	tokens    []uint32 // of a word
	phrases   []string // the clauses of the message
	spelt     []uint64 // codes of the message's words
	closest   []place
}

var searchers = sync.Pool{New: func() any { return new(searcher) }}

// A Keep says whether the capability in a slot may be found. It is told the
// score of the first pass, which means nothing but more or less, 0 of what the
// message names, and -1 of what is near by its vector. It may be asked about one
// slot several times.
type Keep func(part, slot int, score float32) bool

// Search finds at most limit capabilities, best first; equal ones by id. keep
// may be nil: then all that is visible may be found.
func (v *View) Search(q Query, limit int, keep Keep) Answer {
	s := searchers.Get().(*searcher)
	defer searchers.Put(s)
	s.asked.read(v, q)
	s.collect(v, q, keep)
	s.rank(v)
	return s.answer(v, limit)
}

// answer returns the best candidates.
func (s *searcher) answer(v *View, limit int) Answer {
	t := s.confidence(v)
	a := Answer{Fit: t.fit, Unread: s.vectors.unread, Embedding: s.vectors.embedding, Hits: make([]Hit, 0, max(0, min(limit, len(s.candidates))))}
	words := make([]string, 0, 8*cap(a.Hits))
	best := float32(0)
	for i := range cap(a.Hits) {
		c := s.at(i)
		if i == 0 {
			best = c.score
		}
		h := Hit{Part: int(c.part), Slot: int(c.slot), Exact: c.exact, Near: float64(c.near), Score: 1}
		if !c.exact {
			h.Score = t.of(c.score, best)
		}
		start := len(words)
		for j := range s.asked.terms {
			if c.has(j) {
				words = append(words, s.asked.terms[j].word)
			}
		}
		h.Words = words[start:len(words):len(words)]
		a.Hits = append(a.Hits, h)
	}
	return a
}

// at returns the candidate of a rank.
func (s *searcher) at(rank int) *candidate { return &s.candidates[s.order[rank]] }

// collect fills the shortlist.
func (s *searcher) collect(v *View, q Query, keep Keep) {
	s.first = s.first[:0]
	for i := range v.parts {
		p := &v.parts[i]
		s.scores = grown(s.scores, len(p.Docs))
		clear(s.scores)
		for j := range s.asked.terms {
			t := &s.asked.terms[j]
			if t.ids[i] == none {
				continue
			}
			worth := t.weight * t.rarity
			for _, post := range p.Postings.Of(t.ids[i]) {
				s.scores[post.Slot] += worth * post.Impact
			}
		}
		s.best(v, int32(i), keep)
	}
	slices.SortFunc(s.first, v.compare)
	s.candidates = s.candidates[:0]
	for _, p := range s.first {
		s.candidates = append(s.candidates, candidate{place: p, first: p.score})
	}
	s.similar(v, q, keep)
	s.named(v, q.Text, keep)
}

// best adds the highest scores of a part to first, which is a heap with the last of
// them at its top.
func (s *searcher) best(v *View, number int32, keep Keep) {
	p, least := &v.parts[number], float32(0)
	if len(s.first) == shortlist {
		least = s.first[0].score
	}
	for slot, score := range s.scores {
		if score < least || score == 0 || !p.visible.Has(slot) || keep != nil && !keep(int(number), slot, score) {
			continue
		}
		one := place{score, number, int32(slot)}
		if len(s.first) < shortlist {
			s.first = append(s.first, one)
			s.rise(v)
		} else if v.compare(one, s.first[0]) < 0 {
			s.first[0] = one
			s.sink(v)
		}
		if len(s.first) == shortlist {
			least = s.first[0].score
		}
	}
}

// rise puts the last place of the heap where it belongs.
func (s *searcher) rise(v *View) {
	h := s.first
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if v.compare(h[i], h[up]) < 0 {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// sink puts the top of the heap where it belongs.
func (s *searcher) sink(v *View) {
	h := s.first
	for i := 0; ; {
		down := 2*i + 1
		if down >= len(h) {
			return
		}
		if other := down + 1; other < len(h) && v.compare(h[down], h[other]) < 0 {
			down = other
		}
		if v.compare(h[down], h[i]) < 0 {
			return
		}
		h[i], h[down] = h[down], h[i]
		i = down
	}
}

// compare orders by score. Equal ones go by id, so that slots, which tell of
// what came first, have no say.
func (v *View) compare(a, b place) int {
	switch {
	case a.score > b.score:
		return -1
	case a.score < b.score:
		return 1
	}
	x, y := v.parts[a.part].Docs[a.slot].Capability, v.parts[b.part].Docs[b.slot].Capability
	if c := strings.Compare(string(x.ID), string(y.ID)); c != 0 {
		return c
	}
	return cmp.Or(int(a.part)-int(b.part), int(a.slot)-int(b.slot))
}

// named adds what the message calls by its name, id or alias.
func (s *searcher) named(v *View, text string, keep Keep) {
	exact := 0
	try := func(name string) {
		s.called = v.appendCalled(s.called[:0], name, keep)
		if len(s.called) > mostCalled || exact >= mostCalled {
			// A name that so many share tells none of them apart: it only
			// confirms what words found.
			for i := range s.candidates {
				c := &s.candidates[i]
				c.exact = c.exact || index.IsCalled(v.parts[c.part].Docs[c.slot].Capability, name)
			}
			return
		}
		for _, p := range s.called {
			if c := s.include(p.part, p.slot); !c.exact {
				c.exact = true
				exact++
			}
		}
	}
	if trimmed := strings.TrimSpace(text); len(trimmed) <= 200 {
		try(trimmed)
	}
	head, tail := shorten(text, LongestText)
	for _, side := range [2]string{head, tail} {
		for word := range strings.FieldsFuncSeq(side, betweenNames) {
			word = strings.TrimRight(word, ".?!;:")
			// A plain word is weak evidence of a name; identifiers are not plain.
			if strings.ContainsAny(word, "_-:/.") {
				try(word)
			}
		}
	}
}

func betweenNames(r rune) bool {
	if r <= ' ' {
		return true
	}
	switch r {
	case ',', '"', '`', '\'', '(', ')', '[', ']', '{', '}', '<', '>':
		return true
	}
	return false
}

// mostCalled is how many capabilities a message can call by their names.
const mostCalled = 32

// appendCalled adds the visible capabilities of a name, and stops when they are
// too many.
func (v *View) appendCalled(out []place, name string, keep Keep) []place {
	key := index.NameKey(name)
	for i := range v.parts {
		p := &v.parts[i]
		known, ok := p.Names.Get(key)
		if !ok {
			continue
		}
		for slot := range known.Slots {
			if p.visible.Has(int(slot)) && index.IsCalled(p.Docs[slot].Capability, name) && (keep == nil || keep(i, int(slot), 0)) {
				if out = append(out, place{part: int32(i), slot: slot}); len(out) > mostCalled {
					return out
				}
			}
		}
	}
	return out
}
