//go:build unix

package source

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"ken/capability"
)

// watchCPU returns the processor time that this process has used.
func watchCPU(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// tenThousand makes a tree of 10,000 cards: in 100 folders, or in one.
func tenThousand(b *testing.B, folders int, mode WatchMode) (*Tree, []string) {
	b.Helper()
	dir := b.TempDir()
	var files []string
	for i := range 10_000 {
		p := filepath.Join(dir, fmt.Sprintf("part-%02d", i%folders), "cards", fmt.Sprintf("card-%05d.md", i))
		if i < folders {
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(p, benchCard(i, 0), 0o644); err != nil {
			b.Fatal(err)
		}
		files = append(files, p)
	}
	tree := NewTree(TreeConfig{
		Path: dir, Trust: capability.TrustUser,
		Watch: WatchConfig{Debounce: 5 * time.Millisecond, Poll: 20 * time.Millisecond, Mode: mode},
	})
	b.Cleanup(func() { tree.Close() })
	batch, err := tree.Load(context.Background())
	if err != nil || len(batch.Capabilities) != len(files) {
		b.Fatalf("Load = %d capabilities, %v, want %d", len(batch.Capabilities), err, len(files))
	}
	return tree, files
}

func benchCard(i, version int) []byte {
	return fmt.Appendf(nil, "---\ncapability_id: card-%05d\nname: Card %d\ndescription: Does one thing of ten thousand, and does it well.\n"+
		"triggers:\n  keywords: [thing-%d, one, well]\npriority: 10\n---\n# Card %d\n\nVersion %d of a card of a usual length. "+
		"It tells what the thing is, when to use it and how. It goes on for a few lines so that reading it costs what reading a real card costs, "+
		"and neither more nor less than that.\n", i, i, i, i, version)
}

// BenchmarkRefreshOneOf10000 reads one changed file again, as after the
// debounce, and puts the batch together.
func BenchmarkRefreshOneOf10000(b *testing.B) {
	for _, folders := range []int{100, 1} {
		b.Run(fmt.Sprintf("folders=%d", folders), func(b *testing.B) {
			tree, files := tenThousand(b, folders, WatchBySystem)
			var used time.Duration
			n := 0
			for b.Loop() {
				n++
				i := n * 7919 % len(files)
				if err := os.WriteFile(files[i], benchCard(i, n), 0o644); err != nil {
					b.Fatal(err)
				}
				before := watchCPU(b)
				batch, err := tree.Refresh(context.Background(), files[i:i+1])
				used += watchCPU(b) - before
				if err != nil || len(batch.Capabilities) != len(files) {
					b.Fatalf("Refresh = %d capabilities, %v, want %d", len(batch.Capabilities), err, len(files))
				}
			}
			b.ReportMetric(float64(used.Microseconds())/1000/float64(n), "cpu-ms/op")
		})
	}
}

// BenchmarkWatchOneOf10000 writes one file and waits for the batch: all that
// the process uses, the writing and the system's events among it.
func BenchmarkWatchOneOf10000(b *testing.B) {
	for _, mode := range []WatchMode{WatchBySystem, WatchByPolling} {
		b.Run("mode="+string(mode), func(b *testing.B) {
			tree, files := tenThousand(b, 100, mode)
			got := make(chan error)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() {
				defer close(done)
				for _, err := range tree.Watch(ctx) {
					select {
					case got <- err:
					case <-ctx.Done():
					}
				}
			}()
			change := func(n int) {
				i := n * 7919 % len(files)
				if err := os.WriteFile(files[i], benchCard(i, n), 0o644); err != nil {
					b.Fatal(err)
				}
				if err := <-got; err != nil {
					b.Fatal(err)
				}
			}
			change(1) // watching has begun
			before := watchCPU(b)
			n := 1
			for b.Loop() {
				n++
				change(n)
			}
			b.ReportMetric(float64((watchCPU(b)-before).Microseconds())/1000/float64(n-1), "cpu-ms/op")
			cancel()
			<-done
		})
	}
}

// BenchmarkLookThrough10000 looks through a tree in which nothing changed: as
// polling does each time, and as a refresh does after lost events.
func BenchmarkLookThrough10000(b *testing.B) {
	tree, _ := tenThousand(b, 100, WatchBySystem)
	ctx := context.Background()
	b.Run("poll", func(b *testing.B) {
		want := printTree(ctx, tree.cfg.Path, nil)
		before, n := watchCPU(b), 0
		for b.Loop() {
			n++
			if got := printTree(ctx, tree.cfg.Path, nil); got != want {
				b.Fatalf("printTree = %x, want %x: nothing changed", got, want)
			}
		}
		b.ReportMetric(float64((watchCPU(b)-before).Microseconds())/1000/float64(n), "cpu-ms/op")
	})
	b.Run("refresh", func(b *testing.B) {
		if _, _, err := tree.refresh(ctx, sighting{all: true}); err != nil {
			b.Fatal(err)
		}
		before, n := watchCPU(b), 0
		for b.Loop() {
			n++
			if _, changed, err := tree.refresh(ctx, sighting{all: true}); err != nil || changed {
				b.Fatalf("refresh = changed %t, %v, want nothing changed", changed, err)
			}
		}
		b.ReportMetric(float64((watchCPU(b)-before).Microseconds())/1000/float64(n), "cpu-ms/op")
	})
}
