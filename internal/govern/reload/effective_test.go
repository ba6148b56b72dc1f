package reload

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/internal/config"
	"ken/internal/testkit"
)

// TestEveryKeyHasATimeToApply: every key is in one of the two tables, and
// nothing else is.
func TestEveryKeyHasATimeToApply(t *testing.T) {
	named := map[string]int{}
	for _, name := range slices.Concat(liveKeys(), restartKeys()) {
		named[name]++
	}
	for _, s := range config.Default().Settings() {
		section, _, _ := strings.Cut(s.Key, ".")
		n, starred := named[s.Key], named[section+".*"]
		if n > 1 || starred > 1 || n+starred == 0 {
			t.Errorf("%s is named %d times and its section %d times, want one of them once", s.Key, n, starred)
		}
		named[s.Key] = 0
	}
	for name, n := range named {
		section, star := strings.CutSuffix(name, ".*")
		known := star && slices.ContainsFunc(config.Default().Settings(), func(s config.Setting) bool { return strings.HasPrefix(s.Key, section+".") })
		if n > 0 && !known {
			t.Errorf("%s is named, and there is no such key", name)
		}
	}
}

// TestDocumentedWhenKeysApply checks that docs/configuration.md lists the same
// keys.
func TestDocumentedWhenKeysApply(t *testing.T) {
	text := testkit.Must(os.ReadFile(filepath.Join("..", "..", "..", "docs", "configuration.md")))(t)
	row := func(begins string) []string {
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "| "+begins+" |"); ok {
				var names []string
				for i, word := range strings.Split(rest, "`") {
					if i%2 == 1 {
						names = append(names, word)
					}
				}
				slices.Sort(names)
				return names
			}
		}
		t.Fatalf("docs/configuration.md has no row %q", begins)
		return nil
	}
	if got, want := row("to the next turn or call"), slices.Sorted(slices.Values(liveKeys())); !slices.Equal(got, want) {
		t.Errorf("documented to apply to the next turn or call:\n%v, want\n%v", got, want)
	}
	want := slices.Sorted(slices.Values(slices.DeleteFunc(restartKeys(), func(s string) bool { return strings.HasSuffix(s, "Roots") })))
	if got := row("after a restart"); !slices.Equal(got, want) {
		t.Errorf("documented to apply after a restart:\n%v, want\n%v", got, want)
	}
}
