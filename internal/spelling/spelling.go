// Package spelling finds the word that a misspelled one was meant to be, for
// "did you mean" in errors.
package spelling

import (
	"math/bits"
	"strings"
	"unicode/utf8"
)

// Fold returns a key in lower case without "_", "-" and spaces, so that all
// spellings of it are equal.
func Fold(key string) string {
	key = strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == ' ' {
			return -1
		}
		return c
	}, key)
	return strings.ToLower(key)
}

// Nearest returns the word most like s, or "" if none is close enough to be what
// was meant.
func Nearest(s string, words []string) string {
	if len(s) > 4*longestWord {
		return ""
	}
	asked := []rune(Fold(s))
	if len(asked) > longestWord {
		return ""
	}
	best, bestDistance := "", 1+max(1, min(2, len(asked)-2), len(asked)/3) // in a word of three letters, two edits leave nothing of it
	letters := lettersOf(asked)
	var buf [longestWord]rune
	for _, w := range words {
		if apart := len(w) - len(asked); len(w) > 4*longestWord || -apart >= bestDistance {
			continue // far shorter, or too long to be a word
		}
		folded, ok := foldInto(buf[:0], w)
		if !ok || least(asked, folded, letters) >= bestDistance {
			continue
		}
		if d := distance(asked, folded); d < bestDistance {
			best, bestDistance = w, d
		}
	}
	return best
}

// foldInto is [Fold] as letters, for a word of at most longestWord of them. A list of
// 100,000 ids is looked through in the time that a caller waits, so it allocates
// nothing for an ASCII word.
func foldInto(into []rune, w string) ([]rune, bool) {
	for i := 0; i < len(w); i++ {
		c := w[i]
		switch {
		case c >= utf8.RuneSelf:
			folded := []rune(Fold(w))
			return folded, len(folded) <= longestWord
		case c == '_' || c == '-' || c == ' ':
			continue
		case len(into) == longestWord:
			return nil, false
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		into = append(into, rune(c))
	}
	return into, true
}

// least returns a number of edits that the distance of a and b is not below: an edit
// makes a word one letter longer or shorter, and brings or takes away one letter.
func least(a, b []rune, inA uint64) int {
	inB := lettersOf(b)
	return max(len(a)-len(b), len(b)-len(a), bits.OnesCount64(inA&^inB), bits.OnesCount64(inB&^inA))
}

// lettersOf returns the set of letters in a word, some of which share a bit.
func lettersOf(word []rune) uint64 {
	var set uint64
	for _, c := range word {
		set |= 1 << (c & 63)
	}
	return set
}

const longestWord = 64 // in letters; longer texts are never suggested

// Distance returns the number of edits between two folded words. Swapping two
// neighbouring letters is one edit.
func Distance(a, b string) int { return distance([]rune(Fold(a)), []rune(Fold(b))) }

func distance(a, b []rune) int {
	if len(a) > longestWord || len(b) > longestWord {
		return longestWord
	}
	var rows [3][longestWord + 1]int // this one, the one before, and the one before that
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		now, last, before := &rows[i%3], &rows[(i+2)%3], &rows[(i+1)%3]
		now[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}

// NearestID is [Nearest] for ids. Many ids share their first part (tool:,
// mcp:attic/), which does not tell which one was meant, so only the rest is
// compared. It is stricter than Nearest because a model may call what it returns.
func NearestID(id string, known []string) string {
	near := Nearest(id, known)
	a, b := id, near
	if i := strings.LastIndexAny(id, ":/") + 1; strings.HasPrefix(near, id[:i]) {
		a, b = id[i:], near[i:]
	}
	if shorter := min(len(a), len(b)); Distance(a, b) > max(1, shorter/3) || shorter < 2 {
		return ""
	}
	return near
}
