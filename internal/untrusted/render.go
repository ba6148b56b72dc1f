package untrusted

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// DefaultLine is the cap that [Line] uses when it is given none.
	DefaultLine = 500

	// minCap is the smallest cap: below it there is no room for the mark that
	// says how much was cut.
	minCap = 24

	// maxBlanks and maxBlankLines are how much white space in a row is shown as
	// it stands; more could push text out of sight.
	maxBlanks     = 120
	maxBlankLines = 8
)

// Line renders s on one line of at most limit runes, for a prompt, a log or a
// table. White space runs, line ends included, become one space and none
// remains at the ends. Characters that cannot be seen, and bytes that are not
// UTF-8, are revealed in the package's notation; joiners, selectors and flag
// tags stay where a script or an emoji needs them. Role markers and tokens of
// chat templates get a backslash. A BOM is revealed like everything else.
//
// What does not fit is cut and counted: the line then ends in …⟨+N⟩, where N is
// the number of runes left out. A limit of 0 or less means [DefaultLine]; under
// 24 it means 24.
//
// The result is valid UTF-8 and Line(Line(s, limit), limit) == Line(s, limit).
func Line(s string, limit int) string {
	if limit <= 0 {
		limit = DefaultLine
	}
	limit = max(limit, minCap)
	rest := 0
	if !plainLine(s) {
		s, rest = clean(s, limit)
		s = foldSpace(s)
	}
	// Markers are broken while line ends can still be told from blanks, for
	// many of them count only at the start of a line.
	s = strings.ReplaceAll(neutralise(s), "\n", " ")
	return cut(s, limit, rest)
}

// Terminal renders s for a person's screen. Lines and tabs are kept and CR LF
// becomes LF; no escape sequence, cursor movement, reordering or invisible
// character gets through. It puts no cap on the length, escapes no role markers,
// and is idempotent.
func Terminal(s string) string {
	if plainText(s) {
		return s
	}
	text, _ := clean(s, -1)
	return text
}

// plainLine reports printable ASCII with single spaces between the words.
func plainLine(s string) bool {
	gap := true
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == ' ':
			if gap {
				return false
			}
			gap = true
		case c > ' ' && c < 0x7F:
			gap = false
		default:
			return false
		}
	}
	return !gap || s == ""
}

// plainText reports printable ASCII, tabs and line ends that [clean] would
// leave as they are.
func plainText(s string) bool {
	blanks, ends := 0, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == ' ' || c == '\t':
			if blanks++; blanks > maxBlanks || ends > 1 {
				return false
			}
		case c == '\n':
			if ends++; ends > maxBlankLines || blanks > 0 {
				return false
			}
		case c > ' ' && c < 0x7F:
			blanks, ends = 0, 0
		default:
			return false
		}
	}
	return true
}

// clean reveals what cannot be seen in s. Lines are kept, ended by \n; blanks
// before a line end are dropped. It stops soon after limit runes, not counting
// white space, if limit is not negative; rest is the number of runes of s that
// it did not come to.
func clean(s string, limit int) (text string, rest int) {
	out := make([]byte, 0, len(s)+len(s)/8+16)
	w := walker{s: s}
	n := 0
	for w.i < len(s) && (limit < 0 || n <= limit) {
		if k := spaceLen(s[w.i:]); k > 0 {
			out = appendSpace(out, s[w.i:w.i+k])
			w.i += k
			w.prev, w.nmarks = ' ', 0
			continue
		}
		start := w.i
		if k := asciiLen(s[w.i:]); k > 0 {
			out = append(out, s[start:start+k]...)
			n += k
			w.i += k
			w.prev, w.nmarks = rune(s[w.i-1]), 0
			continue
		}
		r, size, c := w.next()
		n++
		if c == shown {
			out = append(out, s[start:start+size]...)
			continue
		}
		out = appendHidden(out, &w, r, c)
	}
	return string(out), utf8.RuneCountInString(s[w.i:])
}

// asciiLen returns the length of the printable ASCII, without blanks, that s
// begins with.
func asciiLen(s string) int {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7F {
			return i
		}
	}
	return len(s)
}

