package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"ken/internal/untrusted"
)

const (
	zeroWidthJoiner = 0x200D
	emojiSelector   = 0xFE0F
)

// cluster returns the first character of s as a person sees it, in bytes, and how
// many columns it takes. It knows marks, joined emoji, flags, skin tones and
// Korean letters; of what it does not know each rune is a character.
func cluster(s string) (size, columns int) {
	r, n := utf8.DecodeRuneInString(s)
	if r < utf8.RuneSelf && (len(s) == n || s[n] < utf8.RuneSelf) {
		return n, asciiColumns(r)
	}
	size, columns = n, columnsOf(r)
	flag := regional(r)
	for size < len(s) {
		next, n := utf8.DecodeRuneInString(s[size:])
		switch {
		case flag && regional(next):
			flag, columns = false, 2
		case next == emojiSelector:
			if columns == 1 {
				columns = 2
			}
		case next == zeroWidthJoiner:
			if after, k := utf8.DecodeRuneInString(s[size+n:]); k > 0 && pictograph(r) && pictograph(after) {
				n += k
			}
		case unicode.Is(unicode.Mc, next):
			columns++ // it has a place of its own, and yet cannot be parted
		case in(next, 0x1F3FB, 0x1F3FF) && pictograph(r), in(next, 0xE0020, 0xE007F), in(next, 0x1160, 0x11FF), unicode.Is(unicode.M, next):
		default:
			return size, columns
		}
		size += n
	}
	return size, columns
}

func in(r, first, last rune) bool { return r >= first && r <= last }

func regional(r rune) bool { return in(r, 0x1F1E6, 0x1F1FF) }

// pictograph reports runes that joiners and skin tones belong to.
func pictograph(r rune) bool {
	return in(r, 0x1F300, 0x1FAFF) || in(r, 0x2190, 0x2BFF) || r == 0x3030 || r == 0x303D
}

func asciiColumns(r rune) int {
	if r < ' ' || r == 0x7F {
		return 0
	}
	return 1
}

