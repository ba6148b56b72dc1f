package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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

// perRecord is what group commit is measured against: the same line, written
// and synced by itself under a lock.
func perRecord(t testing.TB, line []byte) func() error {
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "plain.jsonl"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	var mu sync.Mutex
	return func() error {
		mu.Lock()
		defer mu.Unlock()
		if _, err := f.Write(line); err != nil {
			return err
		}
		return f.Sync()
	}
}

// BenchmarkGroupCommit runs three ways in turn, so that the disk's mood is
// shared: a bare file with a write and a sync for each record, this log with a
// commit for each record, and this log as it is.
func BenchmarkGroupCommit(b *testing.B) {
	for _, writers := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			l := testOpen(b, testConfig(b))
			r := benchRecord()
			it, err := l.prepare(r)
			if err != nil {
				b.Fatal(err)
			}
			group := func() error { _, err := l.Append(b.Context(), r); return err }
			var mu sync.Mutex
			single := func() error {
				mu.Lock()
				defer mu.Unlock()
				return group()
			}
			var sum [3]float64
			for b.Loop() {
				for i, write := range []func() error{perRecord(b, append(it.body, '\n')), single, group} {
					got, err := rate(writers, 200*time.Millisecond, write)
					if err != nil {
						b.Fatal(err)
					}
					sum[i] += got
				}
			}
			b.ReportMetric(sum[2]/float64(b.N), "rec/s")
			b.ReportMetric(sum[2]/sum[0], "x-bare")
			b.ReportMetric(sum[2]/sum[1], "x-single")
		})
	}
}

// BenchmarkGroupCommitSlowSync is the same with a disk that takes 1 ms longer
// for every sync, as most do that keep their word: the gain no longer depends
// on the disk's mood.
func BenchmarkGroupCommitSlowSync(b *testing.B) {
	cfg := testConfig(b)
	slow := func() error { time.Sleep(time.Millisecond); return nil }
	cfg.createSegment = func(p string) (segmentFile, error) {
		f, err := createSegment(p)
		return &faultyFile{segmentFile: f, sync: slow}, err
	}
	l := testOpen(b, cfg)
	r := benchRecord()
	it, err := l.prepare(r)
	if err != nil {
		b.Fatal(err)
	}
	bare := perRecord(b, append(it.body, '\n'))
	var mu sync.Mutex
	var sum [2]float64
	for b.Loop() {
		for i, write := range []func() error{
			func() error { mu.Lock(); defer mu.Unlock(); _ = slow(); return bare() },
			func() error { _, err := l.Append(b.Context(), r); return err },
		} {
			got, err := rate(128, 200*time.Millisecond, write)
			if err != nil {
				b.Fatal(err)
			}
			sum[i] += got
		}
	}
	b.ReportMetric(sum[1]/float64(b.N), "rec/s")
	b.ReportMetric(sum[1]/sum[0], "x-bare")
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
