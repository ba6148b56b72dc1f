package ranking

import (
	"math"
	"slices"

	"ken/internal/know/index"
)

// What the closer look at a candidate is made of. Those marked "against the
// best" are divided by the highest among the candidates.
const (
	featureFirstPass     = iota // the first pass, against the best
	featureNameInMessage        // how much of the message its name has
	featureMessageInName        // how much of its name the message has
	featureNameScore            // BM25 of the field alone, against the best; so the next two
	featureTextScore
	featureParamScore
	featurePairs      // neighbouring words, against the best
	featureClause     // how much of one clause of the message it has
	featureNear       // how near its vector is
	featureNearClause // how near it is to a clause of the message
	featureNearName   // how near the words of its name are to words of the message
	featureNearRead   // how near its vector of an embedder is

	// The same again, where words say much of the message, or where they say
	// little: then meaning has to.
	strongFirstPass
	strongMessageInName
	strongNameScore
	strongPairs
	strongClause
	weakNear
	weakNearClause
	weakNearName
	weakNearRead
	features
)

// strong and weak are the features that count by how much words say.
var (
	strong = [...]struct{ to, from int }{
		{strongFirstPass, featureFirstPass}, {strongMessageInName, featureMessageInName}, {strongNameScore, featureNameScore}, {strongPairs, featurePairs}, {strongClause, featureClause},
	}
	weak = [...]struct{ to, from int }{{weakNear, featureNear}, {weakNearClause, featureNearClause}, {weakNearName, featureNearName}, {weakNearRead, featureNearRead}}
)

// fieldFeatures are the fields that are looked at one by one.
var fieldFeatures = [...]struct{ field, feature int }{{index.FieldName, featureNameScore}, {index.FieldText, featureTextScore}, {index.FieldParamText, featureParamScore}}

// againstBest are the features that are divided by the highest.
var againstBest = [...]int{featureFirstPass, featureNameScore, featureTextScore, featureParamScore, featurePairs}

// weights are what the training sets say about the features. There are three
// of them, since words must be trusted further where they are all there is, and
// vectors the less the less they know.
type weights struct {
	rank   [features]float32 // none is negative
	gate   [gates]float64
	chance [chances]float64
}

// muchSaid is the logarithm of a first pass's score that leaves nothing to ask.
const muchSaid = 4

// rank looks closely at each candidate and sorts them, best first.
func (s *searcher) rank(v *View) {
	a := &s.asked
	s.clause = grown(s.clause, a.clauses+1)
	s.clauseTotal = grown(s.clauseTotal, a.clauses+1)
	clear(s.clauseTotal)
	for i := range a.terms {
		if t := &a.terms[i]; t.current {
			s.clauseTotal[t.clause] += t.worth()
		}
	}
	s.place(v)
	defer s.displace()
	s.spell(v)
	s.weights = &wordsAlone
	if s.vectors.compared {
		s.weights = &withVectors
	}
	if s.vectors.read {
		s.weights = &withEmbedder
	}
	var most [features]float32
	said := float32(0)
	for i := range s.candidates {
		c := &s.candidates[i]
		s.look(v, c)
		said = max(said, c.first)
		for _, k := range againstBest {
			most[k] = max(most[k], c.features[k])
		}
	}
	s.evidence = float32(min(math.Log1p(float64(said))/muchSaid, 1))
	for i := range s.candidates {
		c := &s.candidates[i]
		for _, k := range againstBest {
			if most[k] > 0 {
				c.features[k] /= most[k]
			}
		}
		for _, x := range strong {
			c.features[x.to] = s.evidence * c.features[x.from]
		}
		for _, x := range weak {
			c.features[x.to] = (1 - s.evidence) * c.features[x.from]
		}
		c.score = 0
		for k, w := range s.weights.rank {
			c.score += w * c.features[k]
		}
	}
	s.order = s.order[:0]
	for i := range s.candidates {
		s.order = append(s.order, int32(i))
	}
	slices.SortFunc(s.order, func(i, j int32) int {
		a, b := &s.candidates[i], &s.candidates[j]
		if a.exact != b.exact {
			if a.exact {
				return -1
			}
			return 1
		}
		return v.compare(a.place, b.place)
	})
}

