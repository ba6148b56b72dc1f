package chat

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/internal/testkit/terminaltest"
)

func TestCluster(t *testing.T) {
	tests := []struct {
		s       string
		size, n int
	}{
		{"a", 1, 1}, {"ab", 1, 1}, {"世界", 3, 2}, {"é", 2, 1}, {"e\u0301x", 3, 1},
		{"👍", 4, 2}, {"👍🏽x", 8, 2}, {"👨\u200d👩\u200d👧 ", 18, 2}, {"🇩🇪🇫🇷", 8, 2}, {"❤\ufe0f", 6, 2}, {"1\ufe0f\u20e3", 7, 2},
		{"\u1100\u1161\u11a8", 9, 2}, {"नि", 6, 2}, {"ｱ", 3, 1}, {"Ａ", 3, 2}, {"\u0301", 2, 0}, {"\t", 1, 0}, {"\xff", 1, 1}, {"a\u200db", 4, 1},
		{"🏴\U000E0067\U000E0062\U000E007F", 16, 2},
	}
	for _, tt := range tests {
		if size, n := cluster(tt.s); size != tt.size || n != tt.n {
			t.Errorf("cluster(%q) = %d bytes, %d columns, want %d, %d", tt.s, size, n, tt.size, tt.n)
		}
	}
}

func TestClip(t *testing.T) {
	tests := []struct {
		s    string
		most int
		want string
	}{
		{"hello", 5, "hello"}, {"hello!", 5, "hell…"}, {"世界世界", 5, "世界…"}, {"世界世", 5, "世界…"}, {"hello", 0, ""}, {"hello", 1, "…"},
		{"\x1b[1mhello\x1b[0m", 5, "\x1b[1mhello\x1b[0m"}, {"\x1b[1mhello\x1b[0m", 4, "\x1b[1mhel…\x1b[0m"}, {"\x1b[1mhe\x1b[0mllo", 4, "\x1b[1mhe\x1b[0ml…"},
	}
	for _, tt := range tests {
		if got := clip(tt.s, tt.most); got != tt.want {
			t.Errorf("clip(%q, %d) = %q, want %q", tt.s, tt.most, got, tt.want)
		}
	}
	if got := tail("hello 世界", 5); got != "…世界" {
		t.Errorf("tail = %q", got)
	}
}

// text is what people and models write.
func text() *rapid.Generator[string] {
	word := rapid.OneOf(rapid.StringMatching(`[a-z]{0,12}`), rapid.SampledFrom([]string{"世界", "👨\u200d👩\u200d👧", "🇩🇪", "e\u0301", "  ", "नमस्ते", "`", "**", "，", "\n", "❤\ufe0f"}))
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(word, 0, 12).Draw(t, "words"), " ") })
}

// TestWrap: no line is wider than it may be, and only blanks at line ends go.
func TestWrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := safeLine(text().Draw(t, "text"))
		most := rapid.IntRange(2, 30).Draw(t, "most")
		lines := wrap(s, most)
		for _, line := range lines {
			if n := columns(line); n > most {
				t.Fatalf("%q has %d columns, want at most %d", line, n, most)
			}
		}
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if got := strings.Join(lines, ""); squeeze(got) != squeeze(s) {
			t.Fatalf("wrap(%q, %d) = %q: something is lost", s, most, lines)
		}
	})
}

// TestVT holds the terminal of these tests to what terminals do.
func TestVT(t *testing.T) {
	tests := []struct{ in, want string }{
		{"one\r\ntwo\x1b[1A\rO\x1b[1CE", "OnE\ntwo"},
		{"12345678901", "1234567890\n1"},
		{"1234567890\r\nx", "1234567890\nx"},
		{"世界世界世界", "世界世界世\n界"},
		{"ab\r\ncd\x1b[1A\r\x1b[J!", "!"},
		{"e\u0301👨\u200d👩x\rE", "E👨\u200d👩x"},
		{"a\r\nb\r\nc\r\nd\x1b[9A\rB", "a\nB\nc\nd"},
	}
	for _, tt := range tests {
		v := terminaltest.NewVT(10, 3, columnsOf)
		if _, err := v.Write([]byte(tt.in)); err != nil || len(v.Unknown) > 0 {
			t.Fatal(err, v.Unknown)
		}
		if got := v.Text(); got != tt.want {
			t.Errorf("%q shows %q, want %q", tt.in, got, tt.want)
		}
	}
	v := terminaltest.NewVT(10, 3, columnsOf)
	_, _ = v.Write([]byte("12345678\r\nab"))
	if v.Resize(4, 3); v.Text() != "1234\n5678\nab" || v.Line() != "ab" {
		t.Errorf("after a resize it shows %q with %q before the cursor", v.Text(), v.Line())
	}
}
