package ranking

import (
	"math"
	"math/bits"

	"ken/internal/know/embed"
)

// What says whether anything fits at all.
const (
	fitBias        = iota
	fitCovered     // how much of the message the best hit has
	fitMostCovered // the most that one of the first five has
	fitMessageInName
	fitFirstPass // the first pass's score of the best hit
	fitCount     // how many capabilities there are to be wrong about
	fitTerms     // how many words the message has
	fitPoor      // the best hit has little of the message
	fitSaidShare // like covered, by how much words say in any catalog
	fitMostSaidShare
	fitKnownShare // how much of the message the catalog knows
	fitSaidAmount // how much the words say that the best hit has
	fitMostSaidAmount
	fitClauseSaidShare
	fitNameSaidShare
	fitKnownAmount
	fitRichness // how much capabilities here say of themselves
	fitPairs
	fitNear         // how near the best hit is
	fitNearest      // the nearest of the first five
	fitCos          // how similar its vector is, by itself
	fitNearName     // how near its name is to words of the message
	fitFirstPassRaw // the first pass's score of the best hit, straight
	fitAhead        // by how much the best hit is ahead of the second; so the next two
	fitAhead3
	fitAhead6
	fitMostNear // of all candidates; so the next two
	fitMostNearClause
	fitMostCos
	fitNearRead // by the embedder: how near the best hit is, and how similar; and the most of all candidates
	fitCosRead
	fitMostNearRead
	fitMostCosRead
	gates
)

// gate returns the features of the whole answer.
func (s *searcher) gate(v *View) [gates]float64 {
	x := [gates]float64{fitBias: 1}
	a := &s.asked
	if len(s.candidates) == 0 {
		return x
	}
	var all, known float64
	clear(s.clauseTotal)
	n := 0
	for i := range a.terms {
		t := &a.terms[i]
		if !t.current {
			continue
		}
		n++
		all += float64(t.says)
		s.clauseTotal[t.clause] += t.says
		if t.known {
			known += float64(t.says)
		}
	}
	best := s.at(0)
	x[fitCovered] = float64(best.covered)
	x[fitMessageInName] = float64(best.features[featureMessageInName])
	x[fitFirstPass] = math.Log1p(float64(best.first))
	x[fitCount] = math.Log(float64(min(max(v.n, 128), 4096)+1)) / 8
	x[fitTerms] = math.Log1p(float64(n)) / 3
	x[fitPoor] = max(0, 0.35-x[fitCovered])
	x[fitRichness] = math.Log1p(float64(v.terms)/float64(v.n)) / 4
	x[fitPairs] = float64(best.features[featurePairs])
	chance := math.Inf(1)
	if best.compared {
		// The nearest of many is near by chance, the nearer the more there are.
		chance = v.byChance()
		x[fitNear] = max(0, float64(best.near)-chance)
		x[fitCos] = float64(best.cos)
		x[fitNearName] = float64(best.features[featureNearName])
	}
	if s.vectors.read {
		x[fitNearRead] = max(0, float64(best.nearRead)-v.byChance())
		x[fitCosRead] = float64(best.cosRead)
		for i := range s.candidates {
			c := &s.candidates[i]
			x[fitMostNearRead] = max(x[fitMostNearRead], float64(c.nearRead)/4)
			x[fitMostCosRead] = max(x[fitMostCosRead], float64(c.cosRead))
		}
	}
	x[fitFirstPassRaw] = float64(best.first) / 20
	for _, a := range [...]struct{ feature, rank int }{{fitAhead, 1}, {fitAhead3, 2}, {fitAhead6, 5}} {
		x[a.feature] = float64(best.score - s.at(min(a.rank, len(s.candidates)-1)).score)
	}
	if s.vectors.compared {
		for i := range s.candidates {
			c := &s.candidates[i]
			x[fitMostNear] = max(x[fitMostNear], float64(c.near)/4)
			x[fitMostNearClause] = max(x[fitMostNearClause], float64(c.nearClause)/4)
			x[fitMostCos] = max(x[fitMostCos], float64(c.cos))
		}
	}
	if all > 0 {
		x[fitKnownShare], x[fitKnownAmount] = known/all, math.Log1p(known)/3
	}
	for i := range min(5, len(s.candidates)) {
		c := s.at(i)
		said, named := s.said(v, c)
		x[fitNearest] = max(x[fitNearest], float64(c.near)-chance)
		x[fitMostCovered] = max(x[fitMostCovered], float64(c.covered))
		x[fitMostSaidAmount] = max(x[fitMostSaidAmount], math.Log1p(said)/3)
		if all > 0 {
			x[fitMostSaidShare] = max(x[fitMostSaidShare], said/all)
		}
		if i == 0 {
			x[fitSaidAmount] = math.Log1p(said) / 3
			if all > 0 {
				x[fitSaidShare], x[fitNameSaidShare] = said/all, named/all
			}
			for k, total := range s.clauseTotal {
				x[fitClauseSaidShare] = max(x[fitClauseSaidShare], float64(s.clause[k]/(total+2)))
			}
		}
	}
	return x
}

// said adds up what the words say that a candidate has, and those in its name;
// clause takes it by clause.
func (s *searcher) said(v *View, c *candidate) (said, named float64) {
	d := &v.parts[c.part].Docs[c.slot]
	clear(s.clause)
	for j := range s.asked.terms {
		if !c.has(j) {
			continue
		}
		t := &s.asked.terms[j]
		said += float64(t.says)
		s.clause[t.clause] += t.says
		if d.IsInName(t.ids[c.part]) {
			named += float64(t.says)
		}
	}
	return said, named
}

