package card

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

const (
	// stay is the part of its threshold at which a card shown before is shown
	// again.
	stay = 0.5

	// tieBreak is what the share of matched keywords may add: enough to order
	// equals, too little to matter otherwise.
	tieBreak = 0.001
)

// Select judges every card. Those that passed come first, by priority, score
// (both descending) and id; then, in the same order, those that something
// called for and that were kept out, with the reason. What nothing called for
// is not listed: see [Set.Judge]. With no messages the score is priority/100,
// and only what passes is listed.
//
// A card passes with a score of at least its threshold and above 0, so a
// threshold of 0 means any match at all.
func (s *Set) Select(x Context, cfg Config) []Asked {
	if s.Len() == 0 {
		return nil
	}
	j := s.judge(x, cfg)
	var out []Asked
	if cfg.Custom != nil || len(x.Messages) == 0 {
		for n := range s.cards {
			said := len(j.scan.why)
			a := j.ask(int32(n))
			if a.Passed || len(a.Matched) > 0 || cfg.Custom != nil && a.Score > 0 {
				out = append(out, a)
			} else {
				j.scan.why = j.scan.why[:said]
			}
		}
	} else if called := j.called(); len(called) > 0 {
		out = make([]Asked, 0, len(called))
		for _, n := range called {
			out = append(out, j.ask(n))
		}
	}
	j.finish(out)
	slices.SortFunc(out, before)
	return out
}

// Judge returns the verdict on one card, whatever called for it; false when the
// set has none with that ordinal. It costs as much as Select.
func (s *Set) Judge(ordinal int, x Context, cfg Config) (Asked, bool) {
	if s == nil {
		return Asked{}, false
	}
	n, ok := s.byOrd[ordinal]
	if !ok {
		return Asked{}, false
	}
	j := s.judge(x, cfg)
	out := [...]Asked{j.ask(n)}
	j.finish(out[:])
	return out[0], true
}

// before orders totally: no two cards of a snapshot have one id, and ordinals
// decide where they do.
func before(a, b Asked) int {
	switch {
	case a.Passed != b.Passed:
		if a.Passed {
			return -1
		}
		return 1
	case a.Priority != b.Priority:
		return cmp.Compare(b.Priority, a.Priority)
	case a.Score != b.Score:
		return cmp.Compare(b.Score, a.Score)
	case a.ID != b.ID:
		return cmp.Compare(a.ID, b.ID)
	}
	return cmp.Compare(a.Ordinal, b.Ordinal)
}

// A judge holds what one call needs.
type judge struct {
	set     *Set
	x       Context
	cfg     Config
	seed    bool
	scan    *scan
	tags    []string // folded
	matched []string // behind every Asked.Matched of the call
}

func (s *Set) judge(x Context, cfg Config) judge {
	j := judge{set: s, x: x, cfg: cfg, seed: cfg.Scorer == ScorerSeed && cfg.Custom == nil, scan: s.scratch.get()}
	if len(s.tags) > 0 && len(x.RouterTags) > 0 {
		j.tags = foldAll(x.RouterTags)
	}
	if len(x.Messages) > 0 {
		j.scan.read(x.Messages, j.seed)
	}
	return j
}

// finish sets the reasons of the verdicts, which were written one after the other
// in the order of the list, and returns the scan to its pool.
func (j *judge) finish(out []Asked) {
	all, at := string(j.scan.why), 0
	for i := range out {
		end := at + strings.IndexByte(all[at:], endOfWhy)
		out[i].Why = all[at:end]
		at = end + 1
	}
	j.set.scratch.put(j.scan)
}

// called lists the cards that a keyword or a router tag calls for.
func (j *judge) called() []int32 {
	sc := j.scan
	list := func(cards []int32) {
		for _, n := range cards {
			if !sc.listed[n] {
				sc.listed[n] = true
				sc.cards = append(sc.cards, n)
			}
		}
	}
	if j.seed {
		for _, id := range sc.found {
			list(j.set.patterns[id].cards)
		}
	}
	for _, id := range sc.hits {
		list(j.set.concepts[id].cards)
	}
	for _, tag := range j.tags {
		list(j.set.tags[tag])
	}
	return sc.cards
}

