package glob

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// simple is the simplest implementation of Path. It takes exponential time.
func simple(parts, names []string) bool {
	switch {
	case len(parts) == 0:
		return len(names) == 0
	case parts[0] == "**":
		return simple(parts[1:], names) || len(names) > 0 && simple(parts, names[1:])
	}
	return len(names) > 0 && Name(parts[0], names[0], false) && simple(parts[1:], names[1:])
}

// simpleName is the simplest implementation of Name.
func simpleName(pattern, name string) bool {
	switch {
	case pattern == "":
		return name == ""
	case pattern[0] == '*':
		return simpleName(pattern[1:], name) || name != "" && simpleName(pattern, name[1:])
	}
	return name != "" && (pattern[0] == '?' || pattern[0] == name[0]) && simpleName(pattern[1:], name[1:])
}

func path(pattern, name string) bool {
	return Path(strings.Split(pattern, "/"), name, func(part, name string) bool { return Name(part, name, false) })
}

func TestPath(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"src/**", "src/a/b.go", true},
		{"src/**", "src", true},
		{"src/**/**", "src", true},
		{"src/**", "srcs/a", false},
		{"src/**/b.go", "src/b.go", true},
		{"src/**/b.go", "src/x/y/b.go", true},
		{"src/**/b.go", "src/x/b.gox", false},
		{"**/.git/**", "a/.git/hooks/x", true},
		{"**/.git/**", ".git", true},
		{"**/a/b/**/c", "a/a/b/b/c", true},
		{"**/a/b/**/c", "a/x/b/c", false},
		{"**/b/c", "b/b/c", true},
		{"/proc/*/environ", "/proc/1/environ", true},
		{"/proc/*/environ", "/proc/1/2/environ", false},
		{"/**", "/", false},
		{"/**", "/a", true},
		{"**/**", "/", true},
		{"*", "a/b", false},
	} {
		if got := path(c.pattern, c.path); got != c.want {
			t.Errorf("Path(%s, %s) = %v, want %v", c.pattern, c.path, got, c.want)
		}
	}
}

// TestPathIsLinear counts comparisons: many ** cost no more than the product of the
// numbers of parts and names.
func TestPathIsLinear(t *testing.T) {
	for _, stars := range []int{1, 12, 100} {
		parts := strings.Split(strings.Repeat("**/a/", stars)+"b", "/")
		names := 2000
		name := strings.TrimSuffix(strings.Repeat("a/", names), "/")
		compared := 0
		if Path(parts, name, func(part, name string) bool { compared++; return part == name }) {
			t.Errorf("%d stars: it matches", stars)
		}
		if most := len(parts) * names; compared > most {
			t.Errorf("%d stars: %d comparisons, want at most %d", stars, compared, most)
		}
	}
}

func TestPathAgreesWithTheSimpleOne(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from []string, most int) string {
		var out []string
		for range 1 + random.IntN(most) {
			out = append(out, from[random.IntN(len(from))])
		}
		return strings.Join(out, "/")
	}
	for range 200_000 {
		pattern, name := pick([]string{"**", "**", "a", "b", "*", "a*"}, 6), pick([]string{"a", "b", "ab"}, 7)
		if got, want := path(pattern, name), simple(strings.Split(pattern, "/"), strings.Split(name, "/")); got != want {
			t.Fatalf("Path(%s, %s) = %v, want %v", pattern, name, got, want)
		}
	}
}

func FuzzPath(f *testing.F) {
	f.Add("**/a/**/b", "x/a/y/b")
	f.Add("**/**/a*", "a/b/ab")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 12 || len(name) > 16 || strings.HasSuffix(name, "/") || name == "" {
			return // simple takes too long, or the path is not clean
		}
		if got, want := path(pattern, name), simple(strings.Split(pattern, "/"), strings.Split(name, "/")); got != want {
			t.Fatalf("Path(%q, %q) = %v, want %v", pattern, name, got, want)
		}
	})
}

func FuzzName(f *testing.F) {
	f.Add("a*b?c", "axxbyc")
	f.Add("*a*a*", "baab")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 10 || len(name) > 12 || strings.ContainsFunc(pattern+name, func(r rune) bool { return r > 126 }) {
			return
		}
		if got, want := Name(pattern, name, false), simpleName(pattern, name); got != want {
			t.Fatalf("Name(%q, %q) = %v, want %v", pattern, name, got, want)
		}
	})
}
