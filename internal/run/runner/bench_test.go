//go:build unix

package runner

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/govern/audit"
)

// forgetful is a trail that keeps nothing: durable audit off.
type forgetful struct{ key audit.Key }

func (forgetful) Append(context.Context, ...audit.Record) (audit.ID, error)   { return "", nil }
func (forgetful) Announce(context.Context, ...audit.Record) (audit.ID, error) { return "", nil }
func (f forgetful) Digest(data []byte) string                                 { return f.key.Digest(data) }

func benchKey(t testing.TB) audit.Key {
	t.Helper()
	k, err := audit.NewKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func benchLog(t testing.TB) *audit.Log {
	t.Helper()
	l, err := audit.Open(audit.Config{Dir: t.TempDir(), CheckpointDir: t.TempDir(), Key: benchKey(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkInvoke is the whole way of a call without durable audit, with a heap as a
// catalog makes it: an empty process collects every few hundred calls. cpu-us/op is the
// time of all threads, the collector's too.
func BenchmarkInvoke(b *testing.B) {
	b.Run("heap=64MB", func(b *testing.B) {
		ballast := make([]byte, 64<<20)
		defer runtime.KeepAlive(ballast)
		r := newRig(b, tool{}, func(c *Config) { c.Log = forgetful{benchKey(b)} })
		call := callOf("look", `{"text":"hello, how are you","n":3}`)
		start, n := cpu(), 0
		for b.Loop() {
			if _, err := r.Invoke(b.Context(), call); err != nil {
				b.Fatal(err)
			}
			n++
		}
		b.ReportMetric(float64((cpu()-start).Microseconds())/float64(n), "cpu-us/op")
	})
}

// p50 lets callers run for a while and gives the median time of one f.
func p50(b *testing.B, callers int, span time.Duration, f func(caller, i int) error) time.Duration {
	b.Helper()
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	start := time.Now()
	for c := range callers {
		wg.Go(func() {
			var mine []time.Duration
			for i := 0; time.Since(start) < span; i++ {
				begin := time.Now()
				if err := f(c, i); err != nil {
					b.Error(err)
					return
				}
				mine = append(mine, time.Since(begin))
			}
			mu.Lock()
			all = append(all, mine...)
			mu.Unlock()
		})
	}
	wg.Wait()
	slices.Sort(all)
	return all[len(all)/2]
}

// BenchmarkDurable is the whole way with durable audit and 16 callers, against
// one group commit of the same log with as many callers. They run in many short
// turns, because disks change their mood, and the best turn of each counts.
func BenchmarkDurable(b *testing.B) {
	const callers, turns = 16, 20
	log := benchLog(b)
	plain := newRig(b, tool{}, func(c *Config) { c.Log = log })
	sample := newRig(b, tool{}, nil)
	if _, err := sample.Invoke(b.Context(), benchCall("look", 1, 1)); err != nil {
		b.Fatal(err)
	}
	rec := sample.log.all()[1] // a record as the Runner writes it
	ways := []func(c, i int) error{
		func(int, int) error { _, err := log.Append(b.Context(), rec); return err },
		func(c, i int) error { _, err := plain.Invoke(b.Context(), benchCall("look", c, i)); return err },
	}
	best := []time.Duration{time.Hour, time.Hour}
	for b.Loop() {
		for range turns {
			for i, f := range ways {
				best[i] = min(best[i], p50(b, callers, 25*time.Millisecond, f))
			}
		}
	}
	b.ReportMetric(float64(best[0].Microseconds()), "commit-us")
	b.ReportMetric(float64(best[1].Microseconds()), "call-us")
	b.ReportMetric(float64(best[1])/float64(best[0]), "call/commit")
}

func benchCall(name string, c, i int) capability.Call {
	call := callOf(name, "")
	call.Arguments = json.RawMessage(fmt.Sprintf(`{"text":"caller %d","n":%d}`, c, i))
	return call
}
