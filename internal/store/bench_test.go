package store_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ken/internal/store"
	"ken/internal/testkit/storetest"
)

func BenchmarkSQLite(b *testing.B)   { benchmark(b, storetest.SQLite) }
func BenchmarkPostgres(b *testing.B) { benchmark(b, storetest.Postgres) }

func benchmark(b *testing.B, fresh func(testing.TB) string) {
	s := storetest.Open(b, fresh(b))
	ctx := context.Background()
	value := make([]byte, 200)
	batch := func(name string, n int) *store.Batch {
		var x store.Batch
		for i := range n {
			x.Put(fmt.Sprintf("%s/%d", name, i), value)
		}
		return &x
	}
	for i := range 100 {
		if _, err := s.Apply(ctx, batch(fmt.Sprintf("fill/%d", i), 100)); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("Get", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, ok, err := s.Get(ctx, fmt.Sprintf("fill/%d/%d", i%100, i%97)); !ok || err != nil {
				b.Fatal(ok, err)
			}
		}
	})
	b.Run("Scan100", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			for _, err := range s.Scan(ctx, fmt.Sprintf("fill/%d/", i%100), store.Range{}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	for _, n := range []int{1, 10} {
		b.Run(fmt.Sprintf("Apply%d", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if _, err := s.Apply(ctx, batch(fmt.Sprintf("one/%d", i%1000), n)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("Apply1x16", func(b *testing.B) {
		work := make(chan int)
		var done sync.WaitGroup
		for worker := range 16 {
			done.Go(func() {
				for i := range work {
					if _, err := s.Apply(ctx, batch(fmt.Sprintf("many/%d/%d", worker, i%100), 1)); err != nil {
						b.Error(err)
					}
				}
			})
		}
		for i := 0; b.Loop(); i++ {
			work <- i
		}
		close(work)
		done.Wait()
	})
}

// hammer writes from several goroutines until it has been a while, and gives
// how many batches it applied and how long the slowest took.
func hammer(s *store.Store, name string, while time.Duration) (n int, slowest time.Duration, err error) {
	var mu sync.Mutex
	var done sync.WaitGroup
	end := time.Now().Add(while)
	for worker := range 8 {
		done.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				var b store.Batch
				b.Put(fmt.Sprintf("%s/%d/%d", name, worker, i%50), []byte("x"))
				start := time.Now()
				_, e := s.Apply(context.Background(), &b)
				took := time.Since(start)
				mu.Lock()
				n, slowest = n+1, max(slowest, took)
				if e != nil {
					err = e
				}
				mu.Unlock()
			}
		})
	}
	done.Wait()
	return n, slowest, err
}

func hammerChild(address string) {
	s, err := store.Open(context.Background(), address, "")
	if err == nil {
		fmt.Println("open")
		_, _ = io.ReadAll(os.Stdin) // until all are there
		var n int
		var slowest time.Duration
		n, slowest, err = hammer(s, fmt.Sprint(os.Getpid()), time.Second)
		fmt.Println(n, slowest.Milliseconds())
		s.Close()
	}
	if err != nil {
		fmt.Println("error", err)
	}
}

func TestSQLiteFair(t *testing.T)   { fair(t, storetest.SQLite) }
func TestPostgresFair(t *testing.T) { fair(t, storetest.Postgres) }

// fair: of three processes that write without end, each gets on, and nobody
// waits for long.
func fair(t *testing.T, fresh func(testing.TB) string) {
	address := fresh(t)
	const n = 3
	type process struct {
		in  io.WriteCloser
		out io.ReadCloser
	}
	var processes []process
	for range n {
		cmd := child(t, "hammer", address)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Wait() }) // what it printed says more
		processes = append(processes, process{in, out})
		if _, err := io.ReadFull(out, make([]byte, len("open\n"))); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range processes {
		p.in.Close()
	}
	var counts []int
	for _, p := range processes {
		text, err := io.ReadAll(p.out)
		var count, slowest int
		if _, e := fmt.Sscan(string(text), &count, &slowest); err != nil || e != nil || strings.Contains(string(text), "error") {
			t.Fatalf("a process printed %q, %v", text, err)
		}
		if slowest > 3000 {
			t.Errorf("a batch took %d ms", slowest)
		}
		t.Logf("%d batches, the slowest took %d ms", count, slowest)
		counts = append(counts, count)
	}
	if least := slices.Min(counts); least*20 < slices.Max(counts) {
		t.Errorf("the processes applied %d batches: one is left out", counts)
	}
}
