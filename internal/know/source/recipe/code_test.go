package recipe

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestCode holds testdata/code.txt, which says what it has, against what Ken
// takes for code: of arguments as they stand, and of places in them.
func TestCode(t *testing.T) {
	text, err := os.ReadFile("testdata/code.txt")
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]argvPlace{
		"a": {}, "v": {}, "o": {optional: true}, "x": {flag: "-x", boolean: true}, "c": {flag: "-c", boolean: true},
		"e": {flag: "--eval", boolean: true}, "m": {flag: "-m", boolean: true}, "f": {flag: "-f", boolean: true},
	}
	_, text, _ = bytes.Cut(text, []byte("\n\n"))
	fixed, chosen, _ := strings.Cut(string(text), "\n\n")
	check := func(rows string, first func(argv []string) int) {
		for row := range strings.Lines(rows) {
			word, argv, _ := strings.Cut(strings.TrimSuffix(row, "\n"), " ")
			want, err := strconv.Atoi(word)
			if err != nil {
				want = -1
			}
			if got := first(strings.Split(argv, "|")); word != "#" && got != want {
				t.Errorf("%s: %d, want %d", argv, got, want)
			}
		}
	}
	check(fixed, placeholderInCode)
	check(chosen, func(argv []string) int { return codeInPlaces(argv, places) })
}
