package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	dotted  = regexp.MustCompile("(?:^|[ `('\"])((?:[a-z][A-Za-z0-9]*)(?:\\.[A-Za-z][A-Za-z0-9]*)+)")
	toBeSet = regexp.MustCompile("(?:set|lower|raise|correct|adjust) `?([a-z][A-Za-z]*)`? to\\b|(?:lower|raise) `([a-z][A-Za-z]*)`")
)

// wrongSettings returns the settings that a text names and that do not exist.
func wrongSettings(text string, names []string) []string {
	sections := map[string]bool{}
	for _, n := range names {
		first, _, _ := strings.Cut(n, ".")
		sections[first] = true
	}
	known := func(word string) bool {
		return slices.ContainsFunc(names, func(n string) bool {
			return n == word || strings.HasPrefix(n, word+".") || strings.HasPrefix(word, n+".")
		})
	}
	var out []string
	for _, m := range dotted.FindAllStringSubmatch(text, -1) {
		word := m[1]
		first, _, _ := strings.Cut(word, ".")
		if sections[first] && !known(word) && !slices.Contains([]string{".json", ".jsonl", ".yaml", ".log", ".key", ".db", ".md"}, filepath.Ext(word)) {
			out = append(out, word)
		}
	}
	for _, m := range toBeSet.FindAllStringSubmatch(text, -1) {
		if word := m[1] + m[2]; word != "it" && !known(word) {
			out = append(out, word)
		}
	}
	return out
}

// notSettings returns names that look like settings but are not.
func notSettings() []string {
	return []string{
		"available",                     // a column of a table of capabilities
		"mcp.server.operation.duration", // a metric of OpenTelemetry
	}
}

// TestTextsNameSettingsThatAreThere checks the names of settings in every text
// of the program that could tell a person what to set.
func TestTextsNameSettingsThatAreThere(t *testing.T) {
	var names []string
	for _, s := range settings() {
		names = append(names, s.name)
	}
	for text, want := range map[string]string{
		"set isolation to best-effort": "isolation", "lower `isolation`": "isolation", "raise sandbox.memroy": "sandbox.memroy",
		"set sandbox.require to off": "", "see policy.modes.code.groups": "",
	} {
		if got := strings.Join(wrongSettings(text, names), " "); got != want {
			t.Errorf("control: %q: %q, want %q", text, got, want)
		}
	}
	seen := 0
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "testdata" {
			return err
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.Field:
				return n.Tag == nil // skip struct tags
			case *ast.BasicLit:
				text, err := strconv.Unquote(n.Value)
				if n.Kind != token.STRING || err != nil {
					return true
				}
				for _, m := range dotted.FindAllStringSubmatch(text, -1) {
					if slices.Contains(names, m[1]) {
						seen++
					}
				}
				if !strings.Contains(text, " ") {
					return true // a name, not a text
				}
				for _, word := range wrongSettings(text, names) {
					if !slices.Contains(notSettings(), word) {
						t.Errorf("%s: %q names the setting %s, which is not there", set.Position(n.Pos()), text, word)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 100 {
		t.Errorf("the texts name settings %d times, want many: is the test looking at them?", seen)
	}
}
