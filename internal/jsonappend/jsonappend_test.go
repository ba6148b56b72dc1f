package jsonappend_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"ken/internal/jsonappend"
)

// marshalled returns s as encoding/json writes it without HTML escapes.
func marshalled(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func FuzzStrings(f *testing.F) {
	for _, s := range []string{
		"", "plain", `"\/`, "\x00\b\t\n\f\r\x1f\x7f", "<a & b>", "é 日本 🙂", "\u2028\u2029\u202e\ufeff",
		"\xff", "a\xc3", "\xed\xa0\x80", "\ufffd", "🙂\xf0\x9f", strings.Repeat("x", 300) + "\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := string(jsonappend.String([]byte("a"), s)), "a"+marshalled(t, s); got != want {
			t.Errorf("String(%q) = %s, want %s", s, got, want)
		}
		ascii := jsonappend.ASCII([]byte("a"), s)
		for _, c := range ascii {
			if c < ' ' || c > '~' {
				t.Fatalf("ASCII(%q) = %q, not printable ASCII", s, ascii)
			}
		}
		var back string
		if err := json.Unmarshal(ascii[1:], &back); err != nil || back != strings.ToValidUTF8(back, "") {
			t.Fatalf("ASCII(%q) = %s: %v", s, ascii, err)
		}
		var want string
		if err := json.Unmarshal([]byte(marshalled(t, s)), &want); err != nil || back != want {
			t.Errorf("ASCII(%q) reads back as %q, want %q", s, back, want)
		}
	})
}

func TestKey(t *testing.T) {
	b := jsonappend.Key([]byte("{"), "a")
	b = append(b, "[]"...)
	b = append(jsonappend.Key(b, "b"), '[')
	b = append(jsonappend.Comma(b), '1')
	b = append(jsonappend.Comma(b), '2')
	b = append(b, "]}"...)
	if want := `{"a":[],"b":[1,2]}`; string(b) != want {
		t.Errorf("an object = %s, want %s", b, want)
	}
}

func BenchmarkString(b *testing.B) {
	text := strings.Repeat("A line of a tool's answer, with \"quotes\".\n", 50)
	dst := make([]byte, 0, 4096)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		dst = jsonappend.String(dst[:0], text)
	}
}
