//go:build unix

package discover

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/find/ranking"
	"ken/internal/know/catalog"
	"ken/internal/know/embed"
	"ken/internal/know/index"
	"ken/internal/know/reader"
	"ken/internal/know/source"
)

// benchRows reads a set of the measured corpora.
func benchRows[T any](b testing.TB, parts ...string) []T {
	b.Helper()
	dir := os.Getenv("KEN_BENCH")
	if dir == "" {
		b.Skip("KEN_BENCH is not set: the sets to measure on are not here")
	}
	f, err := os.Open(filepath.Join(append([]string{dir}, parts...)...))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var out []T
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var row T
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			b.Fatal(err)
		}
		out = append(out, row)
	}
	return out
}

type benchTool struct {
	ID, Name, Description, Category string
	Tags                            []string
	Parameters                      []capability.Parameter
	Schema                          json.RawMessage `json:"input_schema"`
}

// benchCatalog makes a catalog of n real tools, and beyond those there are, of
// mixtures of two.
func benchCatalog(b testing.TB, n int) *catalog.Catalog {
	b.Helper()
	tools := slices.Concat(
		benchRows[benchTool](b, "catalog", "toucan", "corpus.jsonl"), benchRows[benchTool](b, "catalog", "npm-mcp", "corpus.jsonl"))
	random := rand.New(rand.NewPCG(1, 1))
	random.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
	m := make(fixed, n)
	for i := range m {
		t := tools[i%len(tools)]
		if i >= len(tools) {
			other := tools[random.IntN(len(tools))]
			_, rest, _ := strings.Cut(other.Name, "_")
			t.Name += "_" + rest
			t.Description = t.Description[:len(t.Description)/2] + other.Description[len(other.Description)/2:]
			t.Parameters, t.Schema = other.Parameters, other.Schema
		}
		m[i].Capability = capability.Capability{
			ID: capability.ID(fmt.Sprintf("%d/%s", i, t.ID)), Kind: capability.KindTool, Name: t.Name, Description: t.Description,
			Category: t.Category, Tags: t.Tags, Parameters: t.Parameters, Hash: fmt.Sprint(i), Trust: capability.TrustUser,
			Origin: capability.Origin{Source: "bench"},
		}
		m[i].Detail = capability.Detail{Schema: t.Schema}
	}
	c, err := catalog.New(catalog.Config{Sources: []capability.Source{m}, Attachment: ranking.IndexedBy(&index.Cache{Model: embed.Builtin()})})
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Load(context.Background()); err != nil {
		b.Fatal(err)
	}
	return c
}

// fixed is a source of things that are already read and scanned.
type fixed []struct {
	capability.Capability
	capability.Detail
}

func (fixed) Name() string { return "bench" }

func (f fixed) Load(context.Context) (capability.Batch, error) {
	var batch capability.Batch
	for i := range f {
		batch.Capabilities = append(batch.Capabilities, &f[i].Capability)
	}
	return batch, nil
}

func (f fixed) Detail(_ context.Context, c *capability.Capability) (capability.Detail, error) {
	var i int
	_, err := fmt.Sscanf(c.Hash, "%d", &i)
	return f[i].Detail, err
}

func devMessages(b testing.TB) []string {
	var out []string
	for _, set := range []string{"acebench-en", "bfcl-multiturn", "restbench"} {
		for _, r := range benchRows[struct{ Query string }](b, "dev", set, "queries.jsonl") {
			out = append(out, r.Query)
		}
	}
	return out
}

// BenchmarkFind measures one Find, from a message to the tiers. p50-us and
// p99-us are over the messages of the dev sets, each the best of five; making
// the vector of the whole message is in p50-us-all alone.
func BenchmarkFind(b *testing.B) {
	for _, n := range []int{200, 2000, 15000, 100000} {
		c := benchCatalog(b, n)
		f := NewFinder(Parts{Source: c})
		messages := devMessages(b)
		views := map[string]*View{
			"":       f.See(c.Snapshot(), "", nil),
			"narrow": f.See(c.Snapshot(), "narrow", func(e *catalog.Entry) bool { return e.Hash[len(e.Hash)-1] != '3' }),
		}
		for _, name := range []string{"", "narrow"} {
			b.Run(fmt.Sprint(n, name), func(b *testing.B) { benchmarkFind(b, f, views[name], messages) })
		}
	}
}

