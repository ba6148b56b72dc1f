package tokenizer

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"ken/internal/testkit"
)

// samples are texts of many scripts and shapes: those of testdata/samples.txtar, and
// what an editor might change.
var samples = func() map[string]string {
	out := map[string]string{
		"decomposed":  "e\u0301te\u0301 A\u030aB \u0301ABC \u0301 x\u0327\u0301y \u0301abc'S",
		"punctuation": strings.Repeat("=", 77) + "\n" + strings.Repeat("-*", 31) + "!!!???...///\\\\\\ ,,, \"'\"'\n/// //\n",
		"newlines":    "a\r\nb\r\n\r\nc\n\n\n d\r\re\n/f !\n/\r/ g",
		"blank lines": "a\n \nb\n  \n\t\n   c   \n",
		"spaces":      "a  b   c\td\t\te \u00a0f\u3000g\u2003\u2003h \u0085 i\u2028j" + strings.Repeat(" ", 100) + "k  ",
		"invalid":     "ok\xff\xfe ab\xe2\x82 \xf0\x9f\x98x\xc3(\x80\x80\x80 \xffabc",
		"zero":        "\x00\x01\x02 a\x00b\x7f\u200b\ufeff\u200d",
		"one word":    strings.Repeat("a", 1000),
		"one script":  strings.Repeat("漢字仮名", 300),
		"empty":       "",
	}
	archive, err := txtar.ParseFile("testdata/samples.txtar")
	if err != nil {
		panic(err)
	}
	for _, f := range archive.Files {
		out[f.Name] = strings.TrimSuffix(string(f.Data), "\n")
	}
	return out
}()

// reference is the pattern as the regexp package reads it, except for the
// lookahead, which it lacks.
var reference = regexp.MustCompile(`\A(?:` + strings.Join([]string{
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
	`\p{N}{1,3}`,
	` ?[^\s\v\x{85}\p{Z}\p{L}\p{N}]+[\r\n/]*`,
	`[\s\v\x{85}\p{Z}]*[\r\n]+`,
	`[\s\v\x{85}\p{Z}]+`,
}, "|") + `)`)

// referencePieces cuts text into pieces by the regexp package.
func referencePieces(text string) (pieces []string) {
	text = mend(text)
	for text != "" {
		end := reference.FindStringIndex(text)[1]
		if one := text[:end]; end < len(text) && strings.TrimSpace(one) == "" && !strings.ContainsAny(one, "\r\n") {
			if _, width := utf8.DecodeLastRuneInString(one); width < end {
				end -= width
			}
		}
		pieces = append(pieces, text[:end])
		text = text[end:]
	}
	return pieces
}

// libraryErs finds what the library reads otherwise than the pattern says. It
// takes whitespace apart at its first line end, not at its last, and leaves out
// the character DEL.
var libraryErs = regexp.MustCompile(`\x7f|[\r\n][\s\v\x{85}\p{Z}]*[^\S\r\n][\s\v\x{85}\p{Z}]*[\r\n]|[\r\n][\s\v\x{85}\p{Z}]*[\v\x{85}\p{Z}][\s\v\x{85}\p{Z}]*[\r\n]`)

type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

// checkCount compares pieces and count of a text with the reference, and the
// count with the library.
func checkCount(t failer, text string) {
	t.Helper()
	want := 0
	rest := text
	for i, piece := range referencePieces(text) {
		end, _ := next(rest, 0)
		if got := mend(rest[:end]); got != piece {
			t.Errorf("piece %d of %+q = %+q, want %+q", i, text, got, piece)
			return
		}
		rest = rest[end:]
		if rank(piece) != none {
			want++
		} else if len(piece) < 300 { // mergeBytes takes the cube of it
			n, _ := mergeBytes(piece)
			want += n
		} else {
			want += merge(piece)
		}
	}
	got := Count(text)
	if got != want {
		t.Errorf("Count(%+q) = %d, want %d", text, got, want)
	}
	if libraryErs.MatchString(text) {
		return
	}
	_, codec := library()
	if want, err := codec.Count(text); err != nil || got != want {
		t.Errorf("Count(%+q) = %d, want %d (%v) as the library has it", text, got, want, err)
	}
}

func TestCountSamples(t *testing.T) {
	for name, text := range samples {
		t.Run(name, func(t *testing.T) {
			checkCount(t, text)
			// Joining with a queue gives what joining by looking gives.
			for _, piece := range referencePieces(text) {
				if at := parts(piece, nil); len(at) <= small {
					got, _ := mergeLong(piece, at)
					if want := mergeSmall(piece, at); got != want {
						t.Errorf("mergeLong(%+q) = %d, want %d", piece, got, want)
					}
				}
			}
		})
	}
}

// TestCount has numbers that need no other program to check.
func TestCount(t *testing.T) {
	tests := []struct {
		text string
		want int
	}{
		{"", 0},
		{"a", 1},
		{"hello world", 2},
		{"tiktoken is great!", 6},
		{"123456", 2},
		{"a\n \nb", 3}, // the middle is one token, of which the library makes two
		{"\xff", 1},    // as U+FFFD
		{"<|endoftext|>", 7},
	}
	for _, tt := range tests {
		if got := Count(tt.text); got != tt.want {
			t.Errorf("Count(%q) = %d, want %d", tt.text, got, tt.want)
		}
	}
}

