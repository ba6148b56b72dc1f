package card

import (
	"bytes"
	"unicode/utf8"
)

// maxWord is the most bytes a word may have to be stemmed and looked up.
const maxWord = 64

// appendStem adds the stem of a lower-cased word to dst. It takes off English
// inflection and a few derivations, little enough that two words of one stem
// mean the same in a message ("routes", "routing"; but "event" and "eventually"
// stay apart). Cyrillic words lose their case endings. Other words stay as they
// are. Keywords and messages pass through it alike, so a stem need not be a
// word.
func appendStem(dst, word []byte) []byte {
	at := len(dst)
	dst = append(dst, word...)
	w := dst[at:]
	switch {
	case len(w) == 0:
	case w[0] >= utf8.RuneSelf:
		w = stemCyrillic(w)
	case len(w) > 3:
		w = stemEnglish(w)
	}
	return dst[:at+len(w)]
}

// stemEnglish works in place; the result is never longer.
func stemEnglish(w []byte) []byte {
	w = plural(w)
	w = participle(w)
	switch {
	case ends(w, "ization") && len(w) >= 10: // optimization, optimize
		w = w[:len(w)-len("ation")]
	case ends(w, "isation") && len(w) >= 10:
		w = w[:len(w)-len("ation")]
	case (ends(w, "tion") || ends(w, "sion")) && len(w) >= 8: // migration, migrate
		w = w[:len(w)-len("ion")]
	case ends(w, "ment") && len(w) >= 10: // deployment, deploy
		w = w[:len(w)-len("ment")]
	}
	if n := len(w); n > 3 && w[n-1] == 'e' {
		w = w[:n-1]
	}
	return w
}

func plural(w []byte) []byte {
	n := len(w)
	if w[n-1] != 's' {
		return w
	}
	switch {
	case ends(w, "ies") && n > 4: // queries, query
		w[n-3] = 'y'
		return w[:n-2]
	case ends(w, "sses"), ends(w, "xes"), ends(w, "zzes"), ends(w, "ches"), ends(w, "shes"):
		return w[:n-2]
	case w[n-2] == 's' || w[n-2] == 'u' || w[n-2] == 'i': // access, status, analysis
		return w
	}
	return w[:n-1]
}

func participle(w []byte) []byte {
	n := len(w)
	switch {
	case ends(w, "ied") && n > 4: // tried, try
		w[n-3] = 'y'
		return w[:n-2]
	case ends(w, "ing") && n > 5 && hasVowel(w[:n-3]):
		return undouble(w[:n-3])
	case ends(w, "eed"): // feed, exceed
		return w
	case ends(w, "ed") && n > 4 && hasVowel(w[:n-2]):
		return undouble(w[:n-2])
	}
	return w
}

// undouble makes "stopp" "stop" again and leaves "call", "miss" and "buzz".
func undouble(w []byte) []byte {
	n := len(w)
	if n < 4 || w[n-1] != w[n-2] {
		return w
	}
	switch w[n-1] {
	case 'b', 'd', 'g', 'm', 'n', 'p', 'r', 't':
		return w[:n-1]
	}
	return w
}

func hasVowel(w []byte) bool { return bytes.ContainsAny(w, "aeiouy") }

func ends(w []byte, suffix string) bool {
	return len(w) >= len(suffix) && string(w[len(w)-len(suffix):]) == suffix
}

// stemCyrillic takes up to three letters of an ending off, and leaves at least
// four.
func stemCyrillic(w []byte) []byte {
	if first, _ := utf8.DecodeRune(w); first < 0x0400 || first > 0x052F {
		return w
	}
	letters := utf8.RuneCount(w)
	for range 3 {
		last, size := utf8.DecodeLastRune(w)
		if letters <= 4 || !bytes.ContainsRune([]byte("аеёиоуыэюяйьъмхві"), last) {
			break
		}
		w, letters = w[:len(w)-size], letters-1
	}
	return w
}
