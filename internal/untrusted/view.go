package untrusted

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A view is a text made easier to match, with the way back to the original.
type view struct {
	text string
	at   []int32 // for each byte of text its byte in the original; nil: the same
}

// origin returns the place in the original of the byte i of the view.
func (v view) origin(i int) int {
	switch {
	case v.at == nil:
		return i
	case i < len(v.at):
		return int(v.at[i])
	case len(v.at) > 0:
		return int(v.at[len(v.at)-1]) + 1
	}
	return 0
}

// A viewWriter builds a view of another.
type viewWriter struct {
	of   view
	text []byte
	at   []int32
}

func newViewWriter(of view) *viewWriter {
	return &viewWriter{of: of, text: make([]byte, 0, len(of.text)), at: make([]int32, 0, len(of.text))}
}

// rune writes r as coming from byte i of the view below.
func (w *viewWriter) rune(r rune, i int) {
	n := len(w.text)
	w.text = utf8.AppendRune(w.text, r)
	for range len(w.text) - n {
		w.at = append(w.at, int32(w.of.origin(i)))
	}
}

// byte writes c as coming from byte i of the view below.
func (w *viewWriter) byte(c byte, i int) {
	w.text = append(w.text, c)
	w.at = append(w.at, int32(w.of.origin(i)))
}

func (w *viewWriter) view() view { return view{string(w.text), w.at} }

// unescaped undoes percent escapes, character references and the escapes of
// JSON. ok is false if there is none.
func unescaped(v view) (_ view, ok bool) {
	w := newViewWriter(v)
	for i := 0; i < len(v.text); {
		if n := w.unescape(v.text[i:min(i+12, len(v.text))], i); n > 0 {
			i += n
			ok = true
			continue
		}
		w.byte(v.text[i], i)
		i++
	}
	return w.view(), ok
}

// unescape writes what the escape at the start of s stands for and returns the
// escape's length, 0 if there is none.
func (w *viewWriter) unescape(s string, i int) int {
	switch {
	case s[0] == '%':
		if n, ok := hexNumber(s, 1, 2); ok {
			w.byte(byte(n), i)
			return 3
		}
	case s[0] == '&':
		end := strings.IndexByte(s, ';') + 1
		if plain := html.UnescapeString(s[:end]); plain != s[:end] {
			for _, r := range plain {
				w.rune(r, i)
			}
			return end
		}
	case strings.HasPrefix(s, `\u`):
		if n, ok := hexNumber(s, 2, 4); ok {
			w.rune(rune(n), i)
			return 6
		}
	case strings.HasPrefix(s, `\x`):
		if n, ok := hexNumber(s, 2, 2); ok {
			w.byte(byte(n), i)
			return 4
		}
	}
	return 0
}

// hexNumber reads n hexadecimal digits of s from byte i.
func hexNumber(s string, i, n int) (value int, ok bool) {
	if len(s) < i+n {
		return 0, false
	}
	for _, c := range []byte(s[i : i+n]) {
		d := hexDigit(c)
		if d < 0 {
			return 0, false
		}
		value = value<<4 | d
	}
	return value, true
}

