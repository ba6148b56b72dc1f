package app

import (
	"bytes"
	"context"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ken/internal/door"
	"ken/internal/find/ranking"
	"ken/internal/know/embed/remote"
	"ken/internal/know/index"
	second "ken/internal/know/reader"
)

// BenchmarkReading reports what the second reader takes for the large catalog:
// read for the first time, ten times what every tenth of it takes; read from what
// was kept, all of it; and what a search takes while it reads.
func BenchmarkReading(b *testing.B) {
	dir := corpora(b)
	if !second.Supported() {
		b.Skip("cannot here: there are no kernels for this processor")
	}
	all, err := os.ReadFile(filepath.Join(dir, "catalog", "npm-mcp", "corpus.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	var tenth []byte
	n := 0
	for line := range bytes.Lines(all) {
		if n++; n%10 == 0 {
			tenth = append(tenth, line...)
		}
	}
	for b.Loop() {
		a := openToRead(b, tenth)
		var took []time.Duration
		words := []string{"open an issue about the login page", "what is the weather in Rome", "send a message to the team", "query the database for late orders"}
		start := time.Now()
		done := a.Vectors.Start()
		var read time.Duration
		for i := 0; read == 0; i++ {
			select {
			case <-done:
				read = time.Since(start)
			case <-time.After(5 * time.Millisecond):
				before := time.Now()
				if _, err := a.Door.Find(b.Context(), a.View(), door.Query{Text: words[i%len(words)]}); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(before))
			}
		}
		slices.Sort(took)
		b.ReportMetric(10*read.Seconds(), "s")
		b.ReportMetric(float64(took[len(took)/2].Microseconds()), "find-p50-us")

		a = openToRead(b, all)
		keepVectors(b, a, filepath.Join(a.Places.Cache, "vectors"))
		start = time.Now()
		a.Vectors.Wait(b.Context())
		b.ReportMetric(float64(time.Since(start).Microseconds())/1e3, "kept-ms")
		if _, n := ranking.IndexOf(a.Catalog.Snapshot()).Segment.Vectors(); n != len(a.Catalog.Snapshot().Entries()) {
			b.Fatalf("%d of %d capabilities have vectors", n, len(a.Catalog.Snapshot().Entries()))
		}
	}
}

// openToRead opens Ken with the second reader over a catalog whose index is made.
func openToRead(b *testing.B, corpus []byte) *App {
	b.Helper()
	catalog := filepath.Join(b.TempDir(), "tools.jsonl")
	write(b, catalog, string(corpus))
	a := alone(b, bothModels, Config{Catalogs: []string{catalog}})
	ranking.IndexOf(a.Catalog.Snapshot())
	if _, err := a.Door.Find(b.Context(), a.View(), door.Query{Text: "hello"}); err != nil {
		b.Fatal(err)
	}
	return a
}

// quick has the name of the second reader, and reads nothing but short texts: the
// one that tells models apart is among them.
type quick struct{ *readerModel }

type readerModel = second.Model

func (q quick) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if len(text) < 30 {
			out[i] = q.Append(nil, text)
			continue
		}
		h := fnv.New64()
		_, _ = h.Write([]byte(text))
		random := rand.New(rand.NewPCG(h.Sum64(), 1))
		out[i] = make([]float32, q.Dimensions())
		for k := range out[i] {
			out[i][k] = random.Float32() - 0.5
		}
	}
	return out, ctx.Err()
}

// keepVectors leaves vectors for all capabilities where they are kept.
func keepVectors(b *testing.B, a *App, dir string) {
	b.Helper()
	var texts []string
	for _, e := range a.Catalog.Snapshot().Entries() {
		if d, ok := index.DocumentOf(e.Capability); ok {
			texts = append(texts, d.Text())
		}
	}
	cache := remote.NewCache(quick{second.Builtin()}, dir)
	for part := range slices.Chunk(texts, 256) {
		if _, err := cache.Embed(b.Context(), part); err != nil {
			b.Fatal(err)
		}
	}
	if err := cache.Trouble(); err != nil {
		b.Fatal(err)
	}
}
