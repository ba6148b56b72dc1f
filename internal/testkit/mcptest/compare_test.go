package mcptest

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestClaims checks that the numbers that README.md takes from docs/benchmarks.md are
// there.
func TestClaims(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	measured, err := os.ReadFile("../../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	known := strings.ReplaceAll(string(measured), ",", "")
	n := 0
	for _, paragraph := range strings.Split(string(readme), "\n\n") {
		if !strings.Contains(paragraph, "docs/benchmarks.md") {
			continue
		}
		for _, number := range regexp.MustCompile(`\d[\d,.]*\d|\d`).FindAllString(paragraph, -1) {
			n++
			if number = strings.ReplaceAll(number, ",", ""); !regexp.MustCompile(`\b` + regexp.QuoteMeta(number) + `\b`).MatchString(known) {
				t.Errorf("README.md says %s, and docs/benchmarks.md does not", number)
			}
		}
	}
	if n == 0 {
		t.Error("README.md takes no number from docs/benchmarks.md")
	}
}
