package files

import (
	"path"
	"strings"
	"testing"
)

func TestIgnore(t *testing.T) {
	tests := []struct {
		rules, path string
		dir         bool
		want        int // line that hides it; 0 for none
	}{
		{"a", "a", false, 1}, {"a", "b/a", false, 1}, {"a", "a/b", false, 1}, {"a", "ab", false, 0}, {"/a", "b/a", false, 0}, {"/a", "a", false, 1},
		{"b/a", "b/a", false, 1}, {"b/a", "c/b/a", false, 0}, {"a/", "a", false, 0}, {"a/", "a", true, 1}, {"a/", "a/b", false, 1},
		{"*.go", "x/y.go", false, 1}, {"*.go", "x/y.got", false, 0}, {"a?c", "abc", false, 1}, {"a?c", "a/c", false, 0}, {"[ab]x", "bx", false, 1}, {"[!ab]x", "bx", false, 0}, {"[!ab]x", "cx", false, 1},
		{"**/x", "x", false, 1}, {"**/x", "a/b/x", false, 1}, {"a/**", "a", true, 0}, {"a/**", "a/b", false, 1}, {"a/**/b", "a/b", false, 1}, {"a/**/b", "a/x/y/b", false, 1}, {"a/**/b", "a/x", false, 0},
		{"*\n!keep", "keep", false, 0}, {"*\n!keep", "other", false, 1}, {"d/\n!d/keep", "d/keep", false, 1}, {"x\n\n# c\nx", "x", false, 4},
		{`\#a`, "#a", false, 1}, {`\!a`, "!a", false, 1}, {"a ", "a", false, 1}, {`a\ `, "a ", false, 1}, {"ÄÖ", "äö", false, 1}, {".ENV", ".env", false, 1}, {"a\r\nb", "a", false, 1}, {"a", ".", true, 0},
	}
	for _, tt := range tests {
		ig, err := ParseIgnore(tt.rules)
		if err != nil {
			t.Errorf("ParseIgnore(%q) = %v", tt.rules, err)
			continue
		}
		if line, hidden := ig.Match(tt.path, tt.dir); hidden != (tt.want > 0) || hidden && line != tt.want {
			t.Errorf("%q on %s = line %d, %v, want line %d", tt.rules, tt.path, line, hidden, tt.want)
		}
	}
	for _, bad := range []string{"[a", "a//b", "a/../b", "/", "!", strings.Repeat("a/", 100) + "a", strings.Repeat("a", 2000), strings.Repeat("a\n", 3000)} {
		if _, err := ParseIgnore(bad); err == nil {
			t.Errorf("ParseIgnore(%.20q) = nil, want an error", bad)
		}
	}
}

// FuzzIgnore: no text breaks it, what is in a hidden folder is hidden, and a
// plain name hides itself.
func FuzzIgnore(f *testing.F) {
	for _, s := range []string{"a", "*.go", "/a/", "!a", "[a-z]", "**/a/**", "a\\", "# x", "\\#", "a/**/b/**/c"} {
		f.Add(s, "a/b/c")
	}
	f.Fuzz(func(t *testing.T, rules, name string) {
		ig, err := ParseIgnore(rules)
		if err != nil {
			return
		}
		name = strings.TrimPrefix(path.Clean("/"+name), "/")
		if name == "" {
			return
		}
		if _, hidden := ig.Match(name, true); hidden {
			if _, inner := ig.Match(name+"/x", false); !inner {
				t.Fatalf("%q hides %q and not what is in it", rules, name)
			}
		}
		if plain := !strings.ContainsAny(name, "/*?[]\\!# \t\r\n") && len(name) < 1000 && strings.EqualFold(strings.ToLower(name), name); plain {
			own, err := ParseIgnore(name)
			if err != nil {
				return
			}
			if _, hidden := own.Match("d/"+name, false); !hidden {
				t.Fatalf("%q does not hide itself", name)
			}
		}
	})
}
