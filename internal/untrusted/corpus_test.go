package untrusted

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/internal/testkit"
)

// A sample is one row of the attack corpora.
type sample struct {
	Text, Label, Kind, Shadows string
}

// attacks reads a corpus of attacks, or skips the test.
func attacks(t testing.TB, name string) []sample {
	dir := os.Getenv("KEN_ATTACKS")
	if dir == "" {
		t.Skip("KEN_ATTACKS is not set: it names the directory of the attack corpora")
	}
	return rows[sample](t, filepath.Join(dir, name))
}

// A tool is one row of a catalog.
type tool struct {
	ID, Name, Description string
	InputSchema           any    `json:"input_schema"`
	ServerDescription     string `json:"server_description"`
}

// catalog reads a catalog of real tools, or skips the test.
func catalog(t testing.TB, name string) []tool {
	dir := os.Getenv("KEN_BENCH")
	if dir == "" {
		t.Skip("KEN_BENCH is not set: it names the directory of the catalogs")
	}
	return rows[tool](t, filepath.Join(dir, "catalog", name, "corpus.jsonl"))
}

func rows[T any](t testing.TB, path string) []T {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []T
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var row T
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatalf("%s: row %d: %v", path, len(out)+1, err)
		}
		out = append(out, row)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// texts returns every string of a tool that a model would see.
func (c tool) texts() []string {
	out := []string{c.Name, c.Description}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for k, e := range v {
				out = append(out, k)
				walk(e)
			}
		}
	}
	walk(c.InputSchema)
	slices.Sort(out[2:])
	return out
}

func (c tool) scan() []Finding {
	var found []Finding
	for _, s := range c.texts() {
		found = append(found, Scan(s)...)
	}
	return found
}

func TestUnicodeSmuggling(t *testing.T) {
	var hard, soft, malicious, falseAlarms, benign int
	for _, s := range attacks(t, "unicode_smuggling.jsonl") {
		found := Scan(s.Text)
		if s.Label == "benign" {
			benign++
			if len(found) > 0 {
				falseAlarms++
				t.Errorf("Scan of benign %s = %v, want nothing", s.Kind, found)
			}
			continue
		}
		malicious++
		switch Worst(found) {
		case Hard:
			hard++
		case Soft:
			soft++
		default:
			t.Logf("missed %s: %s", s.Kind, Line(s.Text, 200))
		}
	}
	t.Logf("malicious: %d hard and %d soft of %d; benign: %d flagged of %d", hard, soft, malicious, falseAlarms, benign)
	if flagged := hard + soft; flagged*100 < malicious*95 {
		t.Errorf("flagged %d of %d malicious texts, want 95%%", flagged, malicious)
	}
	if malicious != 81 || benign != 11 {
		t.Errorf("corpus has %d malicious and %d benign rows, want 81 and 11", malicious, benign)
	}
}

func TestLargeRealCatalogs(t *testing.T) {
	testkit.CI(t, "whole catalogs")
	for _, c := range []struct {
		name string
		rows int
	}{{"npm-mcp", 6067}, {"toucan", 14938}} {
		t.Run(c.name, func(t *testing.T) {
			tools := catalog(t, c.name)
			var hard, soft int
			byRule := map[string]int{}
			for _, tool := range tools {
				found := tool.scan()
				switch Worst(found) {
				case Hard:
					hard++
				case Soft:
					soft++
				}
				for _, f := range found {
					byRule[f.Rule]++
					t.Logf("%s: %v", tool.ID, f)
				}
			}
			t.Logf("%d hard and %d soft of %d; by rule %v", hard, soft, len(tools), byRule)
			if hard*1000 > len(tools)*3 {
				t.Errorf("%d of %d real tools are Hard, want at most 0.3%%", hard, len(tools))
			}
			if len(tools) != c.rows {
				t.Errorf("catalog has %d rows, want %d", len(tools), c.rows)
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	tools := catalog(b, "npm-mcp")
	var texts []string
	var n int64
	for _, t := range tools {
		for _, s := range t.texts() {
			texts = append(texts, s)
			n += int64(len(s))
		}
	}
	b.SetBytes(n)
	for b.Loop() {
		for _, s := range texts {
			Scan(s)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n)*1024, "µs/KB")
}

// BenchmarkScanWorst repeats what makes rules run. The cost stays linear, and
// [MaxScan] bounds it.
func BenchmarkScanWorst(b *testing.B) {
	for _, piece := range []string{"ignore ", "ignore all previous instructions ", "do not tell the user ", "1gn0r3 ", "<important>", "send ~/.ssh ", "a\u200b"} {
		for _, size := range []int{MaxScan / 4, MaxScan} {
			text := strings.Repeat(piece, size/len(piece))
			b.Run(fmt.Sprintf("%s/%dKB", strings.TrimSpace(strings.ReplaceAll(piece, " ", "_")), size>>10), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					Scan(text)
				}
			})
		}
	}
}