// spaceLen returns the length of the white space that s begins with. A lone CR
// is none: it moves the cursor back over what was shown.
func spaceLen(s string) int {
	i := 0
	for i < len(s) {
		if strings.HasPrefix(s[i:], "\r\n") {
			i += 2
			continue
		}
		if c := s[i]; c > ' ' && c < utf8.RuneSelf {
			break
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r != '\n' && !lineEnd(r) && !blank(r) {
			break
		}
		i += size
	}
	return i
}

func appendSpace(out []byte, space string) []byte {
	if space == " " {
		return append(out, ' ')
	}
	lines, lineStart, blanks := 0, 0, 0
	for i, r := range space {
		if blank(r) {
			blanks++
			continue
		}
		if r == '\r' {
			continue // half of CR LF
		}
		lines++
		blanks = 0
		lineStart = i + utf8.RuneLen(r)
	}
	switch {
	case lines > maxBlankLines+1:
		out = fmt.Appendf(out, "\n⟨%d blank lines⟩\n", lines-1)
	default:
		for range lines {
			out = append(out, '\n')
		}
	}
	if blanks > maxBlanks {
		return fmt.Appendf(out, "⟨space×%d⟩", blanks)
	}
	return append(out, space[lineStart:]...)
}

// appendHidden reveals the run of hidden characters that began with r.
func appendHidden(out []byte, w *walker, r rune, c class) []byte {
	n, sameRune, sameClass := 1, true, true
	for w.i < len(w.s) && spaceLen(w.s[w.i:]) == 0 {
		ahead := *w
		r2, _, c2 := ahead.next()
		if c2 == shown {
			break
		}
		*w = ahead
		n++
		sameClass = sameClass && c2 == c
		sameRune = sameRune && sameClass && r2 == r
	}
	out = append(out, "⟨"...)
	switch {
	case !sameClass:
		out = append(out, "hidden"...)
	case !sameRune:
		out = append(out, c.String()...)
	case c == invalid:
		out = fmt.Appendf(out, "0x%02X", r)
	default:
		out = fmt.Appendf(out, "U+%04X", r)
	}
	if n > 1 {
		out = append(out, "×"...)
		out = strconv.AppendInt(out, int64(n), 10)
	}
	return append(out, "⟩"...)
}

// foldSpace makes of each run of white space one \n if it ends a line, else one
// space, and removes it at both ends.
func foldSpace(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	gap := byte(0)
	for _, r := range s {
		switch {
		case r == '\n':
			gap = '\n'
		case unicode.IsSpace(r):
			if gap == 0 {
				gap = ' '
			}
		default:
			if gap != 0 && b.Len() > 0 {
				b.WriteByte(gap)
			}
			gap = 0
			b.WriteRune(r)
		}
	}
	return b.String()
}

// cut shortens text to limit runes, the mark included, and adds to the mark's
// number the runes that were never rendered.
func cut(text string, limit, rest int) string {
	if rest == 0 && (len(text) <= limit || utf8.RuneCountInString(text) <= limit) {
		return text
	}
	total := utf8.RuneCountInString(text)
	room := limit - utf8.RuneCountInString(cutMark(total+rest))
	end, kept := cutPoint(text, room)
	return text[:end] + cutMark(total-kept+rest)
}

func cutMark(n int) string { return "…⟨+" + strconv.Itoa(n) + "⟩" }

// cutPoint returns the last place within the first room runes of text where
// nothing that belongs together is parted, in bytes and in runes.
func cutPoint(text string, room int) (end, runes int) {
	w := walker{s: text}
	n, joined := 0, true
	for w.i < len(text) && n <= room {
		r, _ := utf8.DecodeRuneInString(text[w.i:])
		if !joined && !extends(r) {
			end, runes = w.i, n
		}
		start := w.i
		_, size, _ := w.next()
		n += utf8.RuneCountInString(text[start : start+size])
		// A joiner or a direction mark may be there for the rune after it.
		joined = classOf(r) == zeroWidth || classOf(r) == bidi
	}
	if w.i >= len(text) && n <= room {
		end, runes = len(text), n
	}
	return end, runes
}

// extends reports runes that must not be parted from the one before them.
func extends(r rune) bool {
	return unicode.IsMark(r) || classOf(r) != shown
}
