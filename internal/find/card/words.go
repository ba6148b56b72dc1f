package card

import (
	"iter"
	"slices"
	"sync"
	"unicode/utf8"

	"ken/internal/language"
)

// maxWord is the maximum length in bytes of a word that is stemmed and looked
// up.
const maxWord = 64

// maxPhrase is the most words of a phrase; longer keywords are looked for
// literally.
const maxPhrase = 8

// wordsOf yields the words of a folded text.
func wordsOf(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for at := 0; at < len(text); {
			start, end := nextWord(text, at)
			if start == end || !yield(text[start:end]) {
				return
			}
			at = end
		}
	}
}

// nextWord returns the first word from at on; start and end are equal when there
// is none. The text is folded.
func nextWord(text []byte, at int) (start, end int) {
	for at < len(text) {
		if b := text[at]; b < utf8.RuneSelf {
			if isPlain(b) {
				break
			}
			at++
			continue
		}
		r, size := utf8.DecodeRune(text[at:])
		if isWord(r) {
			break
		}
		at += size
	}
	start = at
	for at < len(text) {
		if b := text[at]; b < utf8.RuneSelf {
			if !isPlain(b) {
				break
			}
			at++
			continue
		}
		r, size := utf8.DecodeRune(text[at:])
		if !isWord(r) {
			break
		}
		at += size
	}
	return start, at
}

// isPlain reports the letters and digits of a folded ASCII text.
func isPlain(b byte) bool { return b-'a' < 26 || b-'0' < 10 }

func runeAt(text []byte, at int) (rune, int) {
	if b := text[at]; b < utf8.RuneSelf {
		return rune(b), 1
	}
	return utf8.DecodeRune(text[at:])
}

// A phrase holds the words of a keyword, lower-cased and not stemmed.
type phrase struct {
	words   []string
	concept int32
	lang    int // the language of its card
}

// A vocabulary holds the stems of keywords in one language, and which sequences
// of them form a concept.
type vocabulary struct {
	lang  int
	stems map[string]int32 // stems, and words as written
	next  int32            // the number of the next stem
	after map[step]int32   // maps a node and a stem to the next node; node 0 is the start
	ends  [][]int32        // by node, the concepts that end there

	// starts has a bit for the first two bytes of every stem. Stemming leaves
	// those of a word alone if they are ASCII, so most words are passed over
	// without it.
	starts [1 << 16 / 64]uint64
}

// startOf returns the bit of a word or a stem.
func startOf(word string) (at int, bit uint64) {
	n := int(word[0]) << 8
	if len(word) > 1 {
		n |= int(word[1])
	}
	return n / 64, 1 << (n % 64)
}

// mayKnow reports whether a word may be in the vocabulary.
func (v *vocabulary) mayKnow(word []byte) bool {
	n := int(word[0]) << 8
	if len(word) > 1 {
		n |= int(word[1])
	}
	return n&0x8080 != 0 || v.starts[n/64]&(1<<(n%64)) != 0
}

type step struct{ node, stem int32 }

// newVocabulary creates the vocabulary of a language, from all phrases or only
// those of cards in that language.
func newVocabulary(phrases []phrase, lang int, all bool) *vocabulary {
	v := &vocabulary{lang: lang, stems: map[string]int32{}, after: map[step]int32{}, ends: [][]int32{nil}}
	for i := range phrases {
		if p := &phrases[i]; all || p.lang == lang {
			v.add(p)
		}
	}
	return v
}

func (v *vocabulary) add(p *phrase) {
	at := int32(0)
	for _, word := range p.words {
		stem := language.Stem(word, v.lang)
		id, ok := v.stems[stem]
		if !ok {
			id = v.next
			v.next++
			v.stems[stem] = id
			v.begin(stem)
		}
		if _, ok := v.stems[word]; !ok {
			v.stems[word] = id // some stemmers remove endings that are part of the word
			v.begin(word)
		}
		next, ok := v.after[step{at, id}]
		if !ok {
			next = int32(len(v.ends))
			v.after[step{at, id}] = next
			v.ends = append(v.ends, nil)
		}
		at = next
	}
	if !slices.Contains(v.ends[at], p.concept) {
		v.ends[at] = append(v.ends[at], p.concept)
	}
}

// begin notes how words begin that have this stem: as the stem does; with its
// first letter twice (Finnish "bba" has the stem "ba"); with y for i (English
// "dying" has the stem "die"); or, where the stem is so short that its second
// letter is its last, with another second letter (Turkish "aba" has the stem "ap").
func (v *vocabulary) begin(stem string) {
	if stem == "" {
		return
	}
	note := func(start string) {
		at, bit := startOf(start)
		v.starts[at] |= bit
	}
	note(stem)
	note(stem[:1] + stem[:1])
	note(stem[:1] + "y")
	if utf8.RuneCountInString(stem) <= 2 {
		for second := range 256 {
			note(string([]byte{stem[0], byte(second)}))
		}
	}
}

// dictionaries holds the vocabularies of a set. Most messages need only the
// English one; the others are created when a message first needs them.
type dictionaries struct {
	phrases []phrase
	spoken  uint32 // bit set of the cards' languages, without English

	mu     sync.Mutex
	made   map[dictionary]*vocabulary
	starts map[string][]*phrase // one-word phrases by their beginning; nil: not built yet
}

type dictionary struct {
	lang int
	all  bool
}

func (d *dictionaries) get(lang int, all bool) *vocabulary {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := dictionary{lang, all}
	v := d.made[key]
	if v == nil {
		v = newVocabulary(d.phrases, lang, all)
		d.made[key] = v
	}
	return v
}

// beginning returns the one-word phrases with the same beginning as a word.
func (d *dictionaries) beginning(word string) []*phrase {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.starts == nil {
		d.starts = map[string][]*phrase{}
		for i := range d.phrases {
			if p := &d.phrases[i]; len(p.words) == 1 && len(p.words[0]) >= tellingLength {
				start := p.words[0][:sameBytes]
				d.starts[start] = append(d.starts[start], p)
			}
		}
	}
	return d.starts[word[:sameBytes]]
}

// add adds the words of a keyword as a concept.
func (d *dictionaries) add(m *meaning, concept int32, lang int) {
	if m.mode == modeWord {
		d.phrases = append(d.phrases, phrase{m.words, concept, lang})
	}
}
