package spelling

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestNearestID(t *testing.T) {
	known := []string{"mcp:attic/wipe", "wipe", "x", "tool:read_file", "read_file", "tool:web-browser"}
	for _, tt := range []struct{ asked, want string }{
		{"mcp:attic/nope", ""},
		{"mcp:attic/", ""},
		{"mcp:attic/wip", "mcp:attic/wipe"},
		{"mcp:attic/Wipe", "mcp:attic/wipe"},
		{"tool:reed_file", "tool:read_file"},
		{"tool:raed_fiel", "tool:read_file"},
		{"read-fil", "read_file"},
		{"web-browsr", ""}, // of the id, and no name is like it
		{"tool:web-browsr", "tool:web-browser"},
		{"mpc:attic/wipe", "mcp:attic/wipe"},
		{"tool:write_mail", ""},
		{"\x00", ""},
		{"y", ""},
		{"", ""},
	} {
		if got := NearestID(tt.asked, known); got != tt.want {
			t.Errorf("NearestID(%q) = %q, want %q", tt.asked, got, tt.want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"capabilities", "catalog", "serve", "open"}
	for in, want := range map[string]string{
		"capabilites": "capabilities", "catlaog": "catalog", "srve": "serve", "opn": "open", "per": "", "zzz": "", "": "",
	} {
		if got := Nearest(in, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestNearestLooksAtAll: the words that Nearest skips without a comparison are none
// that it would have chosen.
func TestNearestLooksAtAll(t *testing.T) {
	words := rapid.SliceOfN(rapid.StringMatching(`[a-dA-D_\- üß]{0,12}|[a-e]{60,70}`), 0, 20)
	rapid.Check(t, func(t *rapid.T) {
		known, asked := words.Draw(t, "known"), rapid.StringMatching(`[a-dA-D_\-ü]{0,14}`).Draw(t, "asked")
		runes := len([]rune(Fold(asked)))
		want, least := "", 1+max(1, min(2, runes-2), runes/3)
		for _, w := range known {
			if d := Distance(asked, w); d < least && runes-len(w) < least {
				want, least = w, d
			}
		}
		if got := Nearest(asked, known); got != want {
			t.Fatalf("Nearest(%q, %q) = %q, want %q", asked, known, got, want)
		}
	})
}

// BenchmarkNearestID looks for an id that is not there among 200,000 words.
func BenchmarkNearestID(b *testing.B) {
	var known []string
	for i := range 100_000 {
		name := fmt.Sprintf("%s_%s_%d", []string{"list", "create", "get", "update", "search"}[i%5], []string{"issue", "pull-request", "page", "event", "customer", "file"}[i%6], i)
		known = append(known, "tool:"+name, name)
	}
	for b.Loop() {
		NearestID("mcp:few/echo", known)
	}
}
