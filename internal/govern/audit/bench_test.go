package audit

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"ken/internal/testkit"
)

func benchRecord() Record {
	return Record{
		Event: Executed, ExtensionID: "tools.postman", Command: "/postman", Action: "get", Runner: "exec.postman_cli",
		SessionID: "sess_abc123", UserID: "user_xyz", Success: new(true), DurationSeconds: new(1.234), ExitCode: new(0),
		Metadata: Metadata{Tool: "postman", ArgsCount: 1, WorkDir: "~/.ken/extensions/tools.postman/work"},
		Status:   Completed, EffectID: "eff_0123456789abcdef", Decision: "allow", Rule: "personal.read",
		CommandLine: "postman get https://api.example.com/users",
	}
}

// rate runs writers for a while and gives records a second.
func rate(_ *testing.B, writers int, span time.Duration, write func() error) (float64, error) {
	var n atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	start := time.Now()
	for range writers {
		wg.Go(func() {
			for time.Since(start) < span && failed.Load() == nil {
				if err := write(); err != nil {
					failed.Store(&err)
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(n.Load()) / time.Since(start).Seconds(), nil
}

// naive is what group commit is measured against: the same records, redacted,
// encoded and tied to a chain by the same code, but each written and synced by
// itself under a lock.
type naive struct {
	log  *Log // for its encoder only
	f    segmentFile
	mu   sync.Mutex
	seq  int64
	prev tlog.Hash
	buf  []byte
}

func newNaive(t testing.TB, l *Log) *naive {
	t.Helper()
	f := testkit.Must(l.cfg.createSegment(filepath.Join(t.TempDir(), "plain.jsonl")))(t)
	t.Cleanup(func() { f.Close() })
	return &naive{log: l, f: f}
}

func (n *naive) append(r Record) error {
	it, err := n.log.prepare(r)
	if err != nil {
		return err
	}
	defer bodies.Put(it.pooled)
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	n.buf = appendLine(n.buf[:0], formatTime(now), it.body, now.UnixMicro(), "", n.seq, n.prev)
	n.prev = tlog.RecordHash(n.buf)
	n.seq++
	if _, err := n.f.Write(append(n.buf, '\n')); err != nil {
		return err
	}
	return n.f.Sync()
}

// compare lets both ways write in turn, five times each, so that they share
// the disk's mood. It reports the best rate of each and how they compare, and
// beside that the median of how neighbours compare: where the two are far
// apart, the disk was not the same for both.
func compare(b *testing.B, writers int, l *Log) {
	b.Helper()
	n, r := newNaive(b, l), benchRecord()
	ways := [...]func() error{
		func() error { return n.append(r) },
		func() error { _, err := l.Append(b.Context(), r); return err },
	}
	var best [len(ways)]float64
	var ratios []float64
	for b.Loop() {
		for range 5 {
			var got [len(ways)]float64
			for i, write := range ways {
				var err error
				if got[i], err = rate(b, writers, 200*time.Millisecond, write); err != nil {
					b.Fatal(err)
				}
				best[i] = max(best[i], got[i])
			}
			ratios = append(ratios, got[1]/got[0])
		}
	}
	slices.Sort(ratios)
	b.ReportMetric(best[0], "rec/s-plain")
	b.ReportMetric(best[1], "rec/s")
	b.ReportMetric(best[1]/best[0], "x-plain")
	b.ReportMetric(ratios[len(ratios)/2], "x-median")
}

// BenchmarkGroupCommit is this log against a sync for each record.
func BenchmarkGroupCommit(b *testing.B) {
	for _, writers := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			compare(b, writers, testOpen(b, testConfig(b)))
		})
	}
}

// BenchmarkGroupCommitSlowSync is the same with a disk that takes 1 ms longer
// for every sync, as most do that keep their word: the gain no longer depends
// on the disk's mood.
func BenchmarkGroupCommitSlowSync(b *testing.B) {
	cfg := testConfig(b)
	faults{sync: func() error { time.Sleep(time.Millisecond); return nil }}.put(&cfg)
	compare(b, 128, testOpen(b, cfg))
}

// unsynced is a disk on which a sync costs nothing.
type unsynced struct{ segmentFile }

func (unsynced) Sync() error { return nil }
