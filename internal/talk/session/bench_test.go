package session_test

import (
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

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

// BenchmarkAtRest is what a session at rest takes of the heap and of the disk, of
// ten thousand with one turn each.
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
					add(b, turn, exchange()...)
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
