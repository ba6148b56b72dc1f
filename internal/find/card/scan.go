package card

import (
	"math/bits"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"ken/internal/language"
)

// Weights of a message by who wrote it.
const (
	userWeight      = 1.0
	assistantWeight = 0.3
)

// turnDecay is what a message counts less for every turn since.
const turnDecay = 0.5

type expression struct {
	find    *regexp.Regexp
	concept int32
}

// A segment is one message within the text of a scan.
type segment struct {
	start, end int
	weight     float64 // as evidence; 0 for what a tool said
	newest     bool    // of the current turn
}

// A scan is what the messages say, found in one pass for all cards. It belongs
// to one call and goes back to its pool.
type scan struct {
	set      *Set
	text     []byte // the messages, folded, with a space between
	segments []segment
	counted  int // where the messages that the seed's formula counts begin

	// By pattern, for the seed's formula.
	count []int32
	past  []int32 // where the next occurrence may begin
	found []int32 // patterns that occur

	// By concept.
	doubt []float64 // the probability that all of its occurrences mean nothing
	seen  []int32   // 1 + the last segment it was counted in
	fresh []bool    // the user said it just now
	hits  []int32   // concepts that occur

	// By card.
	listed []bool
	cards  []int32
	why    []byte // the verdicts' reasons

	walk []int32
}

type scratchPool struct{ pool sync.Pool }

func newScratchPool(s *Set) *scratchPool {
	p := &scratchPool{}
	p.pool.New = func() any {
		return &scan{
			set:   s,
			count: make([]int32, len(s.patterns)), past: make([]int32, len(s.patterns)),
			doubt: make([]float64, len(s.concepts)), seen: make([]int32, len(s.concepts)), fresh: make([]bool, len(s.concepts)),
			listed: make([]bool, len(s.cards)),
		}
	}
	return p
}

func (p *scratchPool) get() *scan { return p.pool.Get().(*scan) }

// put clears what was touched; a text that was unusually long is let go.
func (p *scratchPool) put(sc *scan) {
	for _, id := range sc.found {
		sc.count[id], sc.past[id] = 0, 0
	}
	for _, id := range sc.hits {
		sc.doubt[id], sc.seen[id], sc.fresh[id] = 0, 0, false
	}
	for _, n := range sc.cards {
		sc.listed[n] = false
	}
	sc.found, sc.hits, sc.cards = sc.found[:0], sc.hits[:0], sc.cards[:0]
	sc.segments, sc.text, sc.why = sc.segments[:0], sc.text[:0], sc.why[:0]
	if cap(sc.text) > 4*MaxMessages*MaxMessage {
		sc.text = nil
	}
	p.pool.Put(sc)
}

// read looks through the messages. For the scorer "seed" only what its formula
// counts is wanted.
func (sc *scan) read(messages []Message, seed bool) {
	sc.take(messages, seed)
	sc.findPatterns(!seed)
	for i := range sc.segments {
		s := &sc.segments[i]
		if !seed && s.weight > 0 {
			sc.findWords(i)
		}
		if s.newest && (seed || s.weight > 0) {
			sc.findExpressions(i)
		}
	}
}

// take folds the messages that count into one text, the oldest first.
func (sc *scan) take(messages []Message, seed bool) {
	var picked [2 * MaxMessages]int
	n, talk := 0, 0
	firstCounted := max(0, len(messages)-MaxMessages)
	for i := len(messages) - 1; i >= 0 && (i >= firstCounted || !seed && talk < MaxMessages); i-- {
		talks := weightOf(messages[i].Role) > 0
		if talks {
			talk++
		}
		if talks || i >= firstCounted {
			picked[n] = i
			n++
		}
	}
	decay := [2 * MaxMessages]float64{}
	newest := [2 * MaxMessages]bool{}
	for k, factor, current := 0, 1.0, true; k < n; k++ {
		decay[k], newest[k] = factor, current
		if isUser(messages[picked[k]].Role) { // what came before belongs to the turn before
			factor, current = factor*turnDecay, false
		}
	}
	bound := MaxMessage
	if seed {
		bound = MaxSeedMessage
	}
	for k := n - 1; k >= 0; k-- {
		m := &messages[picked[k]]
		if len(sc.segments) > 0 {
			sc.text = append(sc.text, ' ')
		}
		start := len(sc.text)
		if picked[k] == firstCounted {
			sc.counted = start
		}
		sc.text = appendFolded(sc.text, m.Text, bound)
		sc.segments = append(sc.segments, segment{start, len(sc.text), weightOf(m.Role) * decay[k], newest[k]})
	}
}

