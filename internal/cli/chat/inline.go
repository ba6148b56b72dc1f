package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostNested is how deep emphasis may stand within emphasis.
const mostNested = 6

// inline reads the markup within a block.
func inline(text, style string) []piece {
	p := inliner{}
	p.read(text, style, 0)
	return p.out
}

type inliner struct {
	out []piece
}

// read appends text in a style. What has no end is no markup; lack notes that
// none of a kind is left, so that each kind is looked for in vain but once.
func (p *inliner) read(text, style string, depth int) {
	lack := map[string]bool{}
	begin := 0
	emit := func(end int) {
		if end > begin {
			p.out = append(p.out, piece{text: text[begin:end], style: style})
		}
	}
	for i := 0; i < len(text); {
		size, skip := 1, 0
		switch c := text[i]; c {
		case '\\':
			if i+1 < len(text) && strings.IndexByte("\\`*_{}[]()#+-.!~|<>", text[i+1]) >= 0 {
				emit(i)
				begin = i + 1
				size = 2
			}
		case '`':
			n := run(text[i:], '`')
			size = n
			if end := codeEnd(text, i, n, lack); end > 0 {
				emit(i)
				p.out = append(p.out, piece{text: trimCode(text[i+n : end]), style: join(style, cyan)})
				skip = end + n
			}
		case '*', '_', '~':
			n := run(text[i:], c)
			size = n
			if end, k, with := emphasis(text, i, n, lack); end > 0 && depth < mostNested {
				emit(i)
				p.read(text[i+k:end], join(style, with), depth+1)
				skip = end + k
			}
		case '[':
			if label, address, n := link(text[i:], lack); n > 0 && depth < mostNested {
				emit(i)
				p.link(label, address, style, depth)
				skip = i + n
			}
		case '<':
			if n := strings.IndexAny(text[i:], "> "); n > 1 && text[i+n] == '>' && strings.Contains(text[i:i+n], "://") {
				emit(i)
				p.out = append(p.out, piece{text: text[i+1 : i+n], style: join(style, underline)})
				skip = i + n + 1
			}
		}
		if skip > 0 {
			i, begin = skip, skip
			continue
		}
		i += size
	}
	emit(len(text))
}

// link appends the words of a link and, where it is another text, its address:
// a person sees where it leads.
func (p *inliner) link(label, address, style string, depth int) {
	p.read(label, join(style, underline), depth+1)
	if address != "" && address != label {
		p.out = append(p.out, piece{text: " (" + address + ")", style: join(style, dim)})
	}
}

func join(style, more string) string {
	if style == "" {
		return more
	}
	return style + ";" + more
}

func trimCode(s string) string {
	if len(s) > 2 && s[0] == ' ' && s[len(s)-1] == ' ' && strings.TrimSpace(s) != "" {
		return s[1 : len(s)-1]
	}
	return s
}

// codeEnd finds the n backticks that close those at i.
func codeEnd(text string, i, n int, lack map[string]bool) int {
	kind := text[i : i+n]
	if n > 8 || lack[kind] {
		return 0
	}
	for at := i + n; at < len(text); {
		next := strings.IndexByte(text[at:], '`')
		if next < 0 {
			break
		}
		at += next
		k := run(text[at:], '`')
		if k == n {
			return at
		}
		at += k
	}
	lack[kind] = true
	return 0
}

// emphasis finds where the n marks at i end, how many of them count, and what
// they mean.
func emphasis(text string, i, n int, lack map[string]bool) (end, size int, style string) {
	c := text[i]
	switch {
	case c == '~' && n != 2, n > 3:
		return 0, 0, ""
	case n == 3:
		style = bold + ";" + italic
	case n == 2 && c == '~':
		style = struck
	case n == 2:
		style = bold
	default:
		style = italic
	}
	after, _ := utf8.DecodeRuneInString(text[i+n:])
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	if i+n == len(text) || unicode.IsSpace(after) || c == '_' && wordly(before) {
		return 0, 0, ""
	}
	kind := text[i : i+n]
	if lack[kind] {
		return 0, 0, ""
	}
	for at := i + n; at < len(text); {
		next := strings.IndexAny(text[at:], "`\\"+string(c))
		if next < 0 {
			break
		}
		at += next
		switch k := run(text[at:], text[at]); {
		case text[at] == '\\':
			at += 2
		case text[at] == '`':
			if end := codeEnd(text, at, k, lack); end > 0 {
				at = end
			}
			at += k
		case k == n && closes(text, at, k):
			return at, n, style
		default:
			at += k
		}
	}
	lack[kind] = true
	return 0, 0, ""
}

// closes reports whether marks at a place can end what they mark.
func closes(text string, at, n int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	if unicode.IsSpace(before) {
		return false
	}
	after, _ := utf8.DecodeRuneInString(text[at+n:])
	return text[at] != '_' || at+n == len(text) || !wordly(after)
}

func wordly(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// link reads [label](address) at the start of s, in n bytes.
func link(s string, lack map[string]bool) (label, address string, n int) {
	if lack["]("] {
		return "", "", 0
	}
	middle := strings.Index(s, "](")
	if middle < 0 {
		lack["]("] = true
		return "", "", 0
	}
	if strings.IndexByte(s[1:middle], '[') >= 0 { // it belongs to a later one
		return "", "", 0
	}
	end := strings.IndexAny(s[middle:], ") ")
	if end < 0 || s[middle+end] != ')' {
		return "", "", 0
	}
	return s[1:middle], s[middle+2 : middle+end], middle + end + 1
}
