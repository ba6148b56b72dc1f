package untrusted

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// How much of what cannot be seen is an accident, and how much is a message.
const (
	hardRun  = 8 // in a row of one class: a payload
	hardTags = 4
	// Blanks and line ends in a row that put the rest out of sight.
	farRight = 150
	farBelow = 40
)

// softCounts is how many of a class a text may not have. Real texts have a
// stray BOM, zero-width space or selector. Private use and invalid bytes hide
// nothing: they are seen.
var softCounts = [...]int{control: 1, bidi: 1, zeroWidth: 3, tag: 1, selector: 4, noncharacter: 1, marks: 1}

// characters reports characters that hide something. Where a script or an emoji
// needs them they are no finding. It also reports whether the text has
// characters that could stand for others: letters, marks, digits, blanks beyond
// ASCII, and whatever is hidden. Dashes, arrows and emoji do not.
func (s *scanner) characters() (disguise bool) {
	var count [invalid + 1]int
	var first [invalid + 1]int
	w := walker{s: s.text}
	for w.i < len(s.text) {
		start := w.i
		if c := s.text[start]; c < utf8.RuneSelf && c >= ' ' && c != 0x7F {
			w.i++
			w.prev, w.nmarks = rune(c), 0
			continue
		}
		r, size, c := w.next()
		if c == shown || lineEnd(r) || r == '\r' {
			disguise = disguise || r >= utf8.RuneSelf && !sign(r)
			continue
		}
		disguise = true
		run := s.run(&w, start, size, c)
		if run.n >= hardRun && payloadClass(c) {
			s.add(hit{"hidden-payload", Hard, start, w.i, fmt.Sprintf("%d hidden characters%s", run.n, run.message())})
			continue
		}
		if c == zeroWidth && s.typographic(r, start, size) {
			continue
		}
		if c == bidi && (r == 0x202D || r == 0x202E) {
			s.add(hit{rule: "bidi-override", severity: Hard, from: start, to: start + size})
		}
		if c == control && (r == 0x1B || r == 0x9B || r == 0x9D || r == 0x90) {
			s.escape(start)
			continue
		}
		if count[c] == 0 {
			first[c] = start
		}
		count[c] += run.n
	}
	for c, least := range softCounts {
		if least > 0 && count[c] >= least {
			s.add(hit{rule: "hidden-" + class(c).String(), severity: Soft, from: first[c], to: first[c] + 1})
		}
	}
	if count[tag] >= hardTags {
		s.add(hit{"hidden-payload", Hard, first[tag], first[tag] + 1, fmt.Sprintf("%d tag characters", count[tag])})
	}
	return disguise
}

// payloadClass reports classes that hide, and of which a run can carry text.
func payloadClass(c class) bool {
	return c == bidi || c == zeroWidth || c == tag || c == selector || c == noncharacter
}

// sign reports the punctuation and pictures of ordinary texts.
func sign(r rune) bool {
	return in(r, 0x2010, 0x2027) || in(r, 0x2030, 0x205E) || in(r, 0x2190, 0x245F) || in(r, 0x2500, 0x2BFF) ||
		in(r, 0x1F300, 0x1FAFF) || r == vs16 || r == 0xA7 || r == 0xB0 || r == 0xB1 || r == 0xB7 || r == 0xD7
}

// A hiddenRun is a run of hidden characters of one class.
type hiddenRun struct {
	class class
	n     int
	text  string
}

// run extends the hidden character at start by those of its class that follow.
func (s *scanner) run(w *walker, start, size int, c class) hiddenRun {
	n := 1
	for {
		ahead := *w
		r, k, c2 := ahead.next()
		if k == 0 || c2 != c || lineEnd(r) {
			break
		}
		*w = ahead
		n++
	}
	return hiddenRun{c, n, s.text[start:max(w.i, start+size)]}
}

// message returns what the run spells, for tags, selectors and pairs of
// zero-width characters used as bits, or nothing.
func (h hiddenRun) message() string {
	var out []byte
	switch h.class {
	case tag:
		for _, r := range h.text {
			if in(r, 0xE0020, 0xE007E) {
				out = append(out, byte(r-0xE0000))
			}
		}
	case selector:
		for _, r := range h.text {
			if in(r, 0xFE00, 0xFE0F) {
				out = append(out, byte(r-0xFE00))
			} else if in(r, 0xE0100, 0xE01EF) {
				out = append(out, byte(r-0xE0100+16))
			}
		}
	case zeroWidth:
		out = bitsOf(h.text)
	}
	if len(out) < 3 || !printable(out) {
		return ""
	}
	return " that spell: " + string(out)
}

