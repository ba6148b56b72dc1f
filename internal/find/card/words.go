package card

import (
	"iter"
	"slices"
	"sync"
	"unicode/utf8"

	"ken/internal/language"
)

// maxWord is the most bytes a word may have to be stemmed and looked up.
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

// nextWord gives the first word from at on; start and end are equal when there
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

// A phrase is the words of a keyword, lowered and not stemmed.
type phrase struct {
	words   []string
	concept int32
	lang    int // of the card that has it
}

// A vocabulary knows the stems of keywords in one language, and which of them in a
// row make a concept.
type vocabulary struct {
	lang  int
	stems map[string]int32 // and words as they are written
	next  int32            // the number of the next stem
	after map[step]int32   // the node after a node and a stem; node 0 is the start
	ends  [][]int32        // by node, the concepts that end there

	// starts has a bit for the first two bytes of every stem. Stemming leaves
	// those of a word alone if they are ASCII, so most words are passed over
	// without it.
	starts [1 << 16 / 64]uint64
}

// startOf gives the bit of a word or a stem.
func startOf(word string) (at int, bit uint64) {
	n := int(word[0]) << 8
	if len(word) > 1 {
		n |= int(word[1])
	}
	return n / 64, 1 << (n % 64)
}

// mayKnow reports whether a word can be one of the vocabulary's.
func (v *vocabulary) mayKnow(word []byte) bool {
	n := int(word[0]) << 8
	if len(word) > 1 {
		n |= int(word[1])
	}
	return n&0x8080 != 0 || v.starts[n/64]&(1<<(n%64)) != 0
}

type step struct{ node, stem int32 }

// newVocabulary makes the vocabulary of a language: of all phrases, or of those of
// cards in that language.
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
			v.stems[word] = id // some stemmers take an ending for one that is none
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

func (v *vocabulary) begin(word string) {
	if word != "" {
		at, bit := startOf(word)
		v.starts[at] |= bit
	}
}

// dictionaries are the vocabularies of a set. Most messages need that of English
// alone; others are made when a message first needs them.
type dictionaries struct {
	phrases []phrase
	spoken  uint32 // the languages of cards, a bit for each; English is not among them

	mu     sync.Mutex
	made   map[dictionary]*vocabulary
	starts map[string][]*phrase // those of one word, by how they begin; nil: not made
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

// beginning returns the phrases of one word that begins as another does.
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

// add notes the words of a keyword that are a concept.
func (d *dictionaries) add(m *meaning, concept int32, lang int) {
	if m.mode == modeWord {
		d.phrases = append(d.phrases, phrase{m.words, concept, lang})
	}
}
