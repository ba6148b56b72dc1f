package session_test

import (
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"ken/internal/talk/session"
	"ken/internal/testkit/storetest"
)

// BenchmarkAtRest is what a session at rest takes of the heap and of the disk, of
// ten thousand with one turn of 4 KB each.
func BenchmarkAtRest(b *testing.B) {
	const n = 10_000
	heap := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for b.Loop() {
		file := storetest.SQLite(b)
		s := session.New(storetest.Open(b, file), session.Config{})
		begin(b, s, ann)
		before := heap()
		work := make(chan int)
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() {
				for range work {
					turn := lock(b, s, ann, begin(b, s, ann).ID)
					add(b, turn, slices.Repeat([]session.Entry{said(strings.Repeat("Take a coat. ", 65))}, 5)...)
					release(b, turn)
				}
			})
		}
		for i := range n {
			work <- i
		}
		close(work)
		all.Wait()
		b.ReportMetric((heap()-before)/n, "heap-B/session")
		var disk int64
		err := filepath.WalkDir(filepath.Dir(file), func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				if info, e := d.Info(); e == nil {
					disk += info.Size()
				}
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(disk)/n/1000, "disk-KB/session")
	}
}
