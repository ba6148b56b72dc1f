//go:build unix

package embed

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// BenchmarkBuiltin measures the model that is shipped.
func BenchmarkBuiltin(b *testing.B) {
	m := Builtin()
	b.Run("query", func(b *testing.B) {
		dst := make([]float32, 0, m.Dimensions())
		b.ReportAllocs()
		for b.Loop() {
			dst = m.Append(dst[:0], query)
		}
	})
	b.Run("catalog", func(b *testing.B) {
		texts, dst := tools(b), make([]float32, 0, m.Dimensions())
		var before, after syscall.Rusage
		must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &before))
		for b.Loop() {
			for _, text := range texts {
				dst = m.Append(dst[:0], text)
			}
		}
		must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
		used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
		b.ReportMetric(float64(used)/1e6/float64(b.N), "cpu-ms/op")
		b.ReportMetric(float64(len(builtin))/1e6, "weights-MB")
	})
}

// tools returns the texts of the npm-mcp catalog, much as the catalog writes them.
func tools(tb testing.TB) []string {
	tb.Helper()
	bench := os.Getenv("KEN_BENCH")
	if bench == "" {
		tb.Skip("KEN_BENCH is not set: no real catalog to read")
	}
	f, err := os.Open(filepath.Join(bench, "catalog", "npm-mcp", "corpus.jsonl"))
	must(tb, err)
	defer f.Close()
	var texts []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var tool struct {
			Name, Description, Category string
			Schema                      struct{ Properties map[string]json.RawMessage } `json:"input_schema"`
		}
		must(tb, json.Unmarshal(lines.Bytes(), &tool))
		params := slices.Sorted(maps.Keys(tool.Schema.Properties))
		text := fmt.Sprintf("%s (%s). %s\nParameters: %s", strings.ReplaceAll(tool.Name, "_", " "), tool.Name, tool.Description, strings.Join(params, ", "))
		texts = append(texts, text[:min(len(text), 1200)])
	}
	if lines.Err() != nil || len(texts) < 6000 {
		tb.Fatalf("%d tools read, want over 6,000 (%v)", len(texts), lines.Err())
	}
	return texts
}
