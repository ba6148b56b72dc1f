// Package tokenizer counts the tokens of a text: exactly for models that use
// the o200k_base encoding ([Count]), from above for models whose tokens are
// unknown ([Estimate]), and by the old rule of thumb ([Chars4]).
//
// Count costs nothing to start and next to nothing to keep. The vocabulary lies
// in the program's read-only pages, already in the shape in which it is looked
// up, so nothing is decoded and nothing of it is on the heap. All functions are
// pure and safe for concurrent use.
//
// # Adding up
//
// Callers that fill a budget piece by piece need to know when the count of a
// whole is the sum of the counts of its parts. Count(a+b) == Count(a)+Count(b)
//
//   - if a ends with "\n" and b does not begin with whitespace or '/';
//   - if a does not end with whitespace and b begins with a space or a tab.
//
// Estimate(a+b) and Chars4(a+b) are at most the sum in every case, so a budget
// filled by sums holds for each counter.
package tokenizer

import (
	"fmt"
	"unicode/utf8"
)

// Each half of the encoding has its file: split.go cuts a text into pieces,
// merge.go joins the bytes of one piece into tokens, table.go says which bytes
// are tokens. The tables are made from the test-only dependency by:
//
//go:generate go run -tags tables ../../scripts/tokens .

// A Counter counts the tokens of a text. The empty text has none. It is safe
// for concurrent use.
type Counter func(text string) int

// Named returns the counter that a configuration calls name: "o200k" (also "")
// is [Count], "estimate" is [Estimate], "chars4" is [Chars4].
func Named(name string) (Counter, error) {
	switch name {
	case "", "o200k":
		return Count, nil
	case "estimate":
		return Estimate, nil
	case "chars4":
		return Chars4, nil
	}
	return nil, fmt.Errorf("tokenizer %q is not known: use o200k, estimate or chars4", name)
}

// Count returns the number of o200k_base tokens of text. Names of special tokens,
// such as <|endoftext|>, count as the ordinary text they are. A byte that is not
// UTF-8 counts as the replacement character U+FFFD, which is what a model would
// be sent. Count allocates only for pieces without a break of more than about
// 250 characters, about 24 bytes for each character, and for invalid UTF-8.
func Count(text string) int {
	n := 0
	for i := 0; i < len(text); {
		end, broken := next(text, i)
		n += tokens(text[i:end], broken)
		i = end
	}
	return n
}

// tokens counts the tokens of one piece.
func tokens(piece string, broken bool) int {
	if broken {
		piece = mend(piece)
	}
	switch {
	case len(piece) == 1:
		return 1
	case len(piece) == 2 && pair(piece[0], piece[1]) == none:
		return 2
	case len(piece) == 2 || rank(piece) != none:
		return 1
	}
	return merge(piece)
}

// mend replaces each byte that is not UTF-8 by U+FFFD.
func mend(s string) string { return string([]rune(s)) }

// Chars4 is the seed's rule of thumb: a token is four characters, the last one
// perhaps fewer. It may be far from the truth in either direction.
func Chars4(text string) int { return (utf8.RuneCountInString(text) + 3) / 4 }
