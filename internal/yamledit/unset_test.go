package yamledit

import (
	"strings"
	"testing"

	"ken/internal/yamldoc"
)

// TestUnset removes values and the maps that would be empty then, and leaves the
// rest of the text as it is.
func TestUnset(t *testing.T) {
	for _, tt := range []struct{ text, path, want string }{
		{"a: 1\n", "a", ""},
		{"a: 1\nb: 2\n", "b", "a: 1\n"},
		{"# top\na:\n  # about b\n  b: 1 # one\n  c: 2\n", "a.c", "# top\na:\n  # about b\n  b: 1 # one\n"},
		{"a:\n  b:\n    c: 1\nd: 2\n", "a.b.c", "d: 2\n"},
		{"a: {b: 1, c: 2} # both\n", "a.b", "a: {c: 2} # both\n"},
		{"a:\n  b: [1,\n    2]\n  c: 3\n", "a.b", "a:\n  c: 3\n"},
		{"x: 1\n\na:\n  b: 1\n", "a.b", "x: 1\n"},
		{"x: 1\n", "a.b", "x: 1\n"},
		{"{\n  \"a\": 1,\n  \"b\": {\"c\": 2}\n}\n", "b.c", "{\n  \"a\": 1\n}\n"},
	} {
		got, err := Unset([]byte(tt.text), strings.Split(tt.path, "."), yamldoc.Limits{})
		if err != nil || string(got) != tt.want {
			t.Errorf("Unset(%q, %s) = %q, %v, want %q", tt.text, tt.path, got, err, tt.want)
		}
	}
}
