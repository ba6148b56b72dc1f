package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"
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
func rate(writers int, span time.Duration, write func() error) (float64, error) {
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
	f, err := l.cfg.createSegment(filepath.Join(t.TempDir(), "plain.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
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
				if got[i], err = rate(writers, 200*time.Millisecond, write); err != nil {
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
	cfg.createSegment = func(p string) (segmentFile, error) {
		f, err := createSegment(p)
		return &faultyFile{segmentFile: f, sync: func() error { time.Sleep(time.Millisecond); return nil }}, err
	}
	compare(b, 128, testOpen(b, cfg))
}

// unsynced is a disk on which a sync costs nothing.
type unsynced struct{ segmentFile }

func (unsynced) Sync() error { return nil }

// BenchmarkGroupCommitUnsynced is what bounds this log where syncs are short:
// the processor.
func BenchmarkGroupCommitUnsynced(b *testing.B) {
	cfg := testConfig(b)
	cfg.createSegment = func(p string) (segmentFile, error) {
		f, err := createSegment(p)
		return unsynced{f}, err
	}
	l, r := testOpen(b, cfg), benchRecord()
	best := 0.0
	for b.Loop() {
		got, err := rate(128, 200*time.Millisecond, func() error { _, err := l.Append(b.Context(), r); return err })
		if err != nil {
			b.Fatal(err)
		}
		best = max(best, got)
	}
	b.ReportMetric(best, "rec/s")
}

// BenchmarkVerify: ns/op and MB/s over a log of 20,000 records.
func BenchmarkVerify(b *testing.B) {
	cfg := testConfig(b)
	l := testOpen(b, cfg)
	records := make([]Record, 1000)
	for i := range records {
		records[i] = benchRecord()
	}
	for range 20 {
		testAppend(b, l, records...)
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	segments, _ := files(b, cfg)
	var total int64
	for _, s := range segments {
		info, err := os.Stat(s)
		if err != nil {
			b.Fatal(err)
		}
		total += info.Size()
	}
	b.SetBytes(total)
	for b.Loop() {
		if rep := testVerify(b, cfg); !rep.OK() {
			b.Fatal(rep)
		}
	}
}

// BenchmarkQuery: a filter that lets little through, over the same log.
func BenchmarkQuery(b *testing.B) {
	cfg := testConfig(b)
	l := testOpen(b, cfg)
	records := make([]Record, 1000)
	for i := range records {
		records[i] = benchRecord()
	}
	records[500].Event = Failed
	for range 20 {
		testAppend(b, l, records...)
	}
	segments, _ := files(b, cfg)
	b.SetBytes(int64(len(mustRead(b, segments[0]))))
	for b.Loop() {
		if n := len(collect(b, cfg.Dir, Filter{Event: string(Failed)})); n != 20 {
			b.Fatal(n)
		}
	}
}

// BenchmarkRedact: one KiB of quiet text, and of text with something in it,
// with 50 values held.
func BenchmarkRedact(b *testing.B) {
	var r Redactor
	for i := range 50 {
		r.Hold(string(rune('A'+i%26)) + "-held-value-" + string(rune('a'+i/26)))
	}
	quiet := ""
	for len(quiet) < 1024 {
		quiet += "compile internal/govern/audit: 14 files, 3 warnings, see report.txt; "
	}
	loud := quiet[:900] + " curl -H 'Authorization: Bearer abcdefgh' https://u:p@host/ --token=abc"
	for name, s := range map[string]string{"quiet": quiet[:1024], "loud": loud} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				r.String(s)
			}
		})
	}
}

// BenchmarkPrepare is what a caller pays before it waits: redaction and
// encoding.
func BenchmarkPrepare(b *testing.B) {
	l := testOpen(b, testConfig(b))
	r := benchRecord()
	b.ReportAllocs()
	for b.Loop() {
		it, err := l.prepare(r)
		if err != nil {
			b.Fatal(err)
		}
		bodies.Put(it.pooled)
	}
}

// BenchmarkOpen is what a process pays for its chain.
func BenchmarkOpen(b *testing.B) {
	cfg := testConfig(b)
	for b.Loop() {
		l, err := Open(cfg)
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkManyChains is the trail of 500 short processes, four records each:
// what a person waits for who reads, follows or checks it, and what the next
// process pays for beginning a chain of its own.
func BenchmarkManyChains(b *testing.B) {
	cfg := testConfig(b)
	for range 500 {
		l, err := Open(cfg)
		if err != nil {
			b.Fatal(err)
		}
		testAppend(b, l, benchRecord())
		testAppend(b, l, benchRecord(), benchRecord())
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
	for _, way := range []struct {
		name string
		do   func(b *testing.B) error
	}{
		{"query", func(b *testing.B) error {
			if n := len(collect(b, cfg.Dir, Filter{Event: string(Executed)})); n != 1500 {
				return fmt.Errorf("Query gives %d records, want 1500", n)
			}
			return nil
		}},
		{"newest", func(b *testing.B) error {
			page, err := Newest(b.Context(), cfg.Dir, Search{}, "", 20)
			if err == nil && len(page.Entries) != 20 {
				err = fmt.Errorf("Newest gives %d records, want 20", len(page.Entries))
			}
			return err
		}},
		{"follow", func(*testing.B) error { _, err := newFollower(cfg.Dir, Filter{}); return err }},
		{"verify", func(b *testing.B) error {
			rep, err := Verify(cfg.Dir, cfg.CheckpointDir, cfg.Key.Public())
			if err == nil && !rep.OK() {
				err = fmt.Errorf("Verify = %v", rep)
			}
			return err
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			for b.Loop() {
				if err := way.do(b); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
