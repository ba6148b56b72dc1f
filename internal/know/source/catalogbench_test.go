//go:build unix

package source

import (
	"context"
	"runtime"
	"runtime/metrics"
	"syscall"
	"testing"
	"time"

	"ken/capability"
)

// cpuTime is the processor time that this process has used, in all threads.
func cpuTime(tb testing.TB) time.Duration {
	var ru syscall.Rusage
	must(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &ru))
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// peakHeap runs f and gives the most memory that the heap took meanwhile, in
// use or free for use, in megabytes.
func peakHeap(f func()) float64 {
	sample := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
	}
	var peak uint64
	look := func() {
		metrics.Read(sample)
		peak = max(peak, sample[0].Value.Uint64()+sample[1].Value.Uint64())
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				look()
			}
		}
	}()
	f()
	close(stop)
	<-stopped
	look()
	return float64(peak) / (1 << 20)
}

func benchmarkLoad(b *testing.B, want int, cfg TreeConfig) {
	var used time.Duration
	var peak float64
	for b.Loop() {
		b.StopTimer()
		runtime.GC()
		b.StartTimer()
		before := cpuTime(b)
		var batch capability.Batch
		heap := peakHeap(func() {
			tree := NewTree(cfg)
			var err error
			if batch, err = tree.Load(context.Background()); err != nil {
				b.Fatal(err)
			}
			tree.Close()
		})
		used, peak = used+cpuTime(b)-before, max(peak, heap)
		if len(batch.Capabilities) != want {
			b.Fatalf("loaded %d capabilities, want %d", len(batch.Capabilities), want)
		}
	}
	b.ReportMetric(float64(used.Microseconds())/1000/float64(b.N), "cpu-ms/op")
	b.ReportMetric(peak, "heap-MB")
}

func BenchmarkLoadNpmMCP(b *testing.B) {
	benchmarkLoad(b, 6067, TreeConfig{Path: benchFile(b, "catalog", "npm-mcp", "corpus.jsonl"), Trust: capability.TrustUser})
}