func hexDigit(c byte) int {
	switch c = lower(c); {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

// lowered is the view with ASCII letters in lower case.
func lowered(v view) view {
	text := []byte(v.text)
	for i, c := range text {
		text[i] = lower(c)
	}
	return view{string(text), v.at}
}

// normalised is the view in lower case without invisible characters, controls
// and decorative marks, in compatibility form, with plain white space and not
// more than maxGap of it in a row.
func normalised(v view) view {
	const maxGap = 8
	w := newViewWriter(v)
	gap := 0
	for i := 0; i < len(v.text); {
		r, size := utf8.DecodeRuneInString(v.text[i:])
		if gap++; !unicode.IsSpace(r) {
			gap = 0
		}
		switch {
		case r == utf8.RuneError && size == 1 || gap > maxGap:
		case r == '\n' || r == '\r' || lineEnd(r):
			w.rune('\n', i)
		case blank(r):
			w.rune(' ', i)
		case r < utf8.RuneSelf:
			if classOf(r) == shown {
				w.rune(unicode.ToLower(r), i)
			}
		case classOf(r) == shown:
			for _, d := range decompose(v.text[i:], r, size) {
				if !decorative(d) {
					w.rune(unicode.ToLower(d), i)
				}
			}
		}
		i += size
	}
	return w.view()
}

// unmasked is the view in which every word that reads as ASCII with letters of
// other scripts is ASCII. ok is false if there is no such word.
func unmasked(v view) (_ view, ok bool) {
	w := newViewWriter(v)
	for i := 0; i < len(v.text); {
		n := letters(v.text[i:])
		if n == 0 {
			r, size := utf8.DecodeRuneInString(v.text[i:])
			w.rune(r, i)
			i += size
			continue
		}
		word := v.text[i : i+n]
		reads := readsASCII(word)
		ok = ok || reads
		for j, r := range word {
			if reads {
				r = fold(r)
			}
			w.rune(r, i+j)
		}
		i += n
	}
	return w.view(), ok
}

// letters returns the length of the word that s begins with.
func letters(s string) int {
	for i, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsMark(r) {
			return i
		}
	}
	return len(s)
}

// readsASCII reports a word with letters beyond ASCII, each of which looks like
// one of ASCII.
func readsASCII(word string) bool {
	foreign := false
	for _, r := range word {
		if r >= utf8.RuneSelf {
			if fold(r) >= utf8.RuneSelf {
				return false
			}
			foreign = true
		}
	}
	return foreign
}

// joined is the view with the letters of s-p-a-c-e-d words put together. ok is
// false if there is none.
func joined(v view) (_ view, ok bool) {
	w := newViewWriter(v)
	for i := 0; i < len(v.text); {
		n := spacedLetters(v.text, i)
		if n < 4 {
			w.byte(v.text[i], i)
			i++
			continue
		}
		ok = true
		for j := range n {
			w.rune(rune(v.text[i+2*j]), i+2*j)
		}
		i += 2*n - 1
	}
	return w.view(), ok
}

// spacedLetters counts the letters of text[i:] that stand apart by one and the
// same separator: 6 in "i-g-n-o-r-e".
func spacedLetters(text string, i int) int {
	if !alnum(text[i]) || i > 0 && alnum(text[i-1]) || i+1 >= len(text) {
		return 0
	}
	sep := text[i+1]
	if alnum(sep) || sep >= utf8.RuneSelf || sep == '\n' {
		return 0
	}
	n := 1
	for i+2 < len(text) && text[i+1] == sep && alnum(text[i+2]) && (i+3 >= len(text) || !alnum(text[i+3])) {
		n++
		i += 2
	}
	return n
}

func alnum(c byte) bool { return byteKinds[c]&isAlnum != 0 }

// byteKinds says of a byte in one look what the loops over all text ask.
var byteKinds = func() (kinds [256]uint8) {
	for c := range kinds {
		b := lower(byte(c))
		if '0' <= b && b <= '9' || 'a' <= b && b <= 'z' {
			kinds[c] |= isAlnum | isCode
		}
		if strings.IndexByte("+/-_=", b) >= 0 {
			kinds[c] |= isCode
		}
	}
	return kinds
}()

const (
	isAlnum = 1 << iota // ASCII letters and digits
	isCode              // bytes of base64, base64url and hex
)

// unleet is the view in which the digits and signs of w0rd5 are letters, in the
// words around keywords for ignoring. ok is false if there is none: such
// keywords are rare, and digits are not.
func unleet(v view, g *gist) (_ view, ok bool) {
	var text []byte
	for _, span := range g.spans(v.text, tIgnore|tNewOrder|tNotObey, 100) {
		for i := span[0]; i < span[1]; {
			n, leet := leetWord(v.text[i:span[1]])
			if leet && text == nil {
				text = []byte(v.text)
			}
			for k := i; leet && k < i+n; k++ {
				if c := leetLetter(text[k]); c != 0 {
					text[k] = c
				}
			}
			i += max(n, 1)
		}
	}
	return view{string(text), v.at}, text != nil
}

// leetWord returns the length of the word that s begins with, and whether it
// mixes letters with what may stand for letters.
func leetWord(s string) (n int, leet bool) {
	letter, sign := false, false
	for n < len(s) && (alnum(s[n]) || s[n] == '@' || s[n] == '$') {
		if leetLetter(s[n]) != 0 {
			sign = true
		} else {
			letter = true
		}
		n++
	}
	return n, letter && sign && n >= 3
}

func leetLetter(c byte) byte {
	if i := strings.IndexByte("013457@$", c); i >= 0 {
		return "oieastas"[i]
	}
	return 0
}

// rot13 is the view with each ASCII letter moved by half the alphabet.
func rot13(v view) view {
	return view{strings.Map(func(r rune) rune {
		if in(r, 'a', 'z') {
			return 'a' + (r-'a'+13)%26
		}
		return r
	}, v.text), v.at}
}

// reversed is the view read backwards.
func reversed(v view) view {
	w := newViewWriter(v)
	for i := len(v.text); i > 0; {
		r, size := utf8.DecodeLastRuneInString(v.text[:i])
		i -= size
		w.rune(r, i)
	}
	return w.view()
}