func columnsOf(r rune) int {
	switch {
	case r < utf8.RuneSelf:
		return asciiColumns(r)
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) || in(r, 0x1160, 0x11FF):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// columns returns the columns that s takes, escapes of our own styles apart.
func columns(s string) int {
	n := 0
	for len(s) > 0 {
		if k := escape(s); k > 0 {
			s = s[k:]
			continue
		}
		size, c := cluster(s)
		n, s = n+c, s[size:]
	}
	return n
}

// escape returns the length of the style that s begins with, or 0.
func escape(s string) int {
	if len(s) < 3 || s[0] != 0x1B || s[1] != '[' {
		return 0
	}
	for i := 2; i < len(s); i++ {
		if s[i] == 'm' {
			return i + 1
		}
		if s[i] != ';' && (s[i] < '0' || s[i] > '9') {
			return 0
		}
	}
	return 0
}

// clip cuts plain or styled text to so many columns, visibly, and ends what
// style is open.
func clip(s string, most int) string {
	if len(s) <= most || columns(s) <= most {
		return s
	}
	if most < 1 {
		return ""
	}
	end, n, styled := 0, 0, false
	for end < len(s) {
		if k := escape(s[end:]); k > 0 {
			styled = s[end:end+k] != reset
			end += k
			continue
		}
		size, c := cluster(s[end:])
		if n+c > most-1 {
			break
		}
		end, n = end+size, n+c
	}
	out := s[:end] + "…"
	if styled {
		out += reset
	}
	return out
}

// tail is clip from the other side: the end is kept.
func tail(s string, most int) string {
	total := columns(s)
	if total <= most {
		return s
	}
	if most < 1 {
		return ""
	}
	for total > most-1 && s != "" {
		size, c := cluster(s)
		s, total = s[size:], total-c
	}
	return "…" + s
}

// A piece is text in one style. Its text is safe to print and has no line end.
type piece struct {
	text  string
	style string
}

// wrapPieces breaks text between words into lines of at most so many columns. A
// word that is longer than a line is broken where it must be. Lines keep no
// blanks at their ends; other than those nothing is lost.
func wrapPieces(pieces []piece, most int) [][]piece {
	w := wrapper{most: max(most, 2)}
	for _, p := range pieces {
		for text := p.text; text != ""; {
			at := strings.IndexByte(text, ' ')
			switch {
			case at == 0:
				n := len(text) - len(strings.TrimLeft(text, " "))
				w.blank(piece{text: text[:n], style: p.style})
				text = text[n:]
			case at < 0:
				w.part(piece{text: text, style: p.style})
				text = ""
			default:
				w.part(piece{text: text[:at], style: p.style})
				text = text[at:]
			}
		}
	}
	w.endWord()
	return append(w.lines, w.line)
}

type wrapper struct {
	most  int
	lines [][]piece
	line  []piece
	used  int
	gap   []piece // blanks before the word
	wide  int     // columns of gap
	word  []piece // in several styles, perhaps
	long  int     // columns of word
}

func (w *wrapper) blank(p piece) {
	w.endWord()
	w.gap = append(w.gap, p)
	w.wide += len(p.text)
}

func (w *wrapper) part(p piece) {
	for p.text != "" {
		// East Asian text has no blanks: it may be broken after any character.
		end, n, wide := 0, 0, false
		for end < len(p.text) && !wide {
			size, c := cluster(p.text[end:])
			end, n, wide = end+size, n+c, c > 1
		}
		w.word = append(w.word, piece{text: p.text[:end], style: p.style})
		w.long += n
		p.text = p.text[end:]
		if next, _ := utf8.DecodeRuneInString(p.text); wide && !strings.ContainsRune(closing, next) {
			w.endWord()
		}
	}
}

// closing are characters that no line begins with.
const closing = ",.;:!?)]}%…’”»、。，．：；！？）］｝」』】〉》ー々"

func (w *wrapper) endWord() {
	if len(w.word) == 0 {
		return
	}
	word := w.word
	if w.used > 0 && w.used+w.wide+w.long > w.most {
		w.newLine()
	} else if w.used+w.wide+w.long <= w.most || w.wide < w.most/2 {
		w.line, w.used = append(w.line, w.gap...), w.used+w.wide
	}
	for _, p := range word {
		w.place(p)
	}
	w.word, w.long, w.gap, w.wide = nil, 0, nil, 0
}

// place puts a piece on the line and breaks it where the line ends.
func (w *wrapper) place(p piece) {
	for p.text != "" {
		end, n := 0, 0
		for end < len(p.text) {
			size, c := cluster(p.text[end:])
			if w.used+n+c > w.most && w.used+n > 0 {
				break
			}
			end, n = end+size, n+c
		}
		if end > 0 {
			w.line, w.used = append(w.line, piece{text: p.text[:end], style: p.style}), w.used+n
		}
		if p.text = p.text[end:]; p.text != "" {
			w.newLine()
		}
	}
}

func (w *wrapper) newLine() {
	w.lines = append(w.lines, w.line)
	w.line, w.used = nil, 0
}

// wrap breaks one safe line of plain text.
func wrap(s string, most int) []string {
	var out []string
	for _, line := range wrapPieces([]piece{{text: s}}, most) {
		out = append(out, paint(line, false))
	}
	return out
}

// paint joins the pieces of a line, styled or plain.
func paint(line []piece, colour bool) string {
	var b strings.Builder
	style := ""
	for _, p := range line {
		if colour && p.style != style {
			if style != "" {
				b.WriteString(reset)
			}
			if p.style != "" {
				b.WriteString("\x1b[" + p.style + "m")
			}
			style = p.style
		}
		b.WriteString(p.text)
	}
	if style != "" {
		b.WriteString(reset)
	}
	return b.String()
}

// Styles of terminal text.
const (
	bold      = "1"
	dim       = "2"
	italic    = "3"
	underline = "4"
	struck    = "9"
	red       = "31"
	green     = "32"
	yellow    = "33"
	cyan      = "36"

	reset = "\x1b[0m"
)

// styled puts a style on text where there is colour.
func styled(colour bool, style, s string) string {
	if !colour || s == "" || style == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + reset
}

// safe makes text from outside fit for a screen: lines and nothing else that a
// terminal would act on. A tab becomes blanks.
func safe(s string) string {
	return strings.ReplaceAll(untrusted.Terminal(s), "\t", "    ")
}

// safeLine makes text from outside fit for one line.
func safeLine(s string) string { return strings.ReplaceAll(safe(s), "\n", " ") }
