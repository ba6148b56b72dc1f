package untrusted

import (
	"unicode"
	"unicode/utf8"
)

// A class says why a character may not be shown as it stands.
type class uint8

const (
	shown        class = iota // may be shown
	control                   // C0, DEL, C1: moves cursors, starts escape sequences
	bidi                      // reorders what is seen
	zeroWidth                 // takes no room, or looks like a space and is none
	tag                       // plane 14 copies of ASCII
	selector                  // variation selectors
	private                   // private use: no agreed meaning
	noncharacter              // noncharacters and reserved ignorable code points
	marks                     // combining marks past maxMarks on one base
	invalid                   // bytes that are not UTF-8
)

var classNames = [...]string{
	"shown", "control", "bidi", "zero-width", "tag", "selector", "private", "noncharacter", "marks", "invalid",
}

func (c class) String() string { return classNames[c] }

const (
	zwnj = '\u200C'
	zwj  = '\u200D'
	vs15 = '\uFE0E'
	vs16 = '\uFE0F'

	blackFlag = '\U0001F3F4'
	tagCancel = '\U000E007F'

	// maxMarks is how many combining marks one base may carry. Vietnamese
	// needs 2, pointed Hebrew 4, Tibetan stacks 5.
	maxMarks = 8
)

// classOf classes r by itself, without its neighbours. White space, line ends
// included, is shown: the renderers treat it on their own.
func classOf(r rune) class {
	if r < utf8.RuneSelf {
		if r >= ' ' && r != 0x7F || r == '\n' || r == '\t' {
			return shown
		}
		return control
	}
	switch {
	case r < 0xA0:
		return control
	case r == 0x061C, r == 0x200E, r == 0x200F, in(r, 0x202A, 0x202E), in(r, 0x2066, 0x2069):
		return bidi
	case in(r, 0xFE00, 0xFE0F), in(r, 0xE0100, 0xE01EF), in(r, 0x180B, 0x180D), r == 0x180F:
		return selector
	case r == 0xE0001, in(r, 0xE0020, 0xE007F):
		return tag
	case in(r, 0xE0000, 0xE0FFF), in(r, 0xFDD0, 0xFDEF), in(r, 0xFFF0, 0xFFF8), r == 0x2065, r&0xFFFE == 0xFFFE:
		return noncharacter
	case invisible(r):
		return zeroWidth
	case in(r, 0xE000, 0xF8FF), r >= 0xF0000:
		return private
	}
	return shown
}

// invisible reports characters that draw nothing. Of the format characters
// only the signs that enclose digits in Arabic, Syriac and Kaithi draw.
func invisible(r rune) bool {
	switch r {
	case 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0:
		return true
	case 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD:
		return false
	}
	if in(r, 0x0600, 0x0605) {
		return false
	}
	return unicode.Is(unicode.Cf, r)
}

func in(r, lo, hi rune) bool { return lo <= r && r <= hi }

// lineEnd reports characters that end a line for some program or other,
// besides \n and \r.
func lineEnd(r rune) bool {
	return r == 0x0B || r == 0x0C || r == 0x85 || r == 0x2028 || r == 0x2029
}

// blank reports white space within a line.
func blank(r rune) bool {
	return r == ' ' || r == '\t' || r >= utf8.RuneSelf && unicode.Is(unicode.Zs, r)
}

// A walker goes through a text and tells what may be shown as it stands. The
// zero value with s set starts at the beginning.
type walker struct {
	s      string
	i      int  // next byte
	prev   rune // the rune before i, 0 if it was not shown or there is none
	nmarks int  // combining marks since the last base
}

// next returns the next unit and its class. A unit is one rune, one invalid
// byte, or a whole flag sequence. At the end size is 0.
func (w *walker) next() (r rune, size int, c class) {
	if w.i >= len(w.s) {
		return 0, 0, shown
	}
	r, size = utf8.DecodeRuneInString(w.s[w.i:])
	if r == utf8.RuneError && size == 1 {
		r, c = rune(w.s[w.i]), invalid
	} else {
		c = classOf(r)
	}
	switch {
	case r == blackFlag:
		size += flagTags(w.s[w.i+size:])
	case c == shown && r >= 0x0300 && unicode.In(r, unicode.Mn, unicode.Me):
		if w.nmarks++; w.nmarks > maxMarks {
			c = marks
		}
	case c != shown && c != invalid:
		after, _ := utf8.DecodeRuneInString(w.s[w.i+size:])
		if belongs(r, w.prev, after) {
			c = shown
		}
	}
	w.advance(r, size, c)
	return r, size, c
}

