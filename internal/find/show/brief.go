package show

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/tokenizer"
	"ken/internal/untrusted"
)

const (
	maxBriefDescription = 120 // characters; above it three dots take the place of the last ones
	maxBriefNames       = 3   // parameters, and what is required
	maxBriefReason      = 60  // characters of the reason why it cannot be used

	// notAvailable marks what cannot be used here, where no reason is given.
	notAvailable = " [not available — missing secrets or dependencies]"

	// mayNotFit marks a hit that may well not be what was asked for.
	mayNotFit = " [may not fit]"
)

// A Brief is one capability in one line, without the number before it: " name
// (kind). description. Params: a, b". It is plain data and can be kept for as
// long as the entry that it was made from.
type Brief struct {
	Text   string // begins with a blank
	Tokens int    // of the line with a number before it and its end

	// Names and Compact are the ends in Text of the shorter forms: the name
	// alone, and that with the description. NamesTokens and CompactTokens are
	// their prices. Unavailable says that the mark for it follows them.
	Names, NamesTokens     int
	Compact, CompactTokens int
	Unavailable            bool

	name, about int // where the name ends in Text and, for a tool, where the text about it begins, if it has one

	doubtful bool // it may not fit; the mark for that is the end of every form
}

// MakeBrief renders an entry in one line. It costs about as much as counting
// 200 characters.
func MakeBrief(e *catalog.Entry, count tokenizer.Counter) Brief {
	name := " " + untrusted.Line(e.Name, 64)
	head := name + " (" + untrusted.Line(string(e.Kind), 32) + ")"
	desc := briefDescription(e.Description)
	rest := briefRest(e)
	if e.Off != "" { // none of the package's own text
		desc, rest = untrusted.Line(e.Off, maxOff), ""
	}

	body := head
	if desc != "" {
		body += ". " + desc
	}
	b := Brief{Text: body, Names: len(head), Compact: len(body), Unavailable: !e.Available, name: len(name)}
	if e.Kind == capability.KindTool && desc+rest != "" {
		b.about = len(head) + len(". ")
	}
	switch {
	case rest == "":
	case strings.ContainsRune(".!?…", lastRune(body)):
		b.Text += " " + rest
	default:
		b.Text += ". " + rest
	}
	mark := ""
	if b.Unavailable {
		mark = notAvailable
		b.Text += unavailable(e.Missing)
	}
	b.CompactTokens, b.Tokens = prices(count, body, mark, b.Text[len(body):])
	number := count(strconv.Itoa(mostNumbers) + ".")
	b.NamesTokens = closed(count, head+mark) + number
	b.CompactTokens += number
	b.Tokens += number
	return b
}

// MayNotFit returns the brief with the mark of a hit that may well not be what
// was asked for.
func (b Brief) MayNotFit(count tokenizer.Counter) Brief {
	mark := ""
	if b.Unavailable {
		mark = notAvailable
	}
	number := count(strconv.Itoa(mostNumbers) + ".")
	b.NamesTokens = closed(count, b.Text[:b.Names]+mark+mayNotFit) + number
	b.CompactTokens = closed(count, b.Text[:b.Compact]+mark+mayNotFit) + number
	b.Text += mayNotFit
	b.Tokens = closed(count, b.Text) + number
	b.doubtful = true
	return b
}

// maxOff is longer than any line that says how to enable a package.
const maxOff = 240

// prices returns the price of body+mark and that of body+rest. Where body ends in
// a word no token crosses its end, so it is counted once.
func prices(count tokenizer.Counter, body, mark, rest string) (short, long int) {
	if !wordEnd(body) {
		short = closed(count, body+mark)
		if rest == mark {
			return short, short
		}
		return short, closed(count, body+rest)
	}
	base := count(body)
	end := func(s string) int {
		if s == "" {
			return lineEnd(count)
		}
		return closed(count, s)
	}
	short = base + end(mark)
	if rest == mark {
		return short, short
	}
	return short, base + end(rest)
}

// briefDescription returns the description without its last full stop, cut to 117
// characters and three dots if it has more than 120.
func briefDescription(s string) string {
	s = untrusted.Line(s, 4*maxBriefDescription)
	if utf8.RuneCountInString(s) <= maxBriefDescription {
		return strings.TrimSuffix(s, ".")
	}
	n, end := 0, 0
	for i, r := range s {
		if n > maxBriefDescription-3 {
			break
		}
		if !unicode.IsMark(r) {
			end = i // a letter keeps the marks on it
		}
		n++
	}
	return strings.TrimRight(s[:end], " ") + "..."
}

// briefRest returns "Params: a, b, c. Requires: x", or what of it there is.
func briefRest(e *catalog.Entry) string {
	var parts []string
	if len(e.Parameters) > 0 {
		names := make([]string, len(e.Parameters))
		for i, p := range e.Parameters {
			names[i] = p.Name
		}
		parts = append(parts, "Params: "+few(names))
	}
	if needs := requirements(e); len(needs) > 0 {
		parts = append(parts, "Requires: "+few(needs))
	}
	return strings.Join(parts, ". ")
}

// requirements are the tools that a capability needs, or else the programs.
func requirements(e *catalog.Entry) []string {
	if len(e.RequiredTools) > 0 {
		return e.RequiredTools
	}
	return e.RequiredBins
}

// few lists the first names, and shows that there are more.
func few(names []string) string {
	var b strings.Builder
	for i, name := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == maxBriefNames {
			b.WriteString("…")
			break
		}
		b.WriteString(untrusted.Line(name, 40))
	}
	return b.String()
}

// unavailable marks what cannot be used here, with the first reason, without
// its advice, if that is short.
func unavailable(missing catalog.Reasons) string {
	if len(missing) == 0 {
		return notAvailable
	}
	reason := missing[0].Cause()
	if utf8.RuneCountInString(reason) > maxBriefReason || strings.TrimSpace(reason) == "" {
		return notAvailable
	}
	return " [not available: " + untrusted.Line(reason, maxBriefReason) + "]"
}

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}

// in returns the brief in a mode, and its price.
func (b *Brief) in(m Mode) (text, mark string, tokens int) {
	switch {
	case m == Compact:
		text, tokens = b.Text[:b.Compact], b.CompactTokens
	case m == Names:
		text, tokens = b.Text[:b.Names], b.NamesTokens
	default:
		return b.Text, "", b.Tokens
	}
	if b.Unavailable {
		mark = notAvailable
	}
	if b.doubtful {
		mark += mayNotFit
	}
	return text, mark, tokens
}
