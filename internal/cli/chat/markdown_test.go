package chat

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/rogpeppe/go-internal/txtar"

	"ken/internal/testkit"
)

// render returns a document that comes in fragments of n bytes.
func render(text string, width, n int, colour bool) []string {
	md := markdown{width: width, colour: colour}
	var out []string
	look := len(text)/n < 200 // more often costs more than it shows
	for len(text) > n {
		out = append(out, md.write(text[:n])...)
		if look {
			md.preview()
		}
		text = text[n:]
	}
	return append(append(out, md.write(text)...), md.end()...)
}

// TestMarkdown renders testdata/markdown/*.txtar: the file in.md, at the width
// in each other file's name, coloured where it says so.
func TestMarkdown(t *testing.T) {
	goldens(t, "testdata/markdown/*.txtar", func(t *testing.T, a *txtar.Archive, width int, kind string) []string {
		in := string(a.Files[0].Data)
		want := render(in, width, len(in), kind == "colour")
		for _, n := range []int{1, 3, 7} {
			if got := render(in, width, n, kind == "colour"); !slices.Equal(got, want) {
				t.Errorf("in fragments of %d bytes at %d columns it is\n%s\nwant\n%s", n, width, visible(got), visible(want))
			}
		}
		return want
	})
}

// TestLargeMarkdown shows that no block is kept for ever.
func TestLargeMarkdown(t *testing.T) {
	testkit.CI(t, "writes megabytes")
	word := "word "
	tests := []struct {
		name, head, more string
	}{
		{"paragraph", "", word},
		{"lines", "", word + "\n"},
		{"item", "- ", word},
		{"quote", "", "> " + word + "\n"},
		{"table", "| a |\n|---|\n", "| word |\n"},
		{"emphasis", "", "*a **b `c [d]( "},
		{"brackets", "", "[[[[[](["},
	}
	for _, tt := range tests {
		md := markdown{width: 60}
		lines := len(md.write(tt.head))
		size := 0
		for size < 300<<10 {
			lines += len(md.write(tt.more))
			size += len(tt.more)
		}
		if lines < 100 {
			t.Errorf("%s: %d lines were given of %d bytes before the end, want most", tt.name, lines, size)
		}
		if waiting := len(md.preview()); waiting > 4000 {
			t.Errorf("%s: %d lines wait for the end, want a bounded number", tt.name, waiting)
		}
	}
}

// letters counts the letters and digits of a text.
func letters(s string) map[rune]int {
	out := map[rune]int{}
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			out[r]++
		}
	}
	return out
}

func FuzzMarkdown(f *testing.F) {
	paths, err := filepath.Glob("testdata/markdown/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(archive.Files[0].Data), 40, 5, true)
	}
	for _, s := range []string{"\x1b]0;title\a*a", "- \x00a\u202e\n> \u2028b", "| a | b |\n|--|--|\n| `|` | \\| |", "```\x9b2J\n~~~", "a\r\nb\rc", "1. a\n   - b\n\n     c\n", "![x](y) <https://z> [a](a)", "世界**界**世"} {
		f.Add(s, 20, 1, false)
	}
	f.Fuzz(func(t *testing.T, text string, width, n int, colour bool) {
		width, n = 1+abs(width)%200, 1+abs(n)%64
		lines := render(text, width, n, colour)
		whole := strings.Join(lines, "\n")
		if got := strings.Join(render(text, width, len(text)+1, colour), "\n"); got != whole {
			t.Fatalf("in fragments of %d bytes it is %q, at once %q", n, whole, got)
		}
		var plain strings.Builder
		for s := whole; s != ""; {
			k := escape(s)
			if k > 0 && !colour {
				t.Fatalf("%q has a style without colour", whole)
			}
			if k == 0 {
				plain.WriteByte(s[0])
				k = 1
			}
			s = s[k:]
		}
		for _, r := range plain.String() {
			if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc) || in(r, 0x202A, 0x202E) || in(r, 0x2066, 0x2069) {
				t.Fatalf("%U gets through in %q", r, plain.String())
			}
		}
		// A link whose words are its address is shown once.
		links := strings.Contains(text, "](")
		got := letters(plain.String())
		for r, n := range letters(seen(text)) {
			if got[r] < n && (!links || got[r] == 0) {
				t.Fatalf("%d of %d %q are left of %q: %q", got[r], n, r, text, plain.String())
			}
		}
	})
}

// seen returns the lines in which nothing is hidden.
func seen(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSuffix(line, "\r"); safe(line) == strings.ReplaceAll(line, "\t", "    ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func abs(n int) int { return max(n, -(n + 1)) }

// TestMarkdownHostile shows that nothing of a document moves the cursor.
func TestMarkdownHostile(t *testing.T) {
	raw, err := os.ReadFile("testdata/hostile.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("ESC", "\x1b", "CSI", "\u009b", "BEL", "\a", "CR", "\r", "RLO", "\u202e").Replace(string(raw))
	for _, line := range render(text, 60, 4, false) {
		if i := strings.IndexFunc(line, func(r rune) bool { return unicode.IsControl(r) && r != '\t' || r == 0x202E }); i >= 0 {
			t.Errorf("%q has a control character at %d", line, i)
		}
	}
}