// text draws a text from pieces of many scripts that meet in odd ways.
func text() *rapid.Generator[string] {
	words := []string{
		"a", "Z", "the", " the", "Hello", "HTTP", "é", "ß", "İ", "ǅ", "ʰ", "ſ", "э", "Ж", "привет", "ε", "ש", "ים", "م", "ال", "क", "्", "ि", "का", " क", "த", "ா", "ა", "ეს", "ին",
		"ก", "า", "日", "本", "阅读", "删除", "票", "彩", "の", "ァ", "フ", "한", " 있", "국", "鸿", "𠀀", "\u0301", "\u0327", "👩", "\u200d", "❤", "\ufe0f", "🏽", "🙂",
		" ", "  ", "   ", "\t", "\n", "\n\n", "\r", "\r\n", "\u00a0", "\u3000", "\u0085", "\u2028", "\v", "\f", ".", ",", "!", "/", "//", "'", "'s", "'LL", "'re", "'ſ", "\"", "{", "\":", "#", "-", "[", "<", "(", "_",
		"1", "22", "333", "٣", "½", "Ⅳ", "\x00", "\u200b", "\ufffd", "\xff", "\xe2", "\x82", "\xf0\x9f", "→", "“", "–", "=", "====", "aaaaaaaa", "qzx",
	}
	piece := rapid.OneOf(rapid.SampledFrom(words), rapid.StringN(0, 4, -1))
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces"), "")
	})
}

func TestCountProperty(t *testing.T) {
	draw := text()
	rapid.Check(t, func(t *rapid.T) { checkCount(t, draw.Draw(t, "text")) })
}

// TestCountAddsUp shows the contract of the package comment.
func TestCountAddsUp(t *testing.T) {
	draw := text()
	first := rapid.SampledFrom([]string{"a", "Z", "0", "#", "-", "[", "<", "(", "*", "|", "é", "漢", "क", "\u0301", "🙂", "\xff"})
	adds := func(t *rapid.T, a, b string) {
		if got, want := Count(a+b), Count(a)+Count(b); got != want {
			t.Errorf("Count(%+q + %+q) = %d, want %d", a, b, got, want)
		}
		if got, most := Estimate(a+b), Estimate(a)+Estimate(b); got > most {
			t.Errorf("Estimate(%+q + %+q) = %d, want at most %d", a, b, got, most)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		adds(t, a+"\n", first.Draw(t, "first")+b)
		if c, _, _ := classAt("x"+a, len("x"+a)-lastWidth("x"+a)); c != blank && c != newline {
			adds(t, a, rapid.SampledFrom([]string{" ", "\t"}).Draw(t, "space")+b)
		}
	})
	for _, rest := range []string{" rest", " 5", " (x)", " 漢", " \U0001F642"} {
		if got, want := Count("12."+rest), Count("12.")+Count(rest); got != want {
			t.Errorf("Count(%q) = %d, want %d", "12."+rest, got, want)
		}
	}
	// What the contract leaves out it leaves out for a reason.
	for _, ab := range [][2]string{{".\n", "/"}, {"\n", "\n"}, {"\n", " \n"}, {" ", "  a"}} {
		if sum := Count(ab[0]) + Count(ab[1]); Count(ab[0]+ab[1]) == sum {
			t.Errorf("Count(%q) = %d = the sum of its parts, so the contract could be wider", ab[0]+ab[1], sum)
		}
	}
}

// TestLargeCount: no piece is too long to be counted and cut. Work that grew with
// the square of its length would not end.
func TestLargeCount(t *testing.T) {
	testkit.CI(t, "a megabyte")
	for _, unit := range []string{"a", "A", " ", "\n", "=", "1", "漢", "\u0301", "ab", "qz", "漢A", "\xff", "\n ", "क्", "🙂"} {
		size := 1 << 16
		if unit == "a" {
			size = 1 << 20
		}
		text := strings.Repeat(unit, size/len(unit))
		if n, least := Count(text), len(text)/longest; n < least {
			t.Errorf("Count of %d bytes of %q = %d, want at least %d", size, unit, n, least)
		}
		if got := Cut(text, 1000); Count(got) > 1000 || len(got) < 1000 {
			t.Errorf("Cut of %d bytes of %q to 1000 tokens = %d bytes of %d tokens", size, unit, len(got), Count(got))
		}
	}
}

func TestLargeCatalogsCount(t *testing.T) {
	testkit.CI(t, "whole catalogs")
	dir := os.Getenv("KEN_BENCH")
	if dir == "" {
		t.Skip("KEN_BENCH is not set: no catalog to count")
	}
	files, err := filepath.Glob(filepath.Join(dir, "catalog", "*", "corpus.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no catalogs under %s (%v)", dir, err)
	}
	for _, file := range files {
		f := testkit.Must(os.Open(file))(t)
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 16<<20)
		for n := 0; lines.Scan(); n++ {
			if n%50 != 0 {
				continue
			}
			var row struct{ Description string }
			if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
				t.Fatalf("%s:%d: %v", file, n+1, err)
			}
			checkCount(t, row.Description)
			if text := lines.Text(); n%200 == 0 && len(text) < 20_000 {
				checkCount(t, text)
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
}

func FuzzCount(f *testing.F) {
	for _, text := range samples {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 1<<12 {
			checkCount(t, text)
		}
	})
}
