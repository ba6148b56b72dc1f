package show

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"ken/internal/tokenizer"
	"ken/internal/untrusted"
)

const (
	maxBody     = 64000 // characters of a body; the rest is cut and counted by untrusted.Block
	maxSections = 64    // sections of a body that can be left out one by one
	longLine    = 400   // bytes; a longer line can be cut within
)

// A section is a part of a body under one heading.
type section struct {
	name  string
	text  string // without line ends around it
	blank bool   // a blank line stands before it
}

// sections parts Markdown at its headings, code blocks not read for any. A
// heading right below another belongs to the same section.
func sections(text string) []section {
	var list []section
	start, code, bare := 0, false, true // bare: nothing but headings so far
	name := ""
	flush := func(end int) {
		if part := strings.Trim(text[start:end], "\n"); part != "" {
			s := section{name: cmpOr(name, "Introduction"), text: part}
			s.blank = start > 1 && text[start-2] == '\n'
			list = append(list, s)
		}
		start, name, bare = end, "", true
	}
	at := 0
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		title, ok := heading(line)
		switch {
		case strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~"):
			code, bare = !code, false
		case ok && !code:
			if !bare && len(list) < maxSections-1 {
				flush(at)
			}
			name = cmpOr(name, plainWords(title))
		case trimmed != "":
			bare = false
		}
		at += len(line)
	}
	flush(len(text))
	return list
}

// plainWords returns a heading as it may stand outside the fence: its letters and
// digits, and nothing that could end or imitate our own words.
func plainWords(title string) string {
	words := strings.FieldsFunc(title, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '-' && r != '_'
	})
	return untrusted.Line(strings.Join(words, " "), 40)
}

// heading returns the words of a line like "## Install".
func heading(line string) (string, bool) {
	rest := strings.TrimLeft(line, "#")
	if n := len(line) - len(rest); n < 1 || n > 6 || !strings.HasPrefix(rest, " ") {
		return "", false
	}
	return strings.Trim(rest, "# \t\n"), true
}

// A cut is a place where a text may end: how long it is then, in bytes, in
// characters and in tokens without any line end.
type cut struct{ end, chars, tokens int }

// measure returns the price of a text and the places where it may be cut: line
// ends and, in long lines, the ends of sentences. Every byte is counted once.
func measure(count tokenizer.Counter, text string) (tokens int, cuts []cut) {
	start, chars := 0, 0
	for start < len(text) {
		end, next := nextCut(text, start)
		part := text[start:end]
		bare := count(part)
		if end < len(text) {
			cuts = append(cuts, cut{end, chars + utf8.RuneCountInString(part), tokens + bare})
		}
		switch {
		case next == end && end < len(text): // within a line
			tokens += bare
		case wordEnd(part):
			tokens += bare + lineEnd(count)
		default:
			tokens += closed(count, part)
		}
		chars += utf8.RuneCountInString(text[start:next])
		start = next
	}
	return tokens, cuts
}

// nextCut finds where the part of text that begins at start ends, and where the
// next begins. No token crosses such a place.
func nextCut(text string, start int) (end, next int) {
	for at := start; ; {
		n := strings.IndexByte(text[at:], '\n')
		if n < 0 {
			n = len(text) - at
		}
		if at == start && n > longLine {
			if end := sentenceEnd(text[at : at+n]); end > 0 {
				return at + end, at + end
			}
		}
		end = at + n
		next = end
		for next < len(text) && text[next] == '\n' {
			next++
		}
		// A slash at the start of a line may be one token with the line end
		// before it, and blanks alone are no line to begin with.
		if next == len(text) || text[next] != '/' && !blankLine(text[next:]) {
			return end, next
		}
		at = next
	}
}

func blankLine(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(line) == ""
}

// sentenceEnd finds a place within a long line, 0 if there is none: before the
// blank after a sentence, else before any blank, else before the stop of a
// script that has no blanks.
func sentenceEnd(line string) int {
	space := 0
	for i, r := range line {
		if i > longLine && space > 0 {
			return space
		}
		if i == 0 || i+utf8.RuneLen(r) >= len(line) {
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(line[:i])
		after, _ := utf8.DecodeRuneInString(line[i+utf8.RuneLen(r):])
		switch {
		case r == ' ' && before != ' ' && !unicode.IsSpace(before) && !unicode.IsSpace(after):
			if strings.ContainsRune(".!?;。！？", before) && i > longLine/4 {
				return i
			}
			space = i
		case strings.ContainsRune("。！？；，、", r) && unicode.IsLetter(before) && i > longLine/2:
			return i
		}
	}
	return space
}