// place notes for every term of each part where it is in the message.
func (s *searcher) place(v *View) {
	for len(s.places) < len(v.parts) {
		s.places = append(s.places, nil)
	}
	for i := range v.parts {
		if n := v.parts[i].Postings.Count; len(s.places[i]) < n {
			s.places[i] = make([]uint8, n)
		}
		for j := range s.asked.terms {
			if id := s.asked.terms[j].ids[i]; id != none {
				s.places[i][id] = uint8(j + 1)
			}
		}
	}
}

// displace forgets what place noted.
func (s *searcher) displace() {
	for j := range s.asked.terms {
		for i, id := range s.asked.terms[j].ids {
			if id != none {
				s.places[i][id] = 0
			}
		}
	}
}

// look fills the features of one candidate.
func (s *searcher) look(v *View, c *candidate) {
	a, p := &s.asked, &v.parts[c.part]
	d := &p.Docs[c.slot]
	c.features = [features]float32{featureFirstPass: c.first, featureNear: c.near, featureNearClause: c.nearClause, featureNearRead: c.nearRead}
	c.covered, c.matched = 0, [2]uint64{}
	x := &c.features
	clear(s.clause)
	places := s.places[c.part]
	var has [2]uint64
	for at, id := range d.Terms {
		if j := places[id]; j > 0 {
			has[(j-1)>>6] |= 1 << ((j - 1) & 63)
			s.counts[j-1] = d.Counts[at]
		}
	}
	// Sums follow the order of the message, so that their rounding does not
	// depend on how terms came to be numbered.
	for j := range a.terms {
		if has[j>>6]&(1<<(j&63)) == 0 {
			continue
		}
		t := &a.terms[j]
		packed, worth := s.counts[j], t.rarity*t.weight
		if t.current {
			c.covered += t.rarity
			c.matched[j>>6] |= 1 << (j & 63)
			s.clause[t.clause] += t.rarity
		}
		if index.Count(packed, index.FieldName) > 0 {
			x[featureNameInMessage] += worth
		}
		for _, f := range fieldFeatures {
			if n := index.Count(packed, f.field); n > 0 {
				n *= d.Norm[f.field]
				x[f.feature] += worth * n / (n + index.Saturation)
			}
		}
	}
	x[featurePairs] = s.pairs(c, d)
	x[featureMessageInName], x[featureNearName] = s.nameShare(v, p, int(c.part), d)
	for k, sum := range s.clause {
		if s.clauseTotal[k] > 0 {
			x[featureClause] = max(x[featureClause], sum/(s.clauseTotal[k]+2))
		}
	}
	if a.total > 0 {
		c.covered /= a.total
		x[featureNameInMessage] /= a.total
	}
}

// pairs adds up the neighbouring words of the message that stand side by side
// in the capability too.
func (s *searcher) pairs(c *candidate, d *index.Doc) float32 {
	if len(d.Pairs) == 0 {
		return 0
	}
	var sum float32
	a := &s.asked
	for i := range len(a.run) - 1 {
		x, y := a.run[i], a.run[i+1]
		if x < 0 || y < 0 || !c.has(int(x)) || !c.has(int(y)) {
			continue
		}
		first, second := &a.terms[x], &a.terms[y]
		if _, ok := slices.BinarySearch(d.Pairs, index.PairOf(first.ids[c.part], second.ids[c.part])); ok {
			sum += first.rarity + second.rarity
		}
	}
	return sum
}

// nameShare is how much of a name the message has, by the same words and by
// words like them.
func (s *searcher) nameShare(v *View, p *part, number int, d *index.Doc) (same, alike float32) {
	var all float32
	places := s.places[number]
	for i, id := range d.InName {
		r := v.rarity(p.holders(id))
		all += r
		if at := places[id]; at > 0 && s.asked.terms[at-1].current {
			same += r
			alike += r
		} else if s.vectors.compared {
			alike += r * s.likest(d.NameCode(i))
		}
	}
	if all == 0 {
		return 0, 0
	}
	return same / all, alike / all
}