// bitsOf reads two different characters as 0 and 1, the first of the text as 0.
func bitsOf(text string) []byte {
	zero, _ := utf8.DecodeRuneInString(text)
	var out []byte
	b, n := byte(0), 0
	for _, r := range text {
		b <<= 1
		if r != zero {
			b |= 1
		}
		if n++; n == 8 {
			out = append(out, b)
			b, n = 0, 0
		}
	}
	return out
}

// typographic reports a soft hyphen or another break opportunity between
// letters that stand in groups, as in co-operate, and a BOM at the start.
func (s *scanner) typographic(r rune, start, size int) bool {
	if r == 0xFEFF && start == 0 {
		return true
	}
	if r != 0x00AD && r != 0x200B {
		return false
	}
	before, after := s.text[:start], s.text[start+size:]
	for range 2 {
		a, na := utf8.DecodeLastRuneInString(before)
		b, nb := utf8.DecodeRuneInString(after)
		if classOf(a) != shown || classOf(b) != shown || na == 0 || nb == 0 {
			return false
		}
		before, after = before[:len(before)-na], after[nb:]
	}
	return true
}

// escape reports a terminal escape sequence: colour is a slip, more an attack.
func (s *scanner) escape(start int) {
	rest := s.text[start:min(len(s.text), start+24)]
	sev := Hard
	if colour := strings.TrimLeft(strings.TrimPrefix(rest, "\x1b["), "0123456789;"); len(colour) < len(rest)-1 &&
		strings.HasPrefix(colour, "m") && !strings.HasPrefix(rest, "\x1b[8m") {
		sev = Soft
	}
	s.add(hit{rule: "terminal-escape", severity: sev, from: start, to: start + 1})
}

// farText returns where text goes on after a long run of white space, or -1, and
// whether one run is so long that it puts the rest out of sight. A run of
// farBelow bytes covers one of the places looked at.
func farText(text string) (at int, far bool) {
	at = -1
	for i := farBelow - 1; i < len(text); i += farBelow {
		if !isBlank(text[i]) {
			continue
		}
		lo, hi := i, i
		for lo > 0 && isBlank(text[lo-1]) {
			lo--
		}
		for hi < len(text) && isBlank(text[hi]) {
			hi++
		}
		if hi == len(text) {
			break
		}
		run := text[lo:hi]
		if len(run) >= farBelow && at < 0 {
			at = hi
		}
		if strings.Count(run, "\n") >= farBelow || len(run)-strings.LastIndexByte(run, '\n') > farRight {
			return hi, true
		}
		i = hi
	}
	return at, false
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

var (
	commentReader = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:you|assistants?|ai|llms?|agents?|models?|claude|gpt|system prompt)\b`)
	})
	commentOrder = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:must|always|never|ignore|send|execute|obey|do not|don't|secretly|curl|wget|follow these)\b`)
	})
)

// commentOrders reports comments, which a reader of the page does not see, that
// address a model and give it orders.
func (s *scanner) commentOrders() {
	if s.page == nil {
		s.page = newPage(s.text)
	}
	for _, c := range s.page.comments {
		body := s.text[c[0]:min(c[1], c[0]+2000)]
		if !within(s.page.fences, c[0]) && commentReader().MatchString(body) && commentOrder().MatchString(body) {
			s.add(hit{rule: "hidden-comment", severity: Soft, from: c[0], to: c[1]})
		}
	}
}

// hasSpaced reports a word whose letters stand apart, of five letters or more: it
// covers one of the places looked at.
func hasSpaced(text string) bool {
	for i := 4; i+4 < len(text); i += 8 {
		for _, k := range [2]int{i, i + 1} {
			if alnum(text[k]) && !alnum(text[k-1]) && text[k-1] == text[k+1] && alnum(text[k-2]) && alnum(text[k+2]) &&
				(text[k+3] == text[k+1] || text[k-3] == text[k-1]) && text[k-1] < utf8.RuneSelf {
				return true
			}
		}
	}
	return false
}
