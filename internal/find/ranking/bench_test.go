//go:build unix

package ranking

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/know/index"
	"ken/internal/testkit/indextest"
)

// benchCatalog returns n capabilities: real ones, and beyond those we have,
// mixtures of two of them.
func benchCatalog(b *testing.B, n int) []*capability.Capability {
	b.Helper()
	dir := os.Getenv("KEN_BENCH")
	if dir == "" {
		b.Skip("KEN_BENCH is not set: the catalogs to measure on are not here")
	}
	var real []*capability.Capability
	for _, name := range []string{"toucan", "npm-mcp"} {
		for _, r := range indextest.ReadRows(b, filepath.Join(dir, "catalog", name, "corpus.jsonl")) {
			real = append(real, &capability.Capability{
				ID: capability.ID(name + "/" + r.ID), Name: r.Name, Description: r.Description, Category: r.Category, Tags: r.Tags, Parameters: r.Parameters,
			})
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	random.Shuffle(len(real), func(i, j int) { real[i], real[j] = real[j], real[i] })
	list := real[:min(n, len(real))]
	for i := len(list); i < n; i++ {
		x, y := real[random.IntN(len(real))], real[random.IntN(len(real))]
		name, _, _ := strings.Cut(x.Name, "_")
		_, rest, _ := strings.Cut(y.Name, "_")
		list = append(list, &capability.Capability{
			ID: capability.ID(fmt.Sprintf("mix/%d", i)), Name: fmt.Sprintf("%s_%s_%d", name, rest, i),
			Description: x.Description[:len(x.Description)/2] + y.Description[len(y.Description)/2:], Category: x.Category, Tags: y.Tags, Parameters: y.Parameters,
		})
	}
	return list
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{15000, 100000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			list := benchCatalog(b, n)
			var used time.Duration
			for b.Loop() {
				before := cpuTime(b)
				s := index.Build(list)
				used += cpuTime(b) - before
				b.StopTimer()
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				with := m.HeapAlloc
				runtime.KeepAlive(s)
				s = nil
				runtime.GC()
				runtime.ReadMemStats(&m)
				b.ReportMetric(float64(with-m.HeapAlloc)/1e6, "heap-MB")
				b.StartTimer()
			}
			b.ReportMetric(float64(used.Microseconds())/1e3/float64(b.N), "cpu-ms/op")
		})
	}
}

func BenchmarkChange(b *testing.B) {
	list := benchCatalog(b, 10000)
	s := index.Build(list)
	b.ReportAllocs()
	i, before := 0, cpuTime(b)
	for b.Loop() {
		slot := i * 7919 % len(list)
		changed := *list[slot]
		changed.Description += " now with another word"
		s.Change([]*capability.Capability{&changed}, []int{slot})
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
