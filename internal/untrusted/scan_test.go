package untrusted

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// A scanCase is one line of testdata/scan.txt.
type scanCase struct {
	line int
	want Severity
	text string
}

func scanCases(t testing.TB) []scanCase {
	t.Helper()
	data, err := os.ReadFile("testdata/scan.txt")
	if err != nil {
		t.Fatal(err)
	}
	severities := map[string]Severity{"none": 0, "soft": Soft, "hard": Hard}
	var out []scanCase
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, text, _ := strings.Cut(line, " ")
		want, ok := severities[word]
		if !ok {
			t.Fatalf("testdata/scan.txt:%d: unknown severity %q", i+1, word)
		}
		text = strings.TrimSpace(text)
		if s, err := strconv.Unquote(text); err == nil {
			text = s
		}
		out = append(out, scanCase{i + 1, want, text})
	}
	return out
}

// TestT07SanitiserCorpus covers full-width colons, zero-width and bidi
// characters, nested tags, fenced text, and benign text with the same words.
func TestT07SanitiserCorpus(t *testing.T) {
	for _, c := range scanCases(t) {
		found := Scan(c.text)
		if got := Worst(found); got != c.want {
			t.Errorf("scan.txt:%d: Scan(%+q) = %v, want %v", c.line, c.text, found, c.want)
		}
	}
}

// TestRulesCompile expects that every expression is sound, for they are compiled
// only when they are needed.
func TestRulesCompile(t *testing.T) {
	for _, r := range compiledRules() {
		if r.re() == nil || r.beside == (len(r.near) > 0) {
			t.Errorf("rule %s: want an expression, and topics unless it stands beside others", r.name)
		}
	}
	for _, r := range compiledScriptRules() {
		if !strings.Contains(r.re().String(), r.stem[:len("忽")]) {
			t.Errorf("rule for %s has the expression %s, want its stem in it", r.stem, r.re())
		}
	}
}