func benchmarkFind(b *testing.B, f *Finder, v *View, messages []string) {
	ctx, cfg := context.Background(), Defaults()
	find := func(text string) (took, embedding time.Duration) {
		start := time.Now()
		sel, err := f.Find(ctx, v, Query{Text: text}, cfg)
		if err != nil {
			b.Fatal(err)
		}
		return time.Since(start), time.Duration(sel.EmbedUS) * time.Microsecond
	}
	best, all := make([]time.Duration, len(messages)), make([]time.Duration, len(messages))
	for round := range 6 {
		for i, m := range messages {
			took, embedding := find(m)
			if round > 0 && (all[i] == 0 || took < all[i]) { // the first warms up
				best[i], all[i] = took-embedding, took
			}
		}
	}
	slices.Sort(all)
	slices.Sort(best)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		find(messages[i%len(messages)])
		i++
	}
	b.ReportMetric(float64(best[len(best)/2].Nanoseconds())/1e3, "p50-us")
	b.ReportMetric(float64(all[len(all)/2].Nanoseconds())/1e3, "p50-us-all")
	b.ReportMetric(float64(best[len(best)*99/100].Nanoseconds())/1e3, "p99-us")
	b.ReportMetric(float64(best[len(best)*99/100])/float64(best[len(best)/2]), "p99/p50")
}

// unreal has the name of the second reader, and vectors that mean nothing: reading
// 2,000 capabilities would take longer than the rest.
type unreal struct{ secondReader }

func (u unreal) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		random := rand.New(rand.NewPCG(uint64(len(text)), uint64(i)))
		out[i] = make([]float32, u.Dimensions())
		for k := range out[i] {
			out[i][k] = random.Float32() - 0.5
		}
	}
	return out, nil
}

// BenchmarkFindRead measures one Find of 2,000 with the second reader, which
// reads the message: the median over messages of the dev sets, each the best of
// five.
func BenchmarkFindRead(b *testing.B) {
	if !reader.Supported() {
		b.Skip("cannot here: there are no kernels for this processor")
	}
	c := benchCatalog(b, 2000)
	r := secondReader{reader.Builtin()}
	if err := ranking.Embed(b.Context(), c, unreal{r}); err != nil {
		b.Fatal(err)
	}
	var messages []string
	for i, m := range devMessages(b) {
		if i%6 == 0 { // all would take a while
			messages = append(messages, m)
		}
	}
	f := NewFinder(Parts{Source: c, Embedder: r, Local: true})
	v := f.See(c.Snapshot(), "", nil)
	least := make([]time.Duration, len(messages))
	before := cpuTime(b)
	for b.Loop() {
		for round := range 6 {
			f.vectors = newMessageVectors(r, true) // it remembers what it has read
			for i, m := range messages {
				start := time.Now()
				if sel, err := f.Find(b.Context(), v, Query{Text: m}, Defaults()); err != nil || sel.EmbedUS == 0 {
					b.Fatalf("Find: %v; the message took %d µs to read", err, sel.EmbedUS)
				}
				if took := time.Since(start); round > 0 && (least[i] == 0 || took < least[i]) {
					least[i] = took
				}
			}
		}
	}
	b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(6*len(messages)*b.N), "cpu-us")
	slices.Sort(least)
	b.ReportMetric(float64(least[len(least)/2].Nanoseconds())/1e3, "p50-us-all")
}

// BenchmarkSee measures narrowing 15,000 capabilities for a new class of
// principals, down to the first answer.
func BenchmarkSee(b *testing.B) {
	c := benchCatalog(b, 15000)
	f := NewFinder(Parts{Source: c})
	f.See(c.Snapshot(), "", nil).searchable()
	i, before := 0, cpuTime(b)
	for b.Loop() {
		v := f.See(c.Snapshot(), fmt.Sprint("class", i), func(e *catalog.Entry) bool { return e.Hash[len(e.Hash)-1] != '3' })
		v.searchable()
		v.sheet(nil)
		i++
	}
	b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/1e3/float64(b.N), "cpu-ms/op")
}

func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkMemory tells what a catalog takes once it was searched.
func BenchmarkMemory(b *testing.B) {
	for set, path := range map[string]string{"npm-mcp": "npm-mcp", "toucan": "toucan"} {
		b.Run(set, func(b *testing.B) {
			dir := os.Getenv("KEN_BENCH")
			if dir == "" {
				b.Skip("KEN_BENCH is not set: the sets to measure on are not here")
			}
			for b.Loop() {
				before := heap()
				tree := source.NewTree(source.TreeConfig{Name: set, Path: filepath.Join(dir, "catalog", path, "corpus.jsonl"), Trust: capability.TrustUser})
				c, err := catalog.New(catalog.Config{Sources: []capability.Source{tree}, Attachment: ranking.IndexedBy(&index.Cache{Model: embed.Builtin()})})
				if err != nil {
					b.Fatal(err)
				}
				if err := c.Load(context.Background()); err != nil {
					b.Fatal(err)
				}
				f := NewFinder(Parts{Source: c})
				v := f.See(c.Snapshot(), "", nil)
				if _, err := f.Find(context.Background(), v, Query{Text: "open an issue about the login page"}, Defaults()); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(heap()-before)/1e6, "heap-MB")
				runtime.KeepAlive(v)
				tree.Close()
			}
		})
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
