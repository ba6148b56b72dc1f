package chat

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"ken/internal/testkit"
)

// pressed names keys: text in quotes, the others as they are.
func pressed(keys []key) string {
	var out []string
	for _, k := range keys {
		switch k.name {
		case "":
			out = append(out, fmt.Sprintf("%q", k.text))
		case "paste":
			out = append(out, fmt.Sprintf("paste %q", k.text))
		default:
			out = append(out, k.name)
		}
	}
	return strings.Join(out, " ")
}

func TestKeys(t *testing.T) {
	tests := []struct{ in, want string }{
		{"héllo 世", `"héllo 世"`},
		{"\r\n\t\x7f\x08\x01\x1a", "enter newline tab backspace backspace ctrl-a ctrl-z"},
		{"\x1b[A\x1b[B\x1bOC\x1b[D\x1b[H\x1b[F\x1b[1~\x1b[4~\x1b[3~", "up down right left home end home end delete"},
		{"\x1b[1;5C\x1b[1;3D\x1b[1;5H\x1b[1;2A", "ctrl-right ctrl-left ctrl-home up"},
		{"\x1bb\x1bF\x1b\r\x1b\x7f\x1b<", "alt-b alt-f newline alt-backspace alt-<"},
		{"\x1b[Z\x1b[13;2u\x1b[13u\x1b[27;5;13~\x1b[99;5u\x1b[27u", "shift-tab newline enter newline ctrl-c escape"},
		{"\x1b[200~a\x1b[Ab\r\x1b[201~c", `paste "a\x1b[Ab\r" "c"`},
		{"\x1b[5~a\x1b[?1;2cb\x1b[M\x1bOM", `"ab" enter`}, // what means nothing is no text
		{"\xffa", `"a"`},
	}
	for _, tt := range tests {
		for n := 1; n <= len(tt.in); n++ {
			var d decoder
			var keys []key
			for s := tt.in; s != ""; {
				part := s[:min(n, len(s))]
				for _, k := range d.feed([]byte(part)) {
					if last := len(keys) - 1; k.name == "" && last >= 0 && keys[last].name == "" {
						keys[last].text += k.text
						continue
					}
					keys = append(keys, k)
				}
				s = s[len(part):]
			}
			if got := strings.ReplaceAll(pressed(keys), "  ", " "); got != tt.want || d.waiting() {
				t.Errorf("%q in parts of %d = %s, want %s", tt.in, n, got, tt.want)
			}
		}
	}
}

func TestKeysEscape(t *testing.T) {
	for in, want := range map[string]string{"\x1b": "escape", "\x1b\x1b": "escape escape", "\x1b[": `escape "["`, "\xe4\xb8": "", "\x1b[20": `escape "[20"`} {
		var d decoder
		keys := d.feed([]byte(in))
		if !d.waiting() {
			t.Errorf("%q: nothing waits", in)
		}
		if got := pressed(append(keys, d.flush()...)); got != want || d.waiting() {
			t.Errorf("%q = %s, want %s", in, got, want)
		}
	}
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("a\x1b[A\x1b[200~x\x1b[201~\r"), 3)
	f.Add([]byte("\x1b[1;5;;;99999999999999999999~\x1bO"), 1)
	f.Fuzz(func(t *testing.T, in []byte, n int) {
		n = 1 + abs(n)%16
		var d decoder
		var c chat
		for len(in) > 0 {
			part := in[:min(n, len(in))]
			for _, k := range d.feed(part) {
				if k.name == "" && strings.ContainsFunc(k.text, func(r rune) bool { return r < ' ' || r == 0x7F }) {
					t.Fatalf("%q is text", k.text)
				}
				c.editor.key(k)
			}
			in = in[len(part):]
		}
		for _, k := range d.flush() {
			c.editor.key(k)
		}
		lines, row, _ := c.editor.layout("❯ ", 20, 5)
		if row >= len(lines) {
			t.Fatalf("the cursor is in line %d of %d", row, len(lines))
		}
	})
}

// TestLargePaste: of a paste that is too long the end is left out, and counted.
func TestLargePaste(t *testing.T) {
	testkit.CI(t, "pastes megabytes")
	var d decoder
	var keys []key
	part := bytes.Repeat([]byte("x"), 1<<20)
	keys = append(keys, d.feed([]byte(pasteBegin))...)
	for range mostPaste>>20 + 1 {
		keys = append(keys, d.feed(part)...)
	}
	keys = append(keys, d.feed([]byte("yz"+pasteEnd+pasteBegin+"a"+pasteEnd))...)
	if len(keys) != 2 || len(keys[0].text) != mostPaste || keys[0].lost != 1<<20+2 || keys[1].text != "a" || keys[1].lost != 0 {
		t.Errorf("%d keys, the first with %d bytes and %d lost", len(keys), len(keys[0].text), keys[0].lost)
	}
}

func TestMessage(t *testing.T) {
	for typed, want := range map[string]string{" hi ": "hi", "/cost ": "/cost", "  /cost\n": " /cost", "//x": "//x", "\n": ""} {
		if got := message(typed); got != want {
			t.Errorf("message(%q) = %q, want %q", typed, got, want)
		}
	}
	if got := ownWord(" /quit"); got != "" {
		t.Errorf("ownWord( /quit) = %q, want none: the blank says that it is for the model", got)
	}
}
