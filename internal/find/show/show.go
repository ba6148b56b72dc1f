// Package show turns capabilities into text for a prompt, within hard budgets
// of tokens.
//
// There are three forms. A [Map] is the summary that is always there, a [Brief]
// is one capability in one line, a [Page] is all there is to say about one.
// They are made once, per view or per capability, and counted then. [Assemble]
// puts them together for one message; it only adds numbers, counts nothing
// again and searches nothing:
//
//	m := show.MakeMap(snapshot.All(), agents, tokenizer.Count)
//	item := show.Item{ID: e.ID, Score: 0.9, Brief: show.MakeBrief(e, tokenizer.Count)}
//	shown := show.Assemble(budget, show.Input{Map: m, Briefs: []show.Item{item}})
//	prompt := shown.Text()
//
// What does not fit is made smaller before it is left out: fewer names, fewer
// categories, fewer sections. Whatever is left out or cut is named, with the
// limit that bit, in [Shown] and, for pages, in the text itself.
//
// Every string of a capability passes package untrusted. The same input gives
// the same bytes. Everything here is pure and safe for concurrent use.
package show

import (
	"unicode"
	"unicode/utf8"

	"ken/internal/tokenizer"
)

// The sums that are made here are what [tokenizer.Count] says of the whole, or a
// little more, and never less; the same holds for the other counters there.
// They rest on two things: no token crosses a line end, unless the next line is
// empty or begins with a slash, nor the place before a single blank.

const (
	briefsHead   = "Relevant capabilities:"
	cardsHead    = "# Capability Context (auto-injected)"
	injectedHead = "Injected:"

	mostNumbers = 999 // briefs in one list; up to it all numbers have one price
)

// ownWords are the prices of what [Assemble] itself writes.
type ownWords struct{ briefs, cards, injected int }

func countOwnWords(count tokenizer.Counter) ownWords {
	return ownWords{closed(count, briefsHead), closed(count, cardsHead), count(injectedHead)}
}

// closed returns what text costs at the end of a line, of a paragraph or of
// everything, whichever is most.
func closed(count tokenizer.Counter, text string) int {
	if wordEnd(text) {
		return count(text) + lineEnd(count)
	}
	head, tail := splitTail(text)
	n := max(count(tail), count(tail+"\n"), count(tail+"\n\n"))
	if head != "" {
		n += count(head)
	}
	return n
}

// lineEnd returns the price of a line end after a word, a blank line or not.
func lineEnd(count tokenizer.Counter) int { return max(count("\n"), count("\n\n")) }

// wordEnd reports whether text ends in a letter or a number, which no token
// joins with the line end behind it.
func wordEnd(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

// splitTail parts text before the signs it ends with, where no token crosses.
// All is tail where that is not certain.
func splitTail(text string) (head, tail string) {
	for i := len(text); i > 0; i-- {
		switch c := text[i-1]; {
		case c >= utf8.RuneSelf:
			return "", text
		case c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			return text[:i], text[i:]
		}
	}
	return "", text
}

// unslashed moves a text that begins with a slash by one blank, because
// counters join a slash with the line end before it.
func unslashed(text string) string {
	if len(text) > 0 && text[0] == '/' {
		return " " + text
	}
	return text
}
