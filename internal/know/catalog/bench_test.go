//go:build unix

package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/know/source"
	"ken/internal/know/source/parsecache"
)

// cpu returns the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCatalogFromScratch and BenchmarkCatalogFromCache load a catalog of
// 6,067 real tools on one core, down to the snapshot.
func BenchmarkCatalogFromScratch(b *testing.B) { benchmarkCatalog(b, nil) }

func BenchmarkCatalogFromCache(b *testing.B) {
	benchmarkCatalog(b, &parsecache.Cache{Dir: filepath.Join(b.TempDir(), "cache")})
}

func benchmarkCatalog(b *testing.B, cache *parsecache.Cache) {
	dir := os.Getenv("KEN_BENCH")
	if dir == "" {
		b.Skip("KEN_BENCH is not set: the real catalogs are elsewhere")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	load := func() int {
		tree := source.NewTree(source.TreeConfig{
			Path: filepath.Join(dir, "catalog", "npm-mcp", "corpus.jsonl"), Trust: capability.TrustUser, Cache: cache,
		})
		defer tree.Close()
		c, err := New(Config{Sources: []capability.Source{tree}})
		must(b, err)
		must(b, c.Load(b.Context()))
		return c.Snapshot().Len()
	}
	if cache != nil {
		load()
	}
	var used time.Duration
	for b.Loop() {
		before := cpu(b)
		if n := load(); n != 6067 {
			b.Fatalf("%d capabilities, want 6067", n)
		}
		used += cpu(b) - before
	}
	b.ReportMetric(float64(used.Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// BenchmarkCatalogChange changes one file of 10,000 and makes the new snapshot:
// all that happens after the debounce.
func BenchmarkCatalogChange(b *testing.B) {
	dir := b.TempDir()
	card := func(i, version int) string {
		return fmt.Sprintf("---\ncapability_id: card-%05d\ndescription: Does one thing of many\ntriggers:\n  keywords: [thing-%d, one]\n---\nVersion %d of a card.\n", i, i, version)
	}
	file := func(i int) string { return filepath.Join(dir, "cards", fmt.Sprintf("card-%05d.md", i)) }
	must(b, os.Mkdir(filepath.Join(dir, "cards"), 0o755))
	for i := range 10_000 {
		must(b, os.WriteFile(file(i), []byte(card(i, 0)), 0o644))
	}
	tree := source.NewTree(source.TreeConfig{Name: "tree", Path: dir, Trust: capability.TrustUser})
	defer tree.Close()
	c, err := New(Config{Sources: []capability.Source{tree}})
	must(b, err)
	must(b, c.Load(b.Context()))
	var used time.Duration
	for n := 1; b.Loop(); n++ {
		changed := file(n % 10_000)
		must(b, os.WriteFile(changed, []byte(card(n%10_000, n)), 0o644))
		before := cpu(b)
		batch, err := tree.Refresh(b.Context(), []string{changed})
		must(b, err)
		if s := c.Replace("tree", batch); len(s.Changes()) != 1 {
			b.Fatalf("%d changes, want 1", len(s.Changes()))
		}
		used += cpu(b) - before
	}
	b.ReportMetric(float64(used.Microseconds())/1000/float64(b.N), "cpu-ms/op")
}