func (w *walker) advance(r rune, size int, c class) {
	w.i += size
	w.prev = r
	if c != shown {
		w.prev = 0
	}
	// Joiners and selectors continue the cluster, so that they cannot be used
	// to start the count of marks afresh.
	if c == shown && classOf(r) == shown && !unicode.In(r, unicode.Mn, unicode.Me) {
		w.nmarks = 0
	}
}

// flagTags returns the length of the tag characters that make, after a black
// flag, the flag of a region such as gbsct: a country, a subdivision, an end.
func flagTags(s string) int {
	n := 0
	for i, r := range s {
		switch {
		case r == tagCancel && n >= 3:
			return i + utf8.RuneLen(r)
		case n < 2 && in(r, 0xE0061, 0xE007A), n >= 2 && n < 6 && (in(r, 0xE0061, 0xE007A) || in(r, 0xE0030, 0xE0039)):
			n++
		default:
			return 0
		}
	}
	return 0
}

// belongs reports whether r, which draws nothing by itself, has its proper use
// between the shown rune prev and the rune after.
func belongs(r, prev, after rune) bool {
	switch {
	case prev == 0:
		return false
	case r == zwj && pictographOrPart(prev) && pictograph(after):
		return true
	case r == zwj || r == zwnj:
		return joining(prev) && (joining(after) || unicode.Is(unicode.Mn, prev))
	case r == vs15 || r == vs16:
		return pictograph(prev) || after == 0x20E3 && (in(prev, '0', '9') || prev == '#' || prev == '*')
	case in(r, 0xFE00, 0xFE0D):
		return in(prev, 0x2200, 0x2BFF) || unicode.In(prev, unicode.Han, unicode.Myanmar, unicode.Phags_Pa)
	case in(r, 0xE0100, 0xE01EF):
		return unicode.Is(unicode.Han, prev)
	case in(r, 0x180B, 0x180F):
		return unicode.In(prev, unicode.Mongolian) && classOf(prev) == shown
	case r == 0x17B4 || r == 0x17B5:
		return unicode.Is(unicode.Khmer, prev) && classOf(prev) == shown
	case r == 0x1160:
		return in(prev, 0x1100, 0x115E)
	case r == 0x200E || r == 0x200F || r == 0x061C:
		return rightToLeft(prev) || rightToLeft(after) && !unicode.IsSpace(prev)
	}
	return false
}

// pictograph approximates the property Extended_Pictographic.
func pictograph(r rune) bool {
	switch {
	case r < 0xA9:
		return false
	case r == 0xA9, r == 0xAE, r == 0x203C, r == 0x2049, r == 0x2122, r == 0x2139,
		r == 0x3030, r == 0x303D, r == 0x3297, r == 0x3299:
		return true
	}
	return in(r, 0x2190, 0x21FF) || in(r, 0x2300, 0x23FF) || in(r, 0x2460, 0x24FF) ||
		in(r, 0x25A0, 0x27BF) || in(r, 0x2900, 0x297F) || in(r, 0x2B00, 0x2BFF) ||
		in(r, 0x1F000, 0x1FAFF)
}

// pictographOrPart also takes what may stand between a pictograph and a joiner.
func pictographOrPart(r rune) bool {
	return pictograph(r) || r == vs16
}

// joining reports letters and marks of the scripts whose spelling uses the
// joiner and the non-joiner.
func joining(r rune) bool {
	if r < 0x0600 || classOf(r) != shown {
		return false
	}
	return unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Nko, unicode.Mandaic, unicode.Mongolian,
		unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya,
		unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala,
		unicode.Tibetan, unicode.Myanmar, unicode.Khmer, unicode.Balinese, unicode.Javanese,
		unicode.Hanifi_Rohingya, unicode.Adlam) && (unicode.IsLetter(r) || unicode.IsMark(r))
}

// rightToLeft reports letters of the scripts written from right to left.
func rightToLeft(r rune) bool {
	return r >= 0x0590 && unicode.IsLetter(r) &&
		unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Adlam)
}
