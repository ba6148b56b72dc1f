package approval

import (
	"strings"
	"testing"
)

// TestReadableArguments: texts of several lines are shown as lines, marked so that
// none can pass for an argument, and everything else exactly as it is.
func TestReadableArguments(t *testing.T) {
	for _, test := range []struct{ arguments, want string }{
		{`{"path": "a.md", "content": "# A\n\nb\n"}`, "path: \"a.md\"\ncontent: 3 lines\n  | # A\n  | \n  | b"},
		{`{"content":"a\npath: \"/etc/passwd\"","n":1.50,"deep":{"x":"a\nb"}}`, "content: 2 lines, the last one without a newline\n  | a\n  | path: \"/etc/passwd\"\nn: 1.50\ndeep: {\"x\":\"a\\nb\"}"},
		{`{"a b\n": "x\n", "": "y"}`, "\"a b\\n\": 1 line\n  | x\n\"\": \"y\""},
		{`{"path": "."}`, `{"path": "."}`},
		{`{"a":"x\ny","a":"z"}`, `{"a":"x\ny","a":"z"}`},
		{`["a\nb"]`, `["a\nb"]`},
		{`{"a":"x\ny"} {}`, `{"a":"x\ny"} {}`},
		{"", ""},
	} {
		if got := readable([]byte(test.arguments)); got != test.want {
			t.Errorf("readable(%s) =\n%s\nwant\n%s", test.arguments, got, test.want)
		}
	}
}

// FuzzReadable: whatever the arguments, a line that begins with no bar is none of
// a text.
func FuzzReadable(f *testing.F) {
	f.Add(`{"path":"a","content":"x\ny"}`)
	f.Fuzz(func(t *testing.T, arguments string) {
		got := readable([]byte(arguments))
		names, values, ok := members([]byte(arguments))
		if !ok || got == arguments {
			return
		}
		plain := 0
		for line := range strings.SplitSeq(got, "\n") {
			if !strings.HasPrefix(line, "  | ") {
				plain++
			}
		}
		newlines := 0 // of values that are no texts and have lines
		for i, v := range values {
			if !strings.Contains(textOf(v), "\n") {
				newlines += strings.Count(string(v), "\n")
			}
			_ = names[i]
		}
		if plain != len(names)+newlines {
			t.Errorf("readable(%q) = %q has %d lines that are arguments, want %d", arguments, got, plain, len(names))
		}
	})
}
