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

func TestCommandTemplate(t *testing.T) {
	tests := []struct {
		in         string
		argv       []string
		parameters string
	}{
		{"echo {message}", []string{"echo", "{message}"}, "message"},
		{`echo "{message}"`, []string{"echo", "{message}"}, "message"},
		{"  echo\ta  ", []string{"echo", "a"}, ""},
		{`echo 'a b' "c d" e\ f`, []string{"echo", "a b", "c d", "e f"}, ""},
		{`echo '' ""`, []string{"echo", "", ""}, ""},
		{`echo a'b'"c"`, []string{"echo", "abc"}, ""},
		{`echo 'a\b' "a\b" "a\"b" "a\\b"`, []string{"echo", `a\b`, `a\b`, `a"b`, `a\b`}, ""},
		{"curl --url={url} {rest...}", []string{"curl", "--url={url}", "{rest...}"}, "url rest..."},
		{"cp {a} {b} {a}", []string{"cp", "{a}", "{b}", "{a}"}, "a b"},
		{"curl 'https://x.example/?a=1&b=2'", []string{"curl", "https://x.example/?a=1&b=2"}, ""},
		{"echo héllo {x-y}", []string{"echo", "héllo", "{x-y}"}, "x-y"},
		{"echo # not a comment", []string{"echo", "#", "not", "a", "comment"}, ""},
	}
	for _, tt := range tests {
		got, err := parseTemplate(tt.in)
		if err != nil {
			t.Errorf("parseTemplate(%q): %v", tt.in, err)
			continue
		}
		var names []string
		for _, p := range got.parameters {
			if p.list {
				p.name += "..."
			}
			names = append(names, p.name)
		}
		if diff := cmp.Diff(tt.argv, got.argv); diff != "" || strings.Join(names, " ") != tt.parameters {
			t.Errorf("parseTemplate(%q) = %q, %q, want %q, %q", tt.in, got.argv, names, tt.argv, tt.parameters)
		}
	}
}

func TestCommandTemplateRefuses(t *testing.T) {
	tests := []struct {
		in       string
		position int
		message  string
	}{
		{"echo a; id", 7, "; is not allowed"},
		{"echo a && id", 8, "& is not allowed"},
		{"echo a || id", 8, "| is not allowed"},
		{"echo a | id", 8, "| is not allowed"},
		{"echo a & id", 8, "& is not allowed"},
		{"echo '&&'", 7, "& is not allowed"},
		{"echo `id`", 6, "` is not allowed"},
		{"echo $HOME", 6, "$ is not allowed"},
		{"echo '$(id)'", 7, "$ is not allowed"},
		{`echo \$HOME`, 7, "$ is not allowed"},
		{"echo a > b", 8, "> is not allowed"},
		{"cat < b", 5, "< is not allowed"},
		{"echo a\nid", 7, "second line"},
		{"echo 'a\nb'", 8, "second line"},
		{"echo a\rid", 7, "second line"},
		{"echo \\\nid", 7, "second line"},
		{"echo a\x00b", 7, "control character"},
		{"echo \x1b[0m", 6, "control character"},
		{"echo \xff", 6, "UTF-8"},
		{"echo 'a", 6, "never closes"},
		{`echo é "a`, 8, "never closes"},
		{`echo a\`, 7, "protects nothing"},
		{"echo {", 6, "does not begin a parameter"},
		{"echo {}", 6, "does not begin a parameter"},
		{"echo {a b}", 6, "does not begin a parameter"},
		{"echo {{a}}", 6, "does not begin a parameter"},
		{"echo a}", 7, "closes nothing"},
		{`echo \{a}`, 7, "cannot be protected"},
		{"echo x{a...}", 9, "only a part of an argument"},
		{"echo {a} {a...}", 10, "one place and a list"},
		{"{program} a", 1, "program itself"},
		{"run-{x} a", 1, "program itself"},
		{"", 1, "empty"},
		{"   ", 1, "empty"},
		{strings.Repeat("a ", 300), 1, "300 arguments"},
		{strings.Repeat("a", MaxTemplate+1), 1, "bytes"},
	}
	for _, tt := range tests {
		got, err := parseTemplate(tt.in)
		if err == nil {
			t.Errorf("parseTemplate(%q) = %q, want a refusal", tt.in, got.argv)
			continue
		}
		if err.position != tt.position || !strings.Contains(err.message, tt.message) || err.fix == "" {
			t.Errorf("parseTemplate(%q): position %d: %s; %s, want position %d: %s", tt.in, err.position, err.message, err.fix, tt.position, tt.message)
		}
	}
}

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
