//go:build unix

package ranking

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/know/index"
	"ken/internal/testkit"
	"ken/internal/testkit/indextest"
)

// benchCatalog returns n capabilities, real ones first.
func benchCatalog(b *testing.B, n int) []*capability.Capability {
	b.Helper()
	var list []*capability.Capability
	for i, r := range indextest.RealTools(b, n) {
		list = append(list, r.Capability(fmt.Sprint(i, "/", r.ID)))
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
	testkit.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