func weightOf(role string) float64 {
	switch role {
	case "user", "":
		return userWeight
	case "assistant":
		return assistantWeight
	}
	return 0
}

func isUser(role string) bool { return role == "user" || role == "" }

// appendFolded adds s folded; of a text beyond the bound, its beginning and its
// end, since people ask before or after what they paste.
func appendFolded(dst []byte, s string, bound int) []byte {
	if len(s) > bound {
		dst = appendFolded(dst, wholeWords(s[:bound/2], false), bound)
		dst = append(dst, ' ')
		return appendFolded(dst, wholeWords(s[len(s)-bound/2:], true), bound)
	}
	at := len(dst)
	for i := range len(s) {
		b := s[i]
		if b >= utf8.RuneSelf {
			return append(dst[:at], fold(s)...)
		}
		if 'A' <= b && b <= 'Z' {
			b |= 0x20
		}
		dst = append(dst, b)
	}
	return dst
}

// wholeWords takes the piece of a word off where a text was cut, so that it is
// not mistaken for another word, and the piece of a character in any case.
func wholeWords(s string, front bool) string {
	const near = 64
	if front {
		for len(s) > 0 && !utf8.RuneStart(s[0]) {
			s = s[1:]
		}
		if i := strings.IndexAny(s[:min(len(s), near)], " \n\t"); i >= 0 {
			return s[i:]
		}
		return s
	}
	for len(s) > 0 {
		if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size != 1 {
			break
		}
		s = s[:len(s)-1]
	}
	from := max(0, len(s)-near)
	if i := strings.LastIndexAny(s[from:], " \n\t"); i >= 0 {
		return s[:from+i]
	}
	return s
}

// findPatterns runs the automaton over the text, once for all.
func (sc *scan) findPatterns(evidence bool) {
	a := &sc.set.finder
	if len(a.nodes) == 0 {
		return
	}
	at, seg := int32(0), 0
	for i, b := range sc.text {
		if at = a.next(at, b); at == 0 {
			continue
		}
		e := a.nodes[at].emits
		if e < 0 {
			continue
		}
		for seg+1 < len(sc.segments) && i >= sc.segments[seg+1].start {
			seg++
		}
		for ; e >= 0; e = a.nodes[a.nodes[e].fail].emits {
			sc.pattern(a.nodes[e].out, i+1, seg, evidence)
		}
	}
}

// pattern notes that one ends at end, in segment seg.
func (sc *scan) pattern(id int32, end, seg int, evidence bool) {
	p := &sc.set.patterns[id]
	start := end - int(p.length)
	// The formula counts occurrences that do not overlap, also across the
	// space between two messages.
	if start >= sc.counted && start >= int(sc.past[id]) {
		if sc.count[id] == 0 {
			sc.found = append(sc.found, id)
		}
		sc.count[id]++
		sc.past[id] = int32(end)
	}
	if s := &sc.segments[seg]; evidence && s.weight > 0 && start >= s.start {
		for _, c := range p.concepts {
			if sc.stands(&sc.set.concepts[c], s, start, end) {
				sc.hit(c, seg)
			}
		}
	}
}

// stands reports whether an occurrence has the edges that its mode wants.
func (sc *scan) stands(c *concept, s *segment, start, end int) bool {
	if c.mode == modeSubstring {
		return true
	}
	if start > s.start {
		if before, _ := utf8.DecodeLastRune(sc.text[s.start:start]); isWord(before) {
			return false
		}
	}
	if c.mode == modePrefix || c.open || end == s.end {
		return true
	}
	after, _ := runeAt(sc.text, end)
	return !isWord(after)
}

// findWords looks up the words of a segment, single and in sequence: in
// English, in every language that the text may be in, and, for cards in another
// language, in that language, because a single word does not show its language.
func (sc *scan) findWords(seg int) {
	d := &sc.set.words
	if len(d.phrases) == 0 {
		return
	}
	possible, short := sc.languages(seg)
	stops := 1<<language.English | possible
	sc.lookUp(seg, d.get(language.English, true), stops)
	for mask := possible; mask != 0; mask &= mask - 1 {
		sc.lookUp(seg, d.get(bits.TrailingZeros32(mask), true), stops)
	}
	for mask := d.spoken &^ possible; mask != 0; mask &= mask - 1 {
		sc.lookUp(seg, d.get(bits.TrailingZeros32(mask), false), stops)
	}
	if short {
		sc.compare(seg)
	}
}

