package ken_test

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ken/internal/testkit"
)

// TestCoverage checks docs/coverage.md: every item of the inventory has a row,
// and every test it names exists.
func TestCoverage(t *testing.T) {
	testkit.CI(t, "it reads the source")
	f, err := os.Open("docs/coverage.md")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tests := testNames(t)
	ids, complaints := coverageProblems(bufio.NewScanner(f), func(name string) bool {
		if script, ok := strings.CutPrefix(name, "script/"); ok {
			_, err := os.Stat(filepath.Join("testdata", "script", script))
			return err == nil
		}
		return tests[name]
	})
	if len(ids) == 0 {
		t.Error("docs/coverage.md has no rows")
	}
	for _, c := range append(complaints, uncovered(ids)...) {
		t.Error(c)
	}
}

// inventory returns how many items each section of the inventory has. They are
// numbered from 1 without gaps.
var inventory = []struct {
	format string
	items  int
}{
	{"S1.%02d", 92}, {"S1.U%02d", 16},
	{"S2.%02d", 79}, {"S2.U%02d", 13},
	{"S3.%02d", 43}, {"S3.U%02d", 9},
	{"S4.%02d", 59}, {"S4.U%02d", 10},
	{"S5.%02d", 68}, {"S5.U%02d", 12},
	{"C%02d", 34}, {"T%02d", 20},
}

// uncovered returns the items of the inventory that have no row, and the rows
// that match no item. Rows of the critique (K) exist only where they say more
// than the inventory.
func uncovered(ids []string) (complaints []string) {
	want := map[string]bool{}
	for _, section := range inventory {
		for i := range section.items {
			id := fmt.Sprintf(section.format, i+1)
			want[id] = true
			if !slices.Contains(ids, id) {
				complaints = append(complaints, id+": has no row")
			}
		}
	}
	for _, id := range ids {
		if !want[id] && !strings.HasPrefix(id, "K") {
			complaints = append(complaints, id+": is not an item of the inventory")
		}
	}
	return complaints
}

// TestUncoveredCatches: missing and superfluous rows are named.
func TestUncoveredCatches(t *testing.T) {
	var all []string
	for _, section := range inventory {
		for i := range section.items {
			all = append(all, fmt.Sprintf(section.format, i+1))
		}
	}
	if got := uncovered(append(all, "K0.06")); len(got) > 0 {
		t.Errorf("with all rows: %q", got)
	}
	without := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return id == "S5.62" || id == "T20" })
	if got, want := uncovered(append(without, "S5.69")), []string{"S5.62: has no row", "T20: has no row", "S5.69: is not an item of the inventory"}; !slices.Equal(got, want) {
		t.Errorf("without two rows = %q, want %q", got, want)
	}
}

// TestCoverageCatches shows that each rule can fail.
func TestCoverageCatches(t *testing.T) {
	exists := func(name string) bool { return name == "TestThere" || name == "script/there.txtar" }
	tests := []struct{ rows, want string }{
		{"| S1.01 | words | done | TestThere |", ""},
		{"| S1.U03 | words | done | `TestThere`, script/there.txtar |", ""},
		{"| T06 | words | open | comes with the runner |", ""},
		{"| C10 | words | refused | docs/decisions/x.md |", ""},
		{"| S1.1 | words | done | TestThere |", "not an id"},
		{"| S1.01 | words | done | TestGone |", "TestGone does not exist"},
		{"| S1.01 | words | done | by hand |", "names no test"},
		{"| S1.01 | words | open |  |", "says no reason"},
		{"| S1.01 | words | nearly | TestThere |", "state"},
		{"| S1.01 |  | done | TestThere |", "no words"},
		{"| S1.01 | words | done |", "cells"},
		{"| S1.01 | a | done | TestThere |\n| S1.01 | b | done | TestThere |", "twice"},
	}
	for _, tt := range tests {
		_, got := coverageProblems(bufio.NewScanner(strings.NewReader(tt.rows)), exists)
		if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
			t.Errorf("rows %q: %q, want %q", tt.rows, got, tt.want)
		}
	}
}

var (
	coverageID   = regexp.MustCompile(`^(S[1-5]\.(U?[0-9]{2})|[CT][0-9]{2}|K[0-5]\.[0-9]{2})$`)
	coverageTest = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark|Example)[A-Z]\w*|script/[\w-]+\.txtar`)
)

func coverageProblems(in *bufio.Scanner, exists func(string) bool) (ids, complaints []string) {
	seen := map[string]bool{}
	for in.Scan() {
		line := strings.TrimSpace(in.Text())
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| id ") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 4 {
			complaints = append(complaints, fmt.Sprintf("%s: %d cells, want 4", line, len(cells)))
			continue
		}
		id, words, state, test := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3])
		complain := func(format string, a ...any) {
			complaints = append(complaints, id+": "+fmt.Sprintf(format, a...))
		}
		if !coverageID.MatchString(id) {
			complain("is not an id of the inventory")
		}
		if seen[id] {
			complain("stands here twice")
		}
		seen[id] = true
		ids = append(ids, id)
		if words == "" {
			complain("has no words")
		}
		switch state {
		case "done":
			named := coverageTest.FindAllString(test, -1)
			if len(named) == 0 {
				complain("is done but names no test")
			}
			for _, name := range named {
				if !exists(name) {
					complain("%s does not exist", name)
				}
			}
		case "open", "refused":
			if test == "" {
				complain("is %s and says no reason", state)
			}
		default:
			complain("state %q, want done, open or refused", state)
		}
	}
	return ids, complaints
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)

// testNames gathers every test function of the tree.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, "_test.go") {
			return err
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(src), -1) {
			names[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