// confidence says how far an answer is to be believed.
type confidence struct {
	fit    float64 // the probability that one of the first five is what was asked for
	logit  float64 // by the features of the answer alone
	named  float64 // how much of the best hit's name the message has
	shares float64 // what the candidates' shares add up to

	evidence float64
	weights  *[chances]float64
	small    float64 // how much smaller the catalog is than usual ones; 0: its size has no say in the chance of a hit
}

func (s *searcher) confidence(v *View) confidence {
	if len(s.candidates) == 0 {
		return confidence{}
	}
	x := s.gate(v)
	t := confidence{weights: &s.weights.chance, evidence: float64(s.evidence), named: x[fitMessageInName]}
	for k, w := range s.weights.gate {
		t.logit += w * x[k]
	}
	if s.chancy(v) {
		t.logit -= chancyPrice
	} else {
		t.logit -= s.thin(v)
	}
	fit := t.logit
	if s.elsewhereSays() {
		t.small = smallness(v)
		fit = againstElsewhere(t.logit, x[fitMostCosRead], s.vectors.embedder.elsewhere(), countOf(v))
	}
	switch unread := s.unreadable(v); {
	case unread > 1:
		fit = min(fit, unreadableMost) - chancyPrice
	case unread == 1:
		fit = min(fit, unreadableMost)
	}
	t.fit = logistic(fit)
	if s.at(0).exact {
		t.fit = 1
	}
	for i := range s.candidates { // by rank: slots have no say in how it is rounded
		t.shares += math.Exp(float64(s.at(i).score - s.at(0).score))
	}
	return t
}

const (
	everyday    = 3.5 // a word that says less is one that people use for anything
	chancyPrice = 2   // in log-odds
)

// byChance is how near the nearest of a view is likely to be to a message that
// has nothing to do with any of it, in standard deviations.
func (v *View) byChance() float64 { return math.Sqrt(2*math.Log(float64(v.n+1))) + 0.5 }

// chancy reports an answer that may well be one by chance: it has no word of the
// message, or one of several that is not in its name, and is no nearer than
// chance has it; or that word is an everyday one, like "two" of "book a table
// for two". The training sets have too few of these to learn from.
func (s *searcher) chancy(v *View) bool {
	best, words := s.at(0), 0
	far := best.compared && float64(best.near) < v.byChance()-0.5
	if best.matched == [2]uint64{} {
		return far
	}
	for i := range s.asked.terms {
		if s.asked.terms[i].current {
			words++
		}
	}
	if words < 3 || bits.OnesCount64(best.matched[0])+bits.OnesCount64(best.matched[1]) != 1 || float64(best.near) > v.byChance() {
		return false
	}
	said, named := s.said(v, best)
	return named == 0 && (said < everyday || far)
}

// What it costs, in log-odds, that a message is too short to mean much.
const (
	oneWordPrice = 1
	noWordPrice  = 3
)

// thin returns the price of an answer that rests on the vector of one word, or of
// none but those that say nothing, and is hardly nearer than chance has it: that
// of "hello", or of "what's up", is near something in any catalog. The training
// sets have hardly any of these either.
func (s *searcher) thin(v *View) float64 {
	best := s.at(0)
	if !best.compared || best.matched != [2]uint64{} || float64(best.near) > v.byChance()+0.5 {
		return 0
	}
	words := s.asked.values
	for i := range s.asked.terms {
		if s.asked.terms[i].current {
			words++
		}
	}
	switch words {
	case 0:
		return noWordPrice
	case 1:
		return oneWordPrice
	}
	return 0
}

// unreadableMost is the highest log-odds of an answer to a message of which no word
// is known. It is below the usual bound of low confidence. A single word may be
// misspelt, so it keeps its brief.
const unreadableMost = 0

// unreadable returns how many words a message has if no word of it is known: no
// capability has one, and the vocabulary of the model has none as a whole, so
// that the message's vector is a sum of letters. It returns 0 otherwise, and
// where another embedder reads the message, which may know other words.
func (s *searcher) unreadable(v *View) (words int) {
	if v.model == nil || s.vectors.outside || !s.vectors.compared {
		return 0
	}
	for i := range s.asked.terms {
		t := &s.asked.terms[i]
		if !t.current {
			continue
		}
		if t.known {
			return 0
		}
		s.vectors.tokens = v.model.Tokens(s.vectors.tokens[:0], t.word)
		if len(s.vectors.tokens) == 1 && s.vectors.tokens[0] != embed.Unknown {
			return 0
		}
		words++
	}
	return words
}

// What the probability of one hit is made of.
const (
	hitBias = iota
	hitFit
	hitShare // of all candidates' scores; the only one that differs from hit to hit
	hitNamed
	hitNamedShare
	hitEvidence
	chances
)

func (t *confidence) chance(score, best float32) [chances]float64 {
	share := math.Log(max(math.Exp(float64(score-best))/t.shares, 1e-9))
	return [chances]float64{hitBias: 1, hitFit: t.logit, hitShare: share, hitNamed: t.named, hitNamedShare: t.named * share, hitEvidence: t.evidence}
}

// of returns the probability that one hit is what was asked for. It never rises
// along the ranking.
func (t *confidence) of(score, best float32) float64 {
	z := t.chanceOf(score, best)
	if t.small > 0 {
		// The size of the catalog counts for the best hit; the others stay below it.
		first := t.chanceOf(best, best)
		first += t.small * (sizedWeights[sizedSmall] + sizedWeights[sizedBoth]*first)
		if z = min(z, first); score == best {
			z = first
		}
	}
	return min(logistic(z), t.fit) // one of five is no less likely than this one
}

// chanceOf is of in log-odds, without what the whole answer and the size of the
// catalog say.
func (t *confidence) chanceOf(score, best float32) float64 {
	z := 0.0
	for k, x := range t.chance(score, best) {
		z += t.weights[k] * x
	}
	return z
}

func logistic(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
