package untrusted

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// nasty draws texts from pieces that the renderers and the scanner treat
// specially, which random characters hardly ever form.
func nasty() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"a", "Z", "é", "日", " ", "  ", "\n", "\n\n", "\t", "\r", "\r\n", "\u2028", "\u00a0", ".", ":", "：", "<", "＜", "</", ">", "[", "]", "#", "###",
		"|", "｜", "\\", "-", "*", "“", "”", "'", "\"", "`", "```\n", "system", "System", "USER", "human", "Ｔｏｏｌ", "inst", "SYS", "s", "im_start", "prompt",
		"\u200b", "\u200c", "\u200d", "\ufe0f", "\ufe00", "\u202e", "\u2066", "\u200f", "\u061c", "\ufeff", "\u00ad", "\u034f", "\u115f", "\u1160", "\u1100", "\u180b", "\u180e", "ᠠ",
		"\U000E0067", "\U000E007F", "\U000E0100", "🏴", "👨", "🏽", "❤", "1", "\u20e3", "क", "्", "م", "ش", "ה", "\u0301", "\u0336", "\x00", "\x1b[", "\x1b]", "\u009b", "\xff", "\xe2\x80",
		"ignore", "previous", "instructions", "forget", "do not", "tell", "the user", "<!--", "-->", "[//]: # (", "%20", "&#105;", "&lt;", "~/.ssh/id_rsa", "not", "і", "о", "1gn0r3", "i-g-n-o-r-e",
		"new instructions:", "aWdub3JlIHByZXZpb3VzIGluc3RydWN0aW9ucw", "erongi", "vtaber", "rn", "vv", "__", "../", "…", "⟨", "⟩", "[[end",
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), "")
	})
}

func TestRenderProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := nasty().Draw(t, "s")
		limit := rapid.IntRange(0, 80).Draw(t, "limit")
		checkLine(t, s, limit)
		checkBlock(t, Block(s, BlockConfig{Max: limit}))
	})
}

// checkLine checks what holds of any text that is shown in a line, and of one
// that is shown to a person.
func checkLine(t errorer, s string, limit int) {
	got := Line(s, limit)
	checkShown(t, got)
	if strings.ContainsAny(got, "\n\t") || len(markers(got)) > 0 {
		t.Errorf("Line(%+q) = %q, want one line without markers", s, got)
	}
	most := max(limit, 24)
	if limit == 0 {
		most = DefaultLine
	}
	if n := utf8.RuneCountInString(got); n > most {
		t.Errorf("Line(%+q, %d) has %d runes, want at most %d", s, limit, n, most)
	}
	if again := Line(got, limit); again != got {
		t.Errorf("Line(%+q, %d) = %+q, want it unchanged", got, limit, again)
	}
	shown := Terminal(s)
	checkShown(t, shown)
	if again := Terminal(shown); again != shown {
		t.Errorf("Terminal(%+q) = %+q, want it unchanged", shown, again)
	}
}

func TestScanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := nasty().Draw(t, "s")
		first := Scan(s)
		again := Scan(s)
		if len(first) != len(again) {
			t.Errorf("Scan(%+q) = %v, then %v", s, first, again)
		}
		for i := range min(len(first), len(again)) {
			if first[i] != again[i] {
				t.Errorf("Scan(%+q) = %v, then %v", s, first, again)
			}
			checkShown(t, first[i].Excerpt)
		}
		if skel := Skeleton(s); Skeleton(skel) != skel {
			t.Errorf("Skeleton(%+q) = %+q, want it unchanged", skel, Skeleton(skel))
		}
		for _, f := range NameFindings(s) {
			checkShown(t, f.Excerpt)
		}
	})
}
