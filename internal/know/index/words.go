package index

import (
	"strings"
	"unicode"
)

// Words splits text into the terms that the index knows: identifiers are taken
// apart at case changes, digits and punctuation, letters are lowered, plurals
// lose their ending, and words that say nothing about a task are left out.
// Scripts without spaces give overlapping pairs of characters.
func Words(text string) []string {
	var out []string
	runes := []rune(text)
	for i := 0; i < len(runes); {
		switch {
		case unspaced(runes[i]):
			j := i
			for j < len(runes) && unspaced(runes[j]) {
				j++
			}
			out = appendPairs(out, runes[i:j])
			i = j
		case unicode.IsLetter(runes[i]):
			j := wordEnd(runes, i)
			out = appendWord(out, runes[i:j])
			i = j
		case unicode.IsDigit(runes[i]):
			j := i
			for j < len(runes) && unicode.IsDigit(runes[j]) {
				j++
			}
			out = append(out, string(runes[i:j]))
			i = j
		default:
			i++
		}
	}
	return out
}

// wordEnd finds the end of the word that begins at i: "getHTTPPage" is get,
// HTTP, Page.
func wordEnd(runes []rune, i int) int {
	j := i + 1
	for j < len(runes) && (unicode.IsLetter(runes[j]) || unicode.IsMark(runes[j])) && !unspaced(runes[j]) {
		if unicode.IsUpper(runes[j]) {
			if !unicode.IsUpper(runes[j-1]) {
				break // aB
			}
			if j+1 < len(runes) && unicode.IsLower(runes[j+1]) {
				break // the B of ABc begins a word
			}
		}
		j++
	}
	return j
}

func appendWord(out []string, runes []rune) []string {
	w := strings.ToLower(string(runes))
	if len(w) < 2 || stopWords[w] {
		return out
	}
	return append(out, singular(w))
}

// singular drops an English plural ending, alike for queries and entries, so
// it need not be a real word.
func singular(w string) string {
	switch {
	case len(w) > 4 && strings.HasSuffix(w, "ies"):
		return w[:len(w)-3] + "y"
	case len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is"):
		return w[:len(w)-1]
	}
	return w
}

func appendPairs(out []string, runes []rune) []string {
	if len(runes) == 1 {
		return append(out, string(runes))
	}
	for i := range len(runes) - 1 {
		out = append(out, string(runes[i:i+2]))
	}
	return out
}

func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

var stopWords = makeSet(`a about all am an and any are as at be been but by can could did do does for from
	get had has have how i if in into is it its just let like make may me might my need no not of on or our
	out please shall she should so some than that the their them then there these they this to too up us use
	using want was we were what when where which who why will with would you your`)

func makeSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}
