//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkPage measures the page as a person sees it, in a real browser: the
// numbers are those that the stories print. It needs Chromium, KEN_BENCH and
// KEN_NPM, which .ci/bench.sh sets.
func BenchmarkPage(b *testing.B) {
	if os.Getenv("KEN_BENCH") == "" {
		b.Skip("KEN_BENCH is not set")
	}
	with := findBrowser(b)
	for b.Loop() {
		out := b.TempDir()
		for _, story := range []string{"first-visit", "catalog-search"} {
			with.play(b, filepath.Join("..", "..", "testdata", "browser", story+".mjs"), out)
		}
		for metric, file := range map[string]string{
			"first-paint-ms": "first-paint", "typing-ms": "catalog-search-median", "typing-most-ms": "catalog-search-max", "graph-ms": "graph-drawn",
			"first-load-kB": "first-load",
		} {
			text, err := os.ReadFile(filepath.Join(out, file+".txt"))
			if err != nil {
				b.Fatal(err)
			}
			n, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(n, metric)
		}
	}
}
