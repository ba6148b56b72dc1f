package slash

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ken/capability"
)

// FuzzParse: whatever is typed, there is a route with arguments that are JSON
// or a refusal that points into the line, and never both readings.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"/command001 get https://x --limit 3", "/c001 put 'a b' \"c\\\"d\" e\\ f", "//command001", "/etc/hosts is broken",
		"/command001 get '", "/command001 get x\x00", "/command001\u00a0get", "/prompt it's", "/command001 get --header=a --header b -- -x",
	} {
		f.Add(seed, 3)
	}
	x := New(append(hundreds(3), Command{Name: "prompt", Actions: []Action{{Text: true}}}))
	f.Fuzz(func(t *testing.T, line string, cursor int) {
		for _, c := range x.Complete(line, cursor) {
			if c.Start < 0 || c.End < c.Start || c.End > len(line) {
				t.Errorf("Complete(%q, %d) gives the range %d-%d", line, cursor, c.Start, c.End)
			}
		}
		if !x.Is(line) {
			if text := x.Text(line); text != line && "/"+text != line {
				t.Errorf("Text(%q) = %q", line, text)
			}
			if _, err := x.Parse(line); err == nil {
				t.Errorf("Parse(%q) reads text as a command", line)
			}
			return
		}
		r, err := x.Parse(line)
		if err == nil {
			var call capability.Call
			if call, err = r.Call(nil); err == nil {
				checkArguments(t, line, call)
				return
			}
		}
		fault, ok := errors.AsType[*Fault](err)
		if !ok || fault.Offset < 0 || fault.Offset > len(line) || fault.Column < 1 || fault.Fix == "" {
			t.Errorf("Parse(%q) = %#v, want a fault in the line with its fix", line, err)
		}
	})
}

func checkArguments(t *testing.T, line string, call capability.Call) {
	t.Helper()
	var args map[string]any
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		t.Errorf("arguments of %q = %s: %v", line, call.Arguments, err)
	}
	if _, err := call.Digest(); err != nil {
		t.Errorf("Digest of %q: %v", line, err)
	}
	if call.Origin != capability.ByPerson || call.Target == "" && !strings.HasPrefix(line, "/prompt") {
		t.Errorf("call of %q = %+v", line, call)
	}
}

// FuzzQuote: a quoted word is read back as that one word.
func FuzzQuote(f *testing.F) {
	for _, seed := range []string{"", "a", "a b", "it's", `"`, `'"\`, "--x", "a=b", "é\u00a0", "\n", "“", "—x", `\`, "-", "//", "a\tb"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
			return
		}
		words, fault := split("x "+Quote(s)+" y", 1)
		if fault != nil || len(words) != 2 || words[0].text != s {
			t.Errorf("split(Quote(%q) = %s) = %+v, %v", s, Quote(s), words, fault)
			return
		}
		if isFlag(words[0]) || words[0].is("--") || strings.Contains(s, "=") && words[0].bare > strings.Index(s, "=") {
			t.Errorf("Quote(%q) = %s is read as more than a word", s, Quote(s))
		}
	})
}

// TestArgumentsRoundTrip: words that were quoted come out as the arguments of
// the call, in order and unchanged, whatever they are.
func TestArgumentsRoundTrip(t *testing.T) {
	x := New([]Command{{Name: "c", Actions: []Action{{Name: "go", Target: "command:c/go"}}}})
	word := rapid.StringOf(rapid.RuneFrom([]rune("ab -='\"\\;$`*\n/é—“\u00a0\u202e0.")))
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(word, 0, 6).Draw(t, "words")
		line := "/c go"
		for _, w := range want {
			line += " " + Quote(w)
		}
		r, err := x.Parse(line)
		if err != nil {
			t.Fatalf("Parse(%q): %v", line, err)
		}
		call, err := r.Call(nil)
		if err != nil {
			t.Fatalf("Call of %q: %v", line, err)
		}
		var got struct{ Args []string }
		if err := json.Unmarshal(call.Arguments, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Args); diff != "" && len(want) > 0 {
			t.Fatalf("words of %q (-want +got):\n%s", line, diff)
		}
	})
}
