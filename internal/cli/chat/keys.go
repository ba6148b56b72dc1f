package chat

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// A key is one that was pressed, or a text that was pasted.
type key struct {
	name string // "enter", "up", "ctrl-c", "alt-b", "paste"; "" for text
	text string // of text and of paste
	lost int    // bytes of a paste that were left out
}

// A decoder makes keys of what a terminal sends. A sequence may come in parts.
type decoder struct {
	buf     []byte
	pasting bool
	paste   strings.Builder
	lost    int // bytes of the paste that are too many
}

const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
	mostPaste  = 16 << 20 // bytes; what is more is left out, and said so
)

// feed adds bytes and returns the keys that are complete.
func (d *decoder) feed(b []byte) []key {
	d.buf = append(d.buf, b...)
	var keys []key
	for len(d.buf) > 0 {
		if d.pasting {
			if !d.pasted(&keys) {
				return keys
			}
			continue
		}
		k, n := d.one()
		if n == 0 {
			break
		}
		d.buf = d.buf[n:]
		switch {
		case k.name == "paste":
			d.pasting = true
		case k.name == "" && len(keys) > 0 && keys[len(keys)-1].name == "":
			keys[len(keys)-1].text += k.text
		case k.name != "" || k.text != "":
			keys = append(keys, k)
		}
	}
	return keys
}

// waiting reports that a sequence may have begun.
func (d *decoder) waiting() bool { return len(d.buf) > 0 && !d.pasting }

// flush takes what is there for what it is: an escape alone is the key.
func (d *decoder) flush() []key {
	if !d.waiting() {
		return nil
	}
	b := d.buf
	d.buf = nil
	if b[0] == 0x1B {
		rest := d.feed(b[1:])
		d.buf = nil // of a sequence that never ended
		return append([]key{{name: "escape"}}, rest...)
	}
	return nil // a part of a character
}

// pasted looks for the end of a paste and reports whether it came.
func (d *decoder) pasted(keys *[]key) bool {
	s := string(d.buf)
	at := strings.Index(s, pasteEnd)
	keep := at
	if at < 0 { // the end may have come in part
		keep = max(len(s)-len(pasteEnd)+1, 0)
	}
	room := min(keep, max(mostPaste-d.paste.Len(), 0))
	d.paste.WriteString(s[:room])
	d.lost += keep - room
	if at < 0 {
		d.buf = append(d.buf[:0], s[keep:]...)
		return false
	}
	d.buf = d.buf[at+len(pasteEnd):]
	*keys = append(*keys, key{name: "paste", text: d.paste.String(), lost: d.lost})
	d.paste.Reset()
	d.pasting, d.lost = false, 0
	return true
}

// one reads a key from the start of the buffer, in n bytes; n is 0 where it is
// not all there.
func (d *decoder) one() (k key, n int) {
	c := d.buf[0]
	switch {
	case c == 0x1B:
		return d.escape()
	case c < ' ' || c == 0x7F:
		return key{name: control(c)}, 1
	case !utf8.FullRune(d.buf):
		return key{}, 0
	}
	r, n := utf8.DecodeRune(d.buf)
	if r == utf8.RuneError && n == 1 {
		return key{}, 1 // not a character
	}
	return key{text: string(r)}, n
}

func control(c byte) string {
	switch c {
	case '\r':
		return "enter"
	case '\n':
		return "newline" // Ctrl-J, and Shift-Enter of some
	case '\t':
		return "tab"
	case 0x7F, 0x08:
		return "backspace"
	}
	return "ctrl-" + string(rune(c|0x60))
}

// escape reads what begins with one.
func (d *decoder) escape() (key, int) {
	b := d.buf
	if len(b) == 1 {
		return key{}, 0
	}
	switch {
	case b[1] == '[':
		return d.csi()
	case b[1] == 'O':
		if len(b) < 3 {
			return key{}, 0
		}
		return key{name: final(b[2], nil)}, 3
	case b[1] == 0x1B:
		return key{name: "escape"}, 1
	case b[1] == '\r' || b[1] == '\n':
		return key{name: "newline"}, 2
	case b[1] == 0x7F || b[1] == 0x08:
		return key{name: "alt-backspace"}, 2
	case b[1] > ' ' && b[1] < 0x7F:
		return key{name: "alt-" + strings.ToLower(string(rune(b[1])))}, 2
	}
	return key{name: "escape"}, 1
}

// csi reads a control sequence.
func (d *decoder) csi() (key, int) {
	const longest = 32
	b := d.buf
	for i := 2; i < len(b); i++ {
		if c := b[i]; c >= 0x40 && c <= 0x7E {
			if string(b[:i+1]) == pasteBegin {
				return key{name: "paste"}, i + 1
			}
			return key{name: final(c, strings.Split(string(b[2:i]), ";"))}, i + 1
		}
		if i > longest || b[i] < ' ' {
			return key{}, i // nothing that we know
		}
	}
	return key{}, 0
}

// final names the key of a sequence by its last byte and its numbers; "" for
// one that means nothing here.
func final(c byte, numbers []string) string {
	number := func(i int) int {
		if i >= len(numbers) {
			return 0
		}
		n, _ := strconv.Atoi(numbers[i])
		return n
	}
	name := ""
	switch c {
	case 'A':
		name = "up"
	case 'B':
		name = "down"
	case 'C':
		name = "right"
	case 'D':
		name = "left"
	case 'H':
		name = "home"
	case 'F':
		name = "end"
	case 'Z':
		return "shift-tab"
	case 'M':
		if numbers == nil {
			name = "enter" // of the keypad
		}
	case 'u':
		return reported(number(0), number(1))
	case '~':
		if number(0) == 27 { // with a modifier
			return reported(number(2), number(1))
		}
		name = map[int]string{1: "home", 7: "home", 3: "delete", 4: "end", 8: "end"}[number(0)]
	}
	if m := number(1); name != "" && m > 1 && (m-1)&(4|2) != 0 { // Ctrl or Alt
		return "ctrl-" + name
	}
	return name
}

// reported names a key that a terminal reports by its code and modifiers.
func reported(code, modifiers int) string {
	switch {
	case code == 13 && modifiers > 1:
		return "newline"
	case code == 13:
		return "enter"
	case code == 27:
		return "escape"
	case code == 9 && modifiers == 2:
		return "shift-tab"
	case modifiers == 5 && code >= 'a' && code <= 'z':
		return "ctrl-" + string(rune(code))
	}
	return ""
}