// ask judges one card: filters first, then the score. Its reason goes to the
// scan's; see finish.
func (j *judge) ask(n int32) Asked {
	c := &j.set.cards[n]
	a := Asked{Ordinal: c.ordinal, ID: c.from.ID, Priority: c.from.Priority}
	a.Matched = j.matches(c)
	a.SeedScore = j.seedScore(c)
	knob, threshold := "confidenceThreshold ", c.from.Triggers.ConfidenceThreshold
	if j.cfg.Threshold != nil {
		knob, threshold = "capabilities.confidenceThreshold ", *j.cfg.Threshold
	}
	a.Threshold = fraction(threshold, DefaultThreshold)
	if why := c.filter.blocked(&j.x.Scope, j.x.Now); why != "" {
		j.because(why)
		j.endWhy()
		return a
	}
	a.Score = j.score(c, &a)
	stays := !j.seed && j.cfg.Custom == nil && a.Score < a.Threshold && slices.Contains(j.x.Shown, a.ID)
	if stays {
		a.Threshold *= stay
	}
	a.Passed = a.Score > 0 && a.Score >= a.Threshold
	switch {
	case a.Passed && stays:
		j.because("; shown on the turn before, so half its threshold is enough")
	case !a.Passed && a.Score > 0:
		j.because("; ")
		j.decimal(a.Score)
		j.because(" is below " + knob)
		j.decimal(a.Threshold)
	}
	j.endWhy()
	return a
}

// score returns the score and writes what it rests on.
func (j *judge) score(c *compiled, a *Asked) float64 {
	if j.cfg.Custom != nil {
		j.because("custom scorer")
		return fraction(j.cfg.Custom(c.from, j.x), 0)
	}
	for _, tag := range j.tags {
		if slices.Contains(c.tags, tag) {
			j.because("router tag ")
			j.because(tag)
			return 1
		}
	}
	if len(j.x.Messages) == 0 {
		j.because("no message yet, so its priority counts")
		return a.SeedScore
	}
	if len(a.Matched) == 0 {
		j.because("nothing calls for it")
		return 0
	}
	for i, k := range a.Matched {
		if i == 0 {
			j.because("matched ")
		} else {
			j.because(", ")
		}
		j.because(k)
	}
	if j.seed {
		return a.SeedScore
	}
	return j.evidence(c)
}

// endOfWhy parts one reason from the next; because keeps it out of them.
const endOfWhy = 0

func (j *judge) because(s string) {
	for i := range len(s) {
		if s[i] != endOfWhy {
			j.scan.why = append(j.scan.why, s[i])
		}
	}
}

func (j *judge) endWhy() { j.scan.why = append(j.scan.why, endOfWhy) }

// decimal rounds down, so that a score below a threshold also looks so.
func (j *judge) decimal(x float64) {
	n := int(x * 1000)
	j.scan.why = append(j.scan.why, byte('0'+n/1000), '.', byte('0'+n/100%10), byte('0'+n/10%10), byte('0'+n%10))
}

// evidence is the probability that at least one of the matched keywords means
// what the card is about.
func (j *judge) evidence(c *compiled) float64 {
	doubt, hits, fresh := 1.0, 0, true
	for _, id := range c.concepts {
		if j.scan.seen[id] == 0 {
			continue
		}
		hits++
		doubt *= j.scan.doubt[id]
		fresh = fresh && j.scan.fresh[id]
	}
	score := 1 - doubt
	if hits == len(c.concepts) && fresh && !c.allFaint {
		// All that the card asks for was just said. A card of one everyday
		// word could not be called otherwise.
		score = max(score, strongGain)
	}
	share := float64(hits) / float64(len(c.concepts))
	return min(1, score+float64(tieBreak*share*(1-score)))
}

// matches lists the card's keywords that were found.
func (j *judge) matches(c *compiled) []string {
	from := len(j.matched)
	for i := range c.keywords {
		k := &c.keywords[i]
		if j.seed && k.pattern >= 0 && j.scan.count[k.pattern] > 0 || (!j.seed || k.pattern < 0) && j.scan.seen[k.concept] > 0 {
			j.matched = append(j.matched, k.text)
		}
	}
	if from == len(j.matched) {
		return nil
	}
	return slices.Clip(j.matched[from:])
}

// seedScore is the seed's formula: with messages, the share of the keywords
// that occur anywhere in them, and how often all of them do.
func (j *judge) seedScore(c *compiled) float64 {
	if len(j.x.Messages) == 0 {
		return fraction(float64(c.from.Priority)/100, 0)
	}
	found, count := 0, int32(0)
	for i := range c.keywords {
		k := &c.keywords[i]
		n := int32(0)
		switch {
		case k.pattern >= 0:
			n = j.scan.count[k.pattern]
		case j.scan.seen[k.concept] > 0:
			n = 1 // an expression; the seed has none
		}
		if n > 0 {
			found++
			count += n
		}
	}
	if found == 0 {
		return 0
	}
	ratio := float64(found) / float64(len(c.keywords))
	density := min(float64(count)/100, 1)
	return float64(ratio*0.7) + float64(density*0.3)
}

// fraction clamps x to 0–1; NaN becomes other.
func fraction(x, other float64) float64 {
	if math.IsNaN(x) {
		return other
	}
	return min(max(x, 0), 1)
}
