package card

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/language"
)

// A pattern is a string that the automaton looks for.
type pattern struct {
	length   int32
	cards    []int32 // that have it as a keyword
	concepts []int32 // that are looked for by it; those of words are not
}

// Compile makes the set of those capabilities that have triggers. The list is
// in ordinal order; nil entries are passed over. Compile keeps pointers to the
// capabilities, which must not change afterwards.
func Compile(list []*capability.Capability) *Set {
	b := builder{
		set:      &Set{byOrd: map[int]int32{}, tags: map[string][]int32{}, words: dictionaries{made: map[dictionary]*vocabulary{}}},
		common:   grades(),
		concepts: map[string]int32{},
		patterns: map[string]int32{},
		holders:  make([][]int32, 1),
	}
	b.set.concepts = make([]concept, 1) // concept 0 means none
	for ordinal, c := range list {
		if c != nil && c.Triggers != nil {
			b.add(ordinal, c)
		}
	}
	b.finish()
	return b.set
}

type builder struct {
	set      *Set
	common   map[string]grade
	concepts map[string]int32
	patterns map[string]int32
	texts    []string  // of the patterns
	holders  [][]int32 // by concept, its cards
}

func (b *builder) add(ordinal int, c *capability.Capability) {
	s := b.set
	n := int32(len(s.cards))
	k := compiled{ordinal: ordinal, from: c, allFaint: true}
	keywords := c.Triggers.Keywords
	if len(keywords) > MaxKeywords {
		b.report(c, fmt.Sprintf("has %d keywords; the first %d count", len(keywords), MaxKeywords), "keep the telling ones")
		keywords = keywords[:MaxKeywords]
	}
	lang := languageOf(c)
	if lang != language.English {
		s.words.spoken |= 1 << lang
	}
	for _, text := range keywords {
		m, wrong := parseKeyword(text, b.common, lang)
		if wrong == nil && m.mode == modeRegex && len(s.regexes) == MaxRegexes && b.concepts[m.key()] == 0 {
			wrong = &fault{fmt.Sprintf("the catalog has %d regular expressions already", MaxRegexes), "use a word, a prefix: or a substring:"}
		}
		if wrong != nil {
			b.report(c, fmt.Sprintf("keyword %.60q is left out: %s", text, wrong.what), wrong.fix)
			continue
		}
		if m.stop { // the seed's formula uses stop words too
			b.report(c, fmt.Sprintf("keyword %.60q is ignored: it is a stop word, which is in nearly every message", text), "name the words that call for the card")
			k.keywords = append(k.keywords, keyword{text: text, pattern: b.pattern(&m, 0, n)})
			continue
		}
		id := b.concept(&m)
		s.words.add(&m, id, lang)
		if !slices.Contains(k.concepts, id) {
			k.concepts = append(k.concepts, id)
			b.holders[id] = append(b.holders[id], n)
		}
		k.allFaint = k.allFaint && m.grade == faint
		k.keywords = append(k.keywords, keyword{text: text, concept: id, pattern: b.pattern(&m, id, n)})
	}
	var unreadable []string
	k.filter, unreadable = newFilter(c.Triggers)
	for _, s := range unreadable {
		b.report(c, fmt.Sprintf("timeOfDay %q is unreadable and never matches", s), timeOfDayFix)
	}
	for _, tag := range foldAll(c.Triggers.RouterTags) {
		if tag != "" && !slices.Contains(k.tags, tag) {
			k.tags = append(k.tags, tag)
			s.tags[tag] = append(s.tags[tag], n)
		}
	}
	s.byOrd[ordinal] = n
	s.cards = append(s.cards, k)
}

// concept returns the concept of a keyword, and creates it if the keyword is
// new.
func (b *builder) concept(m *meaning) int32 {
	s := b.set
	key := m.key()
	if id, ok := b.concepts[key]; ok {
		return id
	}
	id := int32(len(s.concepts))
	b.concepts[key] = id
	s.concepts = append(s.concepts, concept{mode: m.mode, open: m.open, grade: m.grade, gain: m.gain})
	b.holders = append(b.holders, nil)
	if m.mode == modeRegex {
		s.regexes = append(s.regexes, expression{m.expr, id})
	}
	return id
}

// languageOf guesses the language of a card from its texts.
func languageOf(c *capability.Capability) int {
	var g language.Guess
	for _, text := range append([]string{c.Description}, c.Triggers.Keywords...) {
		for word := range wordsOf([]byte(fold(text))) {
			g.Add(string(word))
		}
	}
	return g.Language()
}

func (b *builder) pattern(m *meaning, concept, card int32) int32 {
	if m.mode == modeRegex {
		return -1
	}
	s := b.set
	id, ok := b.patterns[m.bare]
	if !ok {
		id = int32(len(b.texts))
		b.patterns[m.bare] = id
		b.texts = append(b.texts, m.bare)
		s.patterns = append(s.patterns, pattern{length: int32(len(m.bare))})
	}
	p := &s.patterns[id]
	if concept != 0 && m.mode != modeWord && !slices.Contains(p.concepts, concept) {
		p.concepts = append(p.concepts, concept)
	}
	if n := len(p.cards); n == 0 || p.cards[n-1] != card {
		p.cards = append(p.cards, card)
	}
	return id
}

// finish weighs the concepts by how many cards share them and builds the
// automaton, whose patterns must be sorted.
func (b *builder) finish() {
	s := b.set
	many := math.Log(1 + float64(max(len(s.cards), smallSet)))
	for id := range s.concepts {
		if shared := len(b.holders[id]); shared > 0 {
			rarity := math.Log(1+float64(max(len(s.cards), smallSet))/float64(shared)) / many
			s.concepts[id].gain *= commonShare + (1-commonShare)*rarity
		}
		s.concepts[id].cards = b.holders[id]
	}
	order := make([]int32, len(b.texts))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(x, y int32) int { return strings.Compare(b.texts[x], b.texts[y]) })
	sorted, texts, place := make([]pattern, len(order)), make([]string, len(order)), make([]int32, len(order))
	for i, old := range order {
		sorted[i], texts[i], place[old] = s.patterns[old], b.texts[old], int32(i)
	}
	s.patterns = sorted
	for i := range s.cards {
		for j := range s.cards[i].keywords {
			if k := &s.cards[i].keywords[j]; k.pattern >= 0 {
				k.pattern = place[k.pattern]
			}
		}
	}
	s.finder = newAutomaton(texts)
	s.scratch = newScratchPool(s)
}

const (
	// commonShare is what is left of the strength of a keyword that very many
	// cards have.
	commonShare = 0.6

	// smallSet is how many cards a set counts as at least, so that two cards
	// that share a keyword do not take it from each other.
	smallSet = 16
)

func (b *builder) report(c *capability.Capability, message, fix string) {
	b.set.problems = append(b.set.problems, capability.Problem{
		Severity: capability.Warning, Code: "card-trigger", Subject: c.ID, Origin: c.Origin,
		Message: string(c.ID) + ": " + message, Fix: fix,
	})
}
