package chat

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEditor(t *testing.T) {
	tests := []struct {
		name, text string
		keys       string // names apart by blanks
		want       string // with | at the cursor
	}{
		{"left over a joined emoji", "a👨\u200d👩", "left", "a|👨\u200d👩"},
		{"backspace over a flag", "🇩🇪🇫🇷", "backspace", "🇩🇪|"},
		{"backspace over a mark", "xe\u0301", "backspace", "x|"},
		{"backspace over a line end", "a\n", "backspace", "a|"},
		{"right at the end", "a", "right", "a|"},
		{"delete", "ab", "home delete", "|b"},
		{"words", "one two-three", "alt-b alt-b ctrl-k", "one |"},
		{"cut and paste", "one two", "ctrl-w ctrl-a ctrl-y", "two|one "},
		{"ends of the line", "a\nbc\nd", "up ctrl-u", "a\n|c\nd"},
		{"ends of all", "a\nbc", "ctrl-home", "|a\nbc"},
		{"nothing before the start", "", "backspace ctrl-w ctrl-u left alt-b delete ctrl-y alt-d", "|"},
		{"a key that is none", "a", "f12", "a|"},
	}
	for _, tt := range tests {
		e := editor{}
		e.set(tt.text)
		for name := range strings.FieldsSeq(tt.keys) {
			if name == "up" {
				e.vertical(-1)
				continue
			}
			e.key(key{name: name})
		}
		if got := e.text[:e.at] + "|" + e.text[e.at:]; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestEditorVertical(t *testing.T) {
	e := editor{}
	e.set("a long line\n世界\n\tx")
	e.at = 5
	for _, want := range []int{len("a long line\n世界"), len("a long line\n世界\n\t")} {
		if !e.vertical(1) || e.at != want {
			t.Fatalf("down to %d, want %d", e.at, want)
		}
	}
	if e.vertical(1) {
		t.Error("there is a line under the last")
	}
	e.at = 0
	if e.vertical(-1) {
		t.Error("there is a line above the first")
	}
}

func TestContinued(t *testing.T) {
	for text, want := range map[string]string{`a\`: "a\n", `a\\`: "", "a": "", `\`: "\n"} {
		e := editor{}
		e.set(text)
		if got := e.continued(); got != (want != "") || got && e.text != want {
			t.Errorf("continued(%q) = %v, %q, want %q", text, got, e.text, want)
		}
	}
}

// TestEditorRapid: whatever is pressed, the cursor stands between characters
// and the layout shows it where it is.
func TestEditorRapid(t *testing.T) {
	names := []string{"left", "right", "home", "end", "backspace", "delete", "ctrl-w", "alt-d", "ctrl-u", "ctrl-k", "ctrl-y", "alt-b", "alt-f", "newline", "ctrl-home", "ctrl-end"}
	rapid.Check(t, func(t *rapid.T) {
		e := editor{}
		width, rows := rapid.IntRange(4, 40).Draw(t, "width"), rapid.IntRange(1, 6).Draw(t, "rows")
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				e.key(key{text: text().Draw(t, "text")})
			case 1:
				e.vertical(rapid.SampledFrom([]int{-1, 1}).Draw(t, "by"))
			case 2:
				e.key(key{name: "paste", text: rapid.String().Draw(t, "paste")})
			default:
				e.key(key{name: rapid.SampledFrom(names).Draw(t, "key")})
			}
			if e.at < 0 || e.at > len(e.text) {
				t.Fatalf("the cursor is at %d of %d", e.at, len(e.text))
			}
			lines, row, col := e.layout("❯ ", width, rows)
			if len(lines) > rows || row < 0 || row >= len(lines) || col > width {
				t.Fatalf("layout of %q: cursor at %d, %d of %d lines", e.text, row, col, len(lines))
			}
			for _, line := range lines {
				if columns(line) > max(width, 2+longestCluster(e.text)) {
					t.Fatalf("%q is wider than %d", line, width)
				}
			}
		}
	})
}

// longestCluster returns the columns of the widest character as it is shown.
func longestCluster(s string) int {
	most := 0
	for s != "" {
		n, _ := cluster(s)
		most = max(most, columns(shown(s[:n])))
		s = s[n:]
	}
	return most
}

func TestHistory(t *testing.T) {
	file := t.TempDir() + "/history"
	h, err := openHistory(file)
	if err != nil {
		t.Fatal(err)
	}
	for range 2*mostHistory + 1 {
		for _, s := range []string{"a", "b\nc"} {
			if err := h.add(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	if h, err = openHistory(file); err != nil || len(h.entries) != mostHistory {
		t.Fatalf("openHistory: %d entries, %v, want %d", len(h.entries), err, mostHistory)
	}
	if h, err = openHistory(file); err != nil || len(h.entries) != mostHistory || h.entries[mostHistory-1] != "b\nc" {
		t.Fatalf("after it was shortened: %d entries, %v", len(h.entries), err)
	}
	if _, err := openHistory(t.TempDir()); err == nil {
		t.Error("a folder is read as a history")
	}
	if (&history{file: t.TempDir()}).add("x") == nil {
		t.Error("a folder is written as a history")
	}
}
