//go:build unix

package session_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ken/internal/talk/session"
	"ken/internal/testkit/storetest"
	"ken/llm"
)

// exchange is a turn as it often is: a question, what was put beside it, a call
// with its result, and an answer; about 4 KB.
func exchange() []session.Entry {
	return []session.Entry{
		said("Please look up what the weather is like in Utrecht tomorrow, and tell me whether I need a coat."),
		{Turn: 1, Kind: session.Added, Blocks: []llm.Block{{Text: strings.Repeat("weather_forecast: tells the weather of a place. ", 25)}}},
		{Turn: 1, Kind: session.Assistant, Blocks: []llm.Block{{Call: &llm.ToolCall{ID: "call_1", Name: "weather_forecast", Arguments: []byte(`{"place":"Utrecht"}`)}}}},
		{Turn: 1, Kind: session.Results, Blocks: []llm.Block{{Result: &llm.ToolResult{ID: "call_1", Name: "weather_forecast", Blocks: []llm.Block{{Text: strings.Repeat("14 degrees, wind from the west. ", 40)}}}}}},
		{Turn: 1, Kind: session.Assistant, Blocks: []llm.Block{{Text: strings.Repeat("Take a coat. ", 20)}}, Usage: &llm.Usage{Input: 900, Output: 80}},
	}
}

// TestAtRest: ten thousand sessions at rest are on the disk alone, and not much
// there.
func TestAtRest(t *testing.T) {
	n := 10_000
	if testing.Short() || raceEnabled {
		n = 500
	}
	file := storetest.SQLite(t)
	s := session.New(storetest.Open(t, file), session.Config{})
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	begin(t, s, ann)
	before, goroutines := heap(), runtime.NumGoroutine()
	work := make(chan int)
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for range work {
				turn := lock(t, s, ann, begin(t, s, ann).ID)
				add(t, turn, exchange()...)
				release(t, turn)
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	all.Wait()
	// What is left of the workers' stacks and of the pool is not a session's.
	grown := int64(heap()) - int64(before)
	if now := runtime.NumGoroutine(); now > goroutines {
		t.Errorf("%d goroutines, %d before", now, goroutines)
	}
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
		t.Fatal(err)
	}
	t.Logf("%d sessions of 5 entries: %d bytes of heap and %d bytes of disk for each", n, grown/int64(n), disk/int64(n))
	if grown/int64(n) > 1024 || disk/int64(n) > 20<<10 {
		t.Errorf("a session at rest takes %d bytes of heap and %d of disk, want at most 1 KB and 20 KB", grown/int64(n), disk/int64(n))
	}
}

// BenchmarkAppend also gives the middle time and the processor's time.
func BenchmarkAppend(b *testing.B) {
	s, _ := fresh(b, session.Config{})
	turn := lock(b, s, ann, begin(b, s, ann).ID)
	defer turn.Release(ctx)
	list := exchange()
	var took []time.Duration
	b.ReportAllocs()
	before := processor(b)
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		add(b, turn, list[i%len(list)])
		took = append(took, time.Since(start))
	}
	b.ReportMetric(float64((processor(b)-before).Microseconds())/float64(len(took)), "cpu-µs/op")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
}

// processor is the time that the process has used.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkTurn is all that a turn does here: lock, five appends, release; and
// the same where the first append locks and the last one releases.
func BenchmarkTurn(b *testing.B) {
	for _, together := range []bool{false, true} {
		b.Run(map[bool]string{false: "apart", true: "together"}[together], func(b *testing.B) {
			s, _ := fresh(b, session.Config{})
			list := exchange()
			id := ""
			b.ReportAllocs()
			before, n := processor(b), 0
			for ; b.Loop(); n++ {
				if n%10 == 0 {
					id = begin(b, s, ann).ID
				}
				start := s.Lock
				if together {
					start = s.Prepare
				}
				turn, err := start(ctx, ann, id)
				if err != nil {
					b.Fatal(err)
				}
				for i, e := range list {
					if together && i == len(list)-1 {
						turn.Closing()
					}
					add(b, turn, e)
				}
				release(b, turn)
			}
			b.ReportMetric(float64((processor(b)-before).Microseconds())/float64(n), "cpu-µs/op")
		})
	}
}

// BenchmarkRead reads what this process knows, and what it does not.
func BenchmarkRead(b *testing.B) {
	for _, n := range []int{10, 100} {
		for _, anew := range []bool{false, true} {
			b.Run(fmt.Sprint(n*5, map[bool]string{false: "-known", true: "-anew"}[anew]), func(b *testing.B) {
				s, db := fresh(b, session.Config{})
				id := begin(b, s, ann).ID
				turn := lock(b, s, ann, id)
				for range n {
					add(b, turn, exchange()...)
				}
				release(b, turn)
				b.ReportAllocs()
				for b.Loop() {
					if anew {
						s = session.New(db, session.Config{Holder: "x"})
					}
					if _, _, err := s.Read(ctx, ann, id); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkList(b *testing.B) {
	s, _ := fresh(b, session.Config{})
	for range 1000 {
		begin(b, s, ann)
	}
	b.ReportAllocs()
	for b.Loop() {
		if list, err := s.List(ctx, ann, 20); len(list) != 20 || err != nil {
			b.Fatal(len(list), err)
		}
	}
}
