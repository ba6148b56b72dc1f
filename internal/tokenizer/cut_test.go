package tokenizer

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// longestPrefix says what Cut should, by trying every prefix.
func longestPrefix(text string, max int) string {
	best := ""
	for i := 0; i < len(text); {
		_, width := utf8.DecodeRuneInString(text[i:])
		i += width
		if Count(text[:i]) <= max {
			best = text[:i]
		}
	}
	return best
}

func TestCut(t *testing.T) {
	tests := []struct {
		text string
		max  int
		want string
	}{
		{"", 5, ""},
		{"hello world", 0, ""},
		{"hello world", -1, ""},
		{"hello world", 1, "hello"},
		{"hello world", 2, "hello world"},
		{"hello world", math.MaxInt, "hello world"},
		{"a   b", 2, "a   "}, // the last space belongs to b only while there is a b
		{"日本語の", 1, "日本"},
		{"👩‍👩‍👧", 1, ""},                    // the first of them is already two
		{"\xff\xff\xff", 1, "\xff\xff\xff"}, // three U+FFFD are one token
		{"a\xff\xffb", 2, "a\xff\xff"},
	}
	for _, tt := range tests {
		if got := Cut(tt.text, tt.max); got != tt.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", tt.text, tt.max, got, tt.want)
		}
	}
}

func TestCutProperty(t *testing.T) {
	draw := text()
	rapid.Check(t, func(t *rapid.T) {
		text, max := draw.Draw(t, "text"), rapid.IntRange(0, 30).Draw(t, "max")
		if got, want := Cut(text, max), longestPrefix(text, max); got != want {
			t.Errorf("Cut(%+q, %d) = %+q, want %+q", text, max, got, want)
		}
		long := strings.Repeat(text, 20)
		checkCut(t, long, max*10)
		checkCut(t, strings.Repeat(strings.Join(strings.Fields(text), ""), 20), max*3)
	})
}

// checkCut checks what holds of every cut.
func checkCut(t failer, text string, max int) {
	t.Helper()
	got := Cut(text, max)
	n := Count(got)
	switch {
	case !strings.HasPrefix(text, got):
		t.Errorf("Cut(%+q, %d) = %+q, want a prefix", text, max, got)
	case n > max:
		t.Errorf("Cut(%+q, %d) = %+q, which has %d tokens", text, max, got, n)
	case boundary(text, len(got)) != len(got):
		t.Errorf("Cut(%+q, %d) = %+q, which ends within a character", text, max, got)
	case Count(text) <= max && got != text:
		t.Errorf("Cut(%+q, %d) = %+q, want all of it", text, max, got)
	case got != text && n < max-8:
		t.Errorf("Cut(%+q, %d) = %+q, which has no more than %d tokens", text, max, got, n)
	}
}

func FuzzCut(f *testing.F) {
	for _, text := range samples {
		for _, max := range []int{0, 1, 7, 29} {
			f.Add(text, max)
		}
	}
	f.Fuzz(func(t *testing.T, text string, max int) {
		if max < 0 {
			max = -(max + 1)
		}
		if len(text) < 1<<12 {
			checkCut(t, text, max)
		}
		if len(text) < cutExactly {
			if got, want := Cut(text, max), longestPrefix(text, max); got != want {
				t.Errorf("Cut(%+q, %d) = %+q, want %+q", text, max, got, want)
			}
		}
	})
}
