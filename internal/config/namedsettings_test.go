package config

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ken/internal/testkit"
)

var (
	dotted  = regexp.MustCompile("(?:^|[ `('\"])((?:[a-z][A-Za-z0-9]*)(?:\\.[A-Za-z][A-Za-z0-9]*)+)")
	toBeSet = regexp.MustCompile("(?:set|lower|raise|correct|adjust) `?([a-z][A-Za-z]*)`? to\\b|(?:lower|raise) `([a-z][A-Za-z]*)`")
)

// TestTextsNameSettingsThatAreThere: a text of the program that tells a person what
// to set names a setting that exists.
func TestTextsNameSettingsThatAreThere(t *testing.T) {
	testkit.CI(t, "reads all texts of the program")
	var names, sections []string
	for _, s := range settings() {
		section, _, _ := strings.Cut(s.name, ".")
		names, sections = append(names, s.name), append(sections, section)
	}
	known := func(word string) bool {
		return word == "mcp.server.operation.duration" || // a metric of OpenTelemetry
			slices.ContainsFunc(names, func(n string) bool {
				return n == word || strings.HasPrefix(n, word+".") || strings.HasPrefix(word, n+".")
			})
	}
	files := []string{".json", ".jsonl", ".yaml", ".log", ".key", ".db", ".md"}
	seen := 0
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "testdata" {
			return err
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(p)
		var s scanner.Scanner
		s.Init(token.NewFileSet().AddFile(p, -1, len(src)), src, nil, 0)
		for tok := token.ILLEGAL; tok != token.EOF; {
			var lit string
			if _, tok, lit = s.Scan(); tok != token.STRING || !strings.Contains(lit, " ") || lit[0] == '`' && strings.Contains(lit, `:"`) {
				continue // no text, or the tag of a field
			}
			text, err := strconv.Unquote(lit)
			if err != nil {
				return err
			}
			for _, m := range dotted.FindAllStringSubmatch(text, -1) {
				section, _, _ := strings.Cut(m[1], ".")
				if seen++; slices.Contains(sections, section) && !known(m[1]) && !slices.Contains(files, filepath.Ext(m[1])) {
					t.Errorf("%s: %q names the setting %s, which is not there", p, text, m[1])
				}
			}
			for _, m := range toBeSet.FindAllStringSubmatch(text, -1) {
				if word := m[1] + m[2]; word != "it" && word != "available" && !known(word) {
					t.Errorf("%s: %q names the setting %s, which is not there", p, text, word)
				}
			}
		}
		return err
	})
	if err != nil || seen < 100 {
		t.Errorf("the texts name settings %d times, want many: is the test looking at them? (%v)", seen, err)
	}
}
