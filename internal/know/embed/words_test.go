package embed

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"ken/internal/testkit"
)

// The strings of testdata/reference.jsonl.gz, and the tokens that the reference
// tokenizer gives for them; testdata/README.md says how they were made.
func TestTokensAreThoseOfTheReference(t *testing.T) {
	m := full(t)
	pieces := vocabulary(t)
	lines := strings.Split(strings.TrimSpace(unpack(t, "reference.jsonl.gz")), "\n")
	if len(lines) < 4000 {
		t.Fatalf("the reference has %d strings, want at least 4000", len(lines))
	}
	failures := 0
	for _, line := range lines {
		var want struct {
			Text string
			IDs  []int
		}
		must(t, json.Unmarshal([]byte(line), &want))
		var names []string
		for _, id := range want.IDs {
			names = append(names, pieces[id])
		}
		if got := spell(m, m.Tokens(nil, want.Text)); !slices.Equal(got, names) {
			t.Errorf("Tokens(%q) = %q, want %q", want.Text, got, names)
			if failures++; failures == 10 {
				t.Fatal("and more")
			}
		}
	}
}

// spell returns the pieces of tokens, [UNK] for Unknown.
func spell(m *Model, tokens []uint32) []string {
	var out []string
	for _, id := range tokens {
		if id == Unknown {
			out = append(out, "[UNK]")
			continue
		}
		out = append(out, m.Piece(id))
	}
	return out
}

// The table of characters was made with other Unicode tables than those of Go.
// They may differ in what has been added to Unicode since, and in nothing that
// the vocabulary knows.
func TestLargeCharactersAgreeWithUnicode(t *testing.T) {
	testkit.CI(t, "all characters")
	known := map[rune]bool{}
	for _, piece := range vocabulary(t) {
		for _, r := range piece {
			known[r] = true
		}
	}
	const most = 900
	differ := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		got, want := byTable(r), byUnicode(r)
		if got == want {
			continue
		}
		differ++
		if r < 0x300 || known[r] {
			t.Errorf("character %U becomes %q, by Unicode %q", r, got, want)
		}
	}
	if differ > most {
		t.Errorf("%d characters differ from Unicode, want at most %d", differ, most)
	}
	t.Logf("%d characters differ from the Unicode %s of this Go", differ, unicode.Version)
}

// byTable returns what becomes of a character, with spaces around words.
func byTable(r rune) string {
	if isHangul(r) {
		lead, vowel, tail := jamo(r)
		if tail == 0 {
			return string([]rune{lead, vowel})
		}
		return string([]rune{lead, vowel, tail})
	}
	one := func(r rune, entry int) string {
		switch entry {
		case drop:
			return ""
		case space:
			return " "
		case alone:
			return " " + string(r) + " "
		}
		return string(r)
	}
	entry := entryOf(r)
	if entry < mapped {
		return one(r, entry)
	}
	var b strings.Builder
	for i, more := 0, 0; i <= more; i++ {
		to, others := target(entry, i)
		if i == 0 {
			more = others
		}
		b.WriteString(one(to, entryOf(to)))
	}
	return b.String()
}

// byUnicode is byTable by the definition of BERT's tokenizer and the Unicode
// tables of Go.
func byUnicode(r rune) string {
	switch {
	case r == '\t' || r == '\n' || r == '\r':
		return " "
	case r == 0 || r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
		return ""
	case unicode.IsSpace(r):
		return " "
	}
	var b strings.Builder
	for _, d := range norm.NFD.String(string(r)) {
		d = unicode.ToLower(d)
		symbol := d < utf8.RuneSelf && unicode.In(d, unicode.S)
		switch {
		case unicode.Is(unicode.Mn, d):
		case symbol || unicode.IsPunct(d) || isChinese(r):
			b.WriteString(" " + string(d) + " ")
		default:
			b.WriteRune(d)
		}
	}
	return b.String()
}

// isChinese is BERT's definition.
func isChinese(r rune) bool {
	for _, block := range [][2]rune{
		{0x4E00, 0x9FFF}, {0x3400, 0x4DBF}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
		{0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF}, {0x2F800, 0x2FA1F},
	} {
		if block[0] <= r && r <= block[1] {
			return true
		}
	}
	return false
}

// slowTokens is Tokens as one would write it on paper: the whole text first,
// then its words, then their pieces.
func slowTokens(known map[string]bool, text string) []string {
	var b strings.Builder
	for _, r := range text {
		b.WriteString(byTable(r))
	}
	var out []string
	for _, word := range strings.Split(b.String(), " ") {
		if word != "" {
			out = append(out, slowWord(known, []rune(word))...)
		}
	}
	return out[:min(len(out), MaxTokens)]
}

func slowWord(known map[string]bool, word []rune) []string {
	var out []string
	if len(word) > longestWord {
		return []string{"[UNK]"}
	}
	for start := 0; start < len(word); {
		end, prefix := len(word), ""
		if start > 0 {
			prefix = "##"
		}
		for end > start && !known[prefix+string(word[start:end])] {
			end--
		}
		if end == start {
			return []string{"[UNK]"}
		}
		out = append(out, prefix+string(word[start:end]))
		start = end
	}
	return out
}

func knownPieces(t testing.TB) map[string]bool {
	known := map[string]bool{}
	for _, piece := range vocabulary(t) {
		known[piece] = true
	}
	return known
}

func FuzzTokens(f *testing.F) {
	for _, text := range []string{"", "find recent articles", "getUserByID(x)", "ÉCOLE e\u0301", "한국어 漢字", "\xff\xfe\x00", strings.Repeat("a", 101), strings.Repeat("word ", 300), "İǅﬁ½\u1fef\u037e"} {
		f.Add(text)
	}
	m, known := tiny(f, vocabulary(f)...), knownPieces(f)
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := spell(m, m.Tokens(nil, text)), slowTokens(known, text); !slices.Equal(got, want) {
			t.Errorf("Tokens(%q) = %q, want %q", text, got, want)
		}
	})
}

func TestTokensAddToWhatIsThere(t *testing.T) {
	m := tiny(t, "a", "b")
	if got := m.Tokens([]uint32{7, 8}, "b a z"); !slices.Equal(got, []uint32{7, 8, 1, 0, Unknown}) {
		t.Errorf("Tokens([7 8], %q) = %v, want [7 8 1 0 Unknown]", "b a z", got)
	}
	if got := len(m.Tokens(make([]uint32, 3), strings.Repeat("a ", 1000))); got != 3+MaxTokens {
		t.Errorf("Tokens of 1,000 words give %d tokens, want %d after 3", got-3, MaxTokens)
	}
}

// A word is cut off only after it is known that it can be spelt.
func TestWordAcrossTheCut(t *testing.T) {
	m := tiny(t, "a", "b", "##c")
	full := strings.Repeat("a ", MaxTokens-1)
	for text, want := range map[string]uint32{full + "bccc": 1, full + "bccz": Unknown} {
		tokens := m.Tokens(nil, text)
		if got := tokens[len(tokens)-1]; len(tokens) != MaxTokens || got != want {
			t.Errorf("Tokens(…%q) ends with %d after %d tokens, want %d after %d", text[len(full):], got, len(tokens), want, MaxTokens)
		}
	}
}
