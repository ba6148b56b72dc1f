package untrusted

import (
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// A manner says how a phrase stands in its text.
type manner struct {
	hidden    bool // in a comment that a reader of the page does not see
	quoted    bool // in quotation marks, inline code or a code fence
	discussed bool // after words such as "detects phrases like"
}

// A page knows which parts of a text are code or comments. It is built once,
// when the first phrase is found.
type page struct {
	text     string
	fences   [][2]int
	comments [][2]int
}

func newPage(text string) *page {
	return &page{text: text, fences: fencedCode(text), comments: comments(text)}
}

// manner judges the bytes [start, end) of the text.
func (p *page) manner(start, end int) manner {
	if within(p.fences, start) {
		return manner{quoted: true}
	}
	if within(p.comments, start) {
		return manner{hidden: true}
	}
	// A phrase is looked at with at most this much around it, so that the time
	// stays linear in texts of one long line.
	const around = 400
	before := p.text[max(0, start-around):start]
	before = before[strings.LastIndexByte(before, '\n')+1:]
	after := p.text[min(end, len(p.text)):min(end+around, len(p.text))]
	after, _, _ = strings.Cut(after, "\n")
	return manner{
		quoted:    quotedBetween(before, after),
		discussed: discussed(p.text[max(0, start-160):start]),
	}
}

// within reports whether one of the spans, which are in order, holds at.
func within(spans [][2]int, at int) bool {
	i := sort.Search(len(spans), func(i int) bool { return spans[i][1] > at })
	return i < len(spans) && spans[i][0] <= at
}

// fencedCode returns the insides of closed ``` and ~~~ blocks. One that is never
// closed is none, so that it cannot cover the rest of a text.
func fencedCode(text string) [][2]int {
	var spans [][2]int
	open, mark := -1, ""
	for at := 0; at < len(text); {
		end := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		line := strings.TrimLeft(text[at:end], " \t>")
		switch {
		case open < 0 && (strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~")):
			open, mark = end, line[:3]
		case open >= 0 && strings.HasPrefix(line, mark):
			spans = append(spans, [2]int{open, at})
			open = -1
		}
		at = end
	}
	return spans
}

var commentForms = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)<!--.*?(?:-->|$)|(?m:^|\s)\[(?://|comment|hidden|_)\]: (?:#|<>)\s*[("'][^\n]*`)
})

func comments(text string) [][2]int {
	if !strings.Contains(text, "<!--") && !strings.Contains(text, "]: #") && !strings.Contains(text, "]: <>") {
		return nil
	}
	var spans [][2]int
	for _, m := range commentForms().FindAllStringIndex(text, -1) {
		spans = append(spans, [2]int{m[0], m[1]})
	}
	return spans
}

// quotedBetween reports whether a phrase between before and after, on one line, is
// in quotation marks or inline code.
func quotedBetween(before, after string) bool {
	for _, q := range [...]string{"\"", "`"} {
		if strings.Count(before, q)%2 == 1 && strings.Contains(after, q) {
			return true
		}
	}
	for _, q := range [...][2]string{{"“", "”"}, {"«", "»"}, {"「", "」"}, {"„", "“"}, {"‘", "’"}} {
		if strings.LastIndex(before, q[0]) > strings.LastIndex(before, q[1]) && strings.Contains(after, q[1]) {
			return true
		}
	}
	return openApostrophe(before) && strings.Contains(after, "'")
}

// openApostrophe reports a single quotation mark that was opened and not closed.
// One inside a word is an apostrophe.
func openApostrophe(before string) bool {
	for i := len(before) - 1; i >= 0; i-- {
		if before[i] != '\'' {
			continue
		}
		left, _ := utf8.DecodeLastRuneInString(before[:i])
		right, _ := utf8.DecodeRuneInString(before[i+1:])
		leftWord := i > 0 && (unicode.IsLetter(left) || unicode.IsDigit(left))
		rightWord := i+1 == len(before) || !unicode.IsSpace(right)
		if leftWord && rightWord && i+1 < len(before) {
			continue // don't
		}
		return !leftWord && rightWord
	}
	return false
}

// topicWords introduce a phrase as a subject; topicStems do with any ending.
var (
	topicWords = map[string]bool{
		"such": true, "phrase": true, "phrases": true, "sentence": true, "sentences": true, "e.g": true, "example": true, "examples": true,
		"jailbreak": true, "jailbreaks": true, "malicious": true, "try": true, "tries": true, "trying": true, "saying": true, "says": true,
		"suspicious": true, "guard": true, "guards": true, "guardrail": true, "guardrails": true, "warns": true, "requests": true,
		"pattern": true, "patterns": true, "keyword": true, "keywords": true,
	}
	topicStems = []string{
		"detect", "attack", "injection", "adversar", "attempt", "contain", "block", "reject", "flag", "filter", "scan", "prevent", "refus", "resist",
	}
)

// discussed reports words in before, in its last paragraph, that introduce what
// follows as a subject: "detects phrases such as".
func discussed(before string) bool {
	if i := strings.LastIndex(before, "\n\n"); i >= 0 {
		before = before[i:]
	}
	words := strings.FieldsFunc(before, func(r rune) bool { return !unicode.IsLetter(r) && r != '.' })
	return slices.ContainsFunc(words, func(w string) bool {
		w = strings.ToLower(strings.Trim(w, "."))
		return topicWords[w] || slices.ContainsFunc(topicStems, func(stem string) bool { return strings.HasPrefix(w, stem) })
	})
}

// lead returns the end of the paragraph before text[at:], enough to see the words
// that govern a verb there.
func lead(text string, at int) string {
	before := text[max(0, at-40):at]
	if i := strings.LastIndex(before, "\n\n"); i >= 0 {
		before = before[i:]
	}
	return strings.TrimRightFunc(before, unicode.IsSpace)
}

// commanded reports whether the verb at text[at:] is a command: it begins a
// sentence or a clause, or a word that asks comes before it.
func commanded(text string, at int) bool {
	before := lead(text, at)
	if before == "" {
		return true
	}
	r, _ := utf8.DecodeLastRuneInString(before)
	if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
		return true
	}
	switch lastWord(before) {
	case "please", "must", "should", "you", "now", "and", "then", "instead", "kindly", "also", "just",
		"simply", "always", "first", "important", "note", "hereby", "so", "but", "completely", "immediately":
		return true
	}
	return false
}

// negated reports "do not", "never" or the like right before text[at:].
func negated(text string, at int) bool {
	before := lead(text, at)
	for range 2 {
		switch w := lastWord(before); w {
		case "not", "never", "don't", "don’t", "dont", "cannot", "can't", "can’t", "won't", "without", "mustn't", "shouldn't":
			return true
		case "":
			return false
		default:
			before = strings.TrimRightFunc(before[:len(before)-len(w)], unicode.IsSpace)
		}
	}
	return false
}

// lastWord returns the word that s ends in, with apostrophes.
func lastWord(s string) string {
	i := len(s)
	for i > 0 {
		r, size := utf8.DecodeLastRuneInString(s[:i])
		if !unicode.IsLetter(r) && r != '\'' && r != '’' {
			break
		}
		i -= size
	}
	return s[i:]
}