// compare looks for one-word keywords in a short text of unknown language. A
// word and a keyword with the same beginning match if they have the same stem
// in some language.
func (sc *scan) compare(seg int) {
	s, d := &sc.segments[seg], &sc.set.words
	for b := range wordsOf(sc.text[s.start:s.end]) {
		if len(b) < tellingLength || len(b) > maxWord {
			continue
		}
		word := string(b)
		for _, p := range d.beginning(word) {
			if sameStem(word, p.words[0]) {
				sc.hit(p.concept, seg)
			}
		}
	}
}

func sameStem(a, b string) bool {
	for lang := range language.Count {
		x, y := language.Stem(a, lang), language.Stem(b, lang)
		if x == y && len(x) >= tellingLength || x == b || y == a { // some stemmers remove endings that are part of the word
			return true
		}
	}
	return false
}

const (
	// mostShort is the maximum number of words of a text without stop words
	// that is compared in all languages.
	mostShort = 8

	// tellingLength is the minimum length in bytes of a word of such a text and
	// of its stem. sameBytes is how many leading bytes it must share with a
	// keyword. Both make a match by chance unlikely.
	tellingLength = 6
	sameBytes     = 4
)

// languages guesses the languages of a segment in addition to English. short
// reports that the text has few words and no stop word, so it may be in any
// language.
func (sc *scan) languages(seg int) (possible uint32, short bool) {
	var g language.Guess
	s, words, stops := &sc.segments[seg], 0, 0
	for word := range wordsOf(sc.text[s.start:s.end]) {
		if words++; words > mostGuessed {
			break
		}
		if language.StopIn(string(word)) != 0 {
			stops++
			g.Add(string(word))
		}
	}
	return g.Possible(), stops == 0 && words <= mostShort
}

const mostGuessed = 200 // number of words from which the language of a message is guessed

// lookUp looks up the words of a segment in a vocabulary. A stop word of one of
// the languages in stops does not match by itself.
func (sc *scan) lookUp(seg int, v *vocabulary, stops uint32) {
	text := sc.text[:sc.segments[seg].end]
	sc.walk = sc.walk[:0]
	for at := sc.segments[seg].start; at < len(text); {
		start, end := nextWord(text, at)
		at = end
		if start == end {
			break
		}
		if end-start > maxWord || !v.mayKnow(text[start:end]) {
			sc.walk = sc.walk[:0]
			continue
		}
		word := string(text[start:end])
		stem, ok := v.stems[language.Stem(word, v.lang)]
		if !ok {
			sc.walk = sc.walk[:0]
			continue
		}
		stop := language.StopIn(word)&stops != 0
		// Every phrase under way goes on or ends; a new one starts here.
		sc.walk = append(sc.walk, 0)
		kept := sc.walk[:0]
		for _, from := range sc.walk {
			n, ok := v.after[step{from, stem}]
			if !ok {
				continue
			}
			if from != 0 || !stop {
				for _, c := range v.ends[n] {
					sc.hit(c, seg)
				}
			}
			kept = append(kept, n)
		}
		sc.walk = kept
	}
}

func (sc *scan) findExpressions(seg int) {
	if len(sc.set.regexes) == 0 {
		return
	}
	s := &sc.segments[seg]
	text := sc.text[max(s.start, s.end-MaxRegexText):s.end]
	for _, x := range sc.set.regexes {
		if sc.seen[x.concept] != int32(seg)+1 && x.find.Match(text) {
			sc.hit(x.concept, seg)
		}
	}
}

// hit counts a concept, once a message.
func (sc *scan) hit(id int32, seg int) {
	if sc.seen[id] == int32(seg)+1 {
		return
	}
	if sc.seen[id] == 0 {
		sc.hits = append(sc.hits, id)
		sc.doubt[id] = 1
	}
	sc.seen[id] = int32(seg) + 1
	s := &sc.segments[seg]
	// The conversion keeps every machine from fusing the two operations, and
	// so the score the same everywhere.
	sc.doubt[id] *= 1 - float64(sc.set.concepts[id].gain*s.weight)
	sc.fresh[id] = sc.fresh[id] || s.weight == userWeight
}
