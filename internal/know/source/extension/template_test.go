package extension

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ken/internal/testkit/sourcetest"
)

// TestCommandTemplateQuoting: whatever arguments were quoted come back whole.
func TestCommandTemplateQuoting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		args := rapid.SliceOfN(rapid.StringMatching(`[a-z \t"\\#*?!~&=é]{0,8}`), 0, 6).Draw(t, "args")
		text := "run"
		want := []string{"run"}
		for _, a := range args {
			if strings.Contains(a, "&&") {
				continue
			}
			want = append(want, a)
			text += " '" + a + "'"
		}
		got, err := parseTemplate(text)
		if err != nil || !cmp.Equal(got.argv, want) {
			t.Fatalf("parseTemplate(%q) = %q, %v, want %q", text, got.argv, err, want)
		}
	})
}

func FuzzCommandTemplate(f *testing.F) {
	for _, s := range []string{"echo {message}", `a 'b c' "d\"e" f\ g`, "x {a...} --k={b}", "a;b", "'", `\`, "{", "a\x00", "é 'ü'", "a && b", "`id`"} {
		f.Add(s)
	}
	whole := regexp.MustCompile(`\{[A-Za-z_][A-Za-z0-9_-]*(\.\.\.)?\}`)
	sourcetest.SeedAttacks(f, func(text, _ string) { f.Add("echo " + text + " {m}") })
	f.Fuzz(func(t *testing.T, text string) {
		watchdog := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("parseTemplate(%q) hangs", text)) })
		defer watchdog.Stop()
		got, err := parseTemplate(text)
		if err != nil {
			if err.position < 1 || err.message == "" || err.fix == "" {
				t.Fatalf("parseTemplate(%q): %+v does not say where, what and the fix", text, err)
			}
			return
		}
		for _, a := range got.argv {
			if strings.ContainsAny(a, ";|`$><\n\r\x00") || strings.Contains(a, "&&") {
				t.Fatalf("parseTemplate(%q) lets %q through", text, a)
			}
			if rest := whole.ReplaceAllString(a, ""); strings.ContainsAny(rest, "{}") {
				t.Fatalf("parseTemplate(%q): %q has a brace that is no parameter", text, a)
			}
		}
	})
}
