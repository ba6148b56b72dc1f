package card

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"ken/internal/language"
)

// A mode says how a concept is looked for.
type mode uint8

const (
	modeWord      mode = iota // stems, one or several in a row
	modeLiteral               // as written, not within a word
	modePrefix                // at the beginning of a word
	modeSubstring             // anywhere
	modeRegex
)

// A concept is what one or more keywords mean: "cost" and "Costs" are one. It
// counts once for a card.
type concept struct {
	mode  mode
	open  bool    // literal: a letter may follow, as in "c++17"
	grade grade   // of its most telling word
	gain  float64 // the probability that it alone means the card is wanted
	cards []int32 // that have it
}

// Strengths, before what sharing takes off. The usual threshold is 0.6: one
// strong concept passes, and so do two everyday ones.
const (
	phraseGain   = 0.80
	strongGain   = 0.70
	everydayGain = 0.42
	faintGain    = 0.10
)

// A meaning is a keyword taken apart.
type meaning struct {
	mode  mode
	open  bool
	bare  string   // without its notation, folded; what the seed's formula looks for
	words []string // for modeWord: the words as written
	stems []string // their stems in the card's language
	stop  bool     // the keyword is a stop word, so nearly every message contains it
	grade grade
	gain  float64
	expr  *regexp.Regexp
}

// key tells concepts apart.
func (m *meaning) key() string {
	if m.mode == modeWord {
		return "w " + strings.Join(m.stems, " ")
	}
	return string('a'+rune(m.mode)) + " " + m.bare
}

// fold makes text comparable: compatibility forms and case are gone, and what
// is not UTF-8 is U+FFFD.
func fold(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return strings.ToLower(norm.NFKC.String(strings.ToValidUTF8(s, "\uFFFD")))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// A fault says why a keyword cannot be used and what to do.
type fault struct{ what, fix string }

// parseKeyword parses a keyword of a card in the given language.
func parseKeyword(s string, common map[string]grade, lang int) (meaning, *fault) {
	s = strings.TrimSpace(s)
	notation, rest, found := strings.Cut(s, ":")
	m := meaning{mode: modeWord}
	if found {
		switch strings.ToLower(notation) {
		case "word":
			s = rest
		case "prefix":
			m.mode, s = modePrefix, rest
		case "substring":
			m.mode, s = modeSubstring, rest
		case "regex":
			return parseRegex(strings.TrimSpace(rest))
		}
	}
	m.bare = fold(strings.TrimSpace(s))
	switch {
	case m.bare == "":
		return m, &fault{"it is empty and would match everything", "remove it"}
	case len(m.bare) > MaxKeyword:
		return m, &fault{fmt.Sprintf("it is longer than %d bytes", MaxKeyword), "use a shorter one"}
	}
	m.settle(common, lang)
	return m, nil
}

// parseRegex compiles an expression whose cost is bounded: RE2 takes time in
// proportion to the text and to the size of the program, and both have a cap.
func parseRegex(s string) (meaning, *fault) {
	m := meaning{mode: modeRegex, bare: s, gain: strongGain}
	if len(s) > MaxRegex {
		return m, &fault{fmt.Sprintf("the expression is longer than %d bytes", MaxRegex), "shorten it"}
	}
	source := "(?i:" + s + ")"
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return m, &fault{"the expression does not compile: " + err.Error(), "see the RE2 syntax"}
	}
	if program, err := syntax.Compile(tree.Simplify()); err != nil || len(program.Inst) > maxProgram {
		return m, &fault{"the expression repeats too much", "use smaller counts"}
	}
	expr, err := regexp.Compile(source)
	if err != nil {
		return m, &fault{"the expression does not compile: " + err.Error(), "see the RE2 syntax"}
	}
	if expr.MatchString("") {
		return m, &fault{"the expression matches the empty text and with it everything", "require a character"}
	}
	if expr.MatchString("q") && expr.MatchString("Zx v") && expr.MatchString("七") {
		return m, &fault{"the expression matches nearly every text", "name the words that call for the card"}
	}
	m.expr = expr
	return m, nil
}

// maxProgram is the most instructions of a compiled expression.
const maxProgram = 96

// settle chooses how a plain keyword is looked for, and its strength.
func (m *meaning) settle(common map[string]grade, lang int) {
	words := 0
	m.grade = faint
	for word := range wordsOf([]byte(m.bare)) {
		words++
		m.words = append(m.words, string(word))
		m.stems = append(m.stems, language.Stem(string(word), lang))
		m.grade = min(m.grade, gradeOf(language.Stem(string(word), language.English), common))
		if len(word) > maxWord {
			words = maxPhrase + 1
		}
	}
	m.stop = language.IsStop(m.bare, language.English) || language.IsStop(m.bare, lang)
	first, _ := utf8.DecodeRuneInString(m.bare)
	last, _ := utf8.DecodeLastRuneInString(m.bare)
	unspacedText := strings.ContainsFunc(m.bare, unspaced)
	switch {
	case m.mode != modeWord:
		m.words, m.stems = nil, nil
	case unspacedText:
		m.mode, m.words, m.stems = modeSubstring, nil, nil
	case !isWord(first) || !isWord(last) || words > maxPhrase:
		m.mode, m.words, m.stems = modeLiteral, nil, nil
		m.open = !isWord(last)
	}
	switch {
	case unspacedText:
		m.grade = telling
		if utf8.RuneCountInString(m.bare) == 1 {
			m.grade = everyday
		}
	case m.mode != modeWord && len(m.bare) == 1:
		m.grade = faint // a lone sign is in every text
	case m.mode == modeLiteral:
		m.grade = telling
	case m.mode != modeWord && len(m.bare) <= 2:
		m.grade = everyday
	}
	m.gain = gainOf(m.grade, words)
}

func gradeOf(stem string, common map[string]grade) grade {
	if g, ok := common[stem]; ok {
		return g
	}
	if len(stem) == 1 {
		return everyday
	}
	return telling
}

// gainOf returns a phrase more than its words: who says all of them in a row
// means it.
func gainOf(g grade, words int) float64 {
	switch {
	case words > 1 && g == telling:
		return phraseGain
	case words > 1 && g == everyday, words <= 1 && g == telling:
		return strongGain
	case g == everyday, words > 1:
		return everydayGain
	}
	return faintGain
}

// isWord reports what words are made of, in scripts that put spaces between
// them.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z'
	}
	return (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)) && !unspaced(r)
}

// unspaced reports characters of scripts whose words are not, or not only,
// parted by spaces.
func unspaced(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
