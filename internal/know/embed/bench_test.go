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

func BenchmarkQuery(b *testing.B) {
	m := full(b)
	dst := make([]float32, 0, m.Dimensions())
	b.ReportAllocs()
	for b.Loop() {
		dst = m.Append(dst[:0], query)
	}
}

// BenchmarkColdQuery asks other queries each time, so that their rows are not
// in the nearest caches.
func BenchmarkColdQuery(b *testing.B) {
	m := full(b)
	var texts []string
	for i := range uint32(4096) {
		var words []string
		for j := range uint32(12) {
			words = append(words, strings.TrimPrefix(m.Piece((i*12+j)*7919%m.count), continued))
		}
		texts = append(texts, strings.Join(words, " "))
	}
	dst := make([]float32, 0, m.Dimensions())
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		dst = m.Append(dst[:0], texts[i%len(texts)])
	}
}

func BenchmarkTokens(b *testing.B) {
	m := full(b)
	var room [MaxTokens + longestWord]uint32
	for name, text := range map[string]string{
		"query":   query,
		"accents": "où est la bibliothèque d'Hélène à Zürich, près du café",
		"chinese": "查找最近的新闻文章并发送给我",
		"unknown": strings.Repeat("qzxjkvwbqzxjkvwb", 6),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Tokens(room[:0], text)
			}
		})
	}
}

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
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			for _, text := range texts {
				dst = m.Append(dst[:0], text)
			}
		}
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
			b.Fatal(err)
		}
		used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
		b.ReportMetric(float64(used)/1e6/float64(b.N), "cpu-ms/op")
		b.ReportMetric(float64(len(builtin))/1e6, "weights-MB")
	})
}

// BenchmarkCatalog makes the vectors of all tools of a real catalog.
func BenchmarkCatalog(b *testing.B) {
	m, texts := full(b), tools(b)
	b.ReportMetric(float64(len(texts)), "tools")
	for b.Loop() {
		if _, err := m.Embed(b.Context(), texts); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	pieces := vocabulary(b)
	file := pack(b, "noise", pieces, noise(len(pieces), 256))
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		load(b, file)
	}
}

// tools returns the texts of the npm-mcp catalog, much as the catalog writes them.
func tools(tb testing.TB) []string {
	tb.Helper()
	bench := os.Getenv("KEN_BENCH")
	if bench == "" {
		tb.Skip("KEN_BENCH is not set: no real catalog to read")
	}
	f, err := os.Open(filepath.Join(bench, "catalog", "npm-mcp", "corpus.jsonl"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var texts []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var tool struct {
			Name, Description, Category string
			Schema                      struct{ Properties map[string]json.RawMessage } `json:"input_schema"`
		}
		if err := json.Unmarshal(lines.Bytes(), &tool); err != nil {
			tb.Fatal(err)
		}
		params := slices.Sorted(maps.Keys(tool.Schema.Properties))
		text := fmt.Sprintf("%s (%s). %s\nParameters: %s", strings.ReplaceAll(tool.Name, "_", " "), tool.Name, tool.Description, strings.Join(params, ", "))
		texts = append(texts, text[:min(len(text), 1200)])
	}
	if lines.Err() != nil || len(texts) < 6000 {
		tb.Fatalf("%d tools read, want over 6,000 (%v)", len(texts), lines.Err())
	}
	return texts
}
