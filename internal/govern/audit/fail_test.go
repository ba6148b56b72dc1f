package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
)

// A faultyFile is a segment that stops working when told.
type faultyFile struct {
	segmentFile
	write, sync func() error // nil: works
	short       bool
}

func (f *faultyFile) Write(b []byte) (int, error) {
	if f.write != nil {
		if err := f.write(); err != nil {
			n, _ := f.segmentFile.Write(b[:len(b)/2]) // a full disk takes a part
			return n, err
		}
	}
	if f.short {
		return f.segmentFile.Write(b[:len(b)/2])
	}
	return f.segmentFile.Write(b)
}

func (f *faultyFile) Sync() error {
	if f.sync != nil {
		if err := f.sync(); err != nil {
			return err
		}
	}
	return f.segmentFile.Sync()
}

type faultyHead struct {
	slotFile
	put, sync func() error
}

func (f *faultyHead) WriteAt(b []byte, off int64) (int, error) {
	if f.put != nil {
		if err := f.put(); err != nil {
			return 0, err
		}
	}
	return f.slotFile.WriteAt(b, off)
}

func (f *faultyHead) Sync() error {
	if f.sync != nil {
		if err := f.sync(); err != nil {
			return err
		}
	}
	return f.slotFile.Sync()
}

// after returns a function that works n times and then fails.
func after(n int64, err error) func() error {
	var calls atomic.Int64
	return func() error {
		if calls.Add(1) > n {
			return err
		}
		return nil
	}
}

// TestT14Failures: whatever breaks, the append that met it fails, every later
// one fails with the same reason, and what was acknowledged verifies.
func TestT14Failures(t *testing.T) {
	const good = 4 // commits that work, the first record among them
	for _, c := range []struct {
		name  string
		cause error
		cfg   func(*Config)
	}{
		{"full disk", syscall.ENOSPC, func(c *Config) {
			full := after(good, syscall.ENOSPC)
			c.createSegment = func(p string) (segmentFile, error) {
				f, err := createSegment(p)
				return &faultyFile{segmentFile: f, write: full}, err
			}
		}},
		{"fsync", syscall.EIO, func(c *Config) {
			c.createSegment = func(p string) (segmentFile, error) {
				f, err := createSegment(p)
				return &faultyFile{segmentFile: f, sync: after(good, syscall.EIO)}, err
			}
		}},
		{"rotation", syscall.EROFS, func(c *Config) {
			c.SegmentBytes = 1
			fail := after(good, syscall.EROFS)
			c.createSegment = func(p string) (segmentFile, error) {
				if err := fail(); err != nil {
					return nil, err
				}
				return createSegment(p)
			}
		}},
		{"checkpoint write", syscall.EDQUOT, func(c *Config) {
			c.wrapHeads = func(f slotFile) slotFile { return &faultyHead{slotFile: f, put: after(good, syscall.EDQUOT)} }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := testConfig(t)
			c.cfg(&cfg)
			l := testOpen(t, cfg)
			acks := map[ID]string{}
			for i := range good - 1 {
				effect := fmt.Sprint(i)
				acks[testAppend(t, l, Record{Event: Executed, EffectID: effect})] = effect
			}
			for range 3 {
				_, err := l.Append(t.Context(), Record{Event: Executed})
				if !errors.Is(err, ErrPoisoned) || !errors.Is(err, c.cause) || capability.KindOf(err) != capability.Unavailable {
					t.Fatalf("Append = %v, want poisoned by %v", err, c.cause)
				}
			}
			if err := l.Close(); !errors.Is(err, ErrPoisoned) {
				t.Errorf("Close() = %v, want poisoned", err)
			}
			if lost, _ := missing(t, cfg.Dir, acks); len(lost) != 0 {
				t.Errorf("lost %v", lost)
			}
			if rep := only(t, cfg); rep.State != OpenDied || rep.Signed != good {
				t.Errorf("Verify = %v, want died with %d signed", rep, good)
			}
		})
	}
}

// TestShortWrite: a write that takes less without saying so is a failure too.
func TestShortWrite(t *testing.T) {
	cfg := testConfig(t)
	var f *faultyFile
	cfg.createSegment = func(p string) (segmentFile, error) {
		real, err := createSegment(p)
		f = &faultyFile{segmentFile: real}
		return f, err
	}
	l := testOpen(t, cfg)
	f.short = true
	if _, err := l.Append(t.Context(), Record{Event: Executed}); !errors.Is(err, ErrPoisoned) || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Append = %v, want poisoned by a short write", err)
	}
	if rep := only(t, cfg); !rep.State.OK() || rep.Unfinished == 0 || rep.Signed != 1 {
		t.Errorf("Verify = %v, want an unfinished record and no alarm", rep)
	}
}

// TestKeepFailure: a checkpoint that cannot be made durable stops the log,
// though not the append that it came after.
func TestKeepFailure(t *testing.T) {
	cfg := testConfig(t)
	cfg.CheckpointEvery = 3
	cfg.wrapHeads = func(f slotFile) slotFile { return &faultyHead{slotFile: f, sync: after(0, syscall.EIO)} }
	l := testOpen(t, cfg)
	testAppend(t, l, Record{Event: Executed})
	testAppend(t, l, Record{Event: Executed})
	// The failure comes after the acknowledgement, so the next one may meet it or the one after.
	var err error
	for range 2 {
		if _, err = l.Append(t.Context(), Record{Event: Executed}); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrPoisoned) || !errors.Is(err, syscall.EIO) {
		t.Errorf("Append = %v, want poisoned by EIO", err)
	}
}

// TestWaitersAllFail: everyone in a batch whose sync fails is told.
func TestWaitersAllFail(t *testing.T) {
	cfg := testConfig(t)
	cfg.createSegment = func(p string) (segmentFile, error) {
		f, err := createSegment(p)
		return &faultyFile{segmentFile: f, sync: after(1, syscall.EIO)}, err
	}
	l := testOpen(t, cfg)
	var wg sync.WaitGroup
	var failed atomic.Int64
	for range 50 {
		wg.Go(func() {
			if _, err := l.Append(t.Context(), Record{Event: Executed}); errors.Is(err, ErrPoisoned) {
				failed.Add(1)
			}
		})
	}
	wg.Wait()
	if failed.Load() != 50 {
		t.Errorf("%d of 50 appends failed, want all", failed.Load())
	}
}

// TestGroupCommit: writers that wait while a sync runs share the next one. A sync
// that lasts until 127 others wait is followed by exactly one for all of them.
func TestGroupCommit(t *testing.T) {
	cfg := testConfig(t)
	var l *Log
	var syncs atomic.Int64
	cfg.createSegment = func(p string) (segmentFile, error) {
		f, err := createSegment(p)
		return &faultyFile{segmentFile: f, sync: func() error {
			if syncs.Add(1) == 2 { // the first was for the first record of the chain
				waitFor(t, func() bool { return l.waiting() == 127 })
			}
			return nil
		}}, err
	}
	l = testOpen(t, cfg)
	testAppend := func() {
		if _, err := l.Append(t.Context(), Record{Event: Executed}); err != nil {
			t.Error(err)
		}
	}
	var wg sync.WaitGroup
	wg.Go(testAppend)
	waitFor(t, func() bool { return syncs.Load() == 2 })
	for range 127 {
		wg.Go(testAppend)
	}
	wg.Wait()
	if n := syncs.Load(); n != 3 {
		t.Errorf("%d syncs, want 3: one for the chain, one for the first, one for the 127 others", n)
	}
	if rep := only(t, cfg); rep.Records != 129 {
		t.Errorf("Verify = %v, want 129 records", rep)
	}
}

// TestHeadAfterSync: a head is signed while the disk works, but it is written
// only when the records that it promises are durable; and not at all where
// they are not.
func TestHeadAfterSync(t *testing.T) {
	cfg := testConfig(t)
	var mu sync.Mutex
	var order []string
	var broken error
	note := func(what string) func() error {
		return func() error {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, what)
			if what == "sync" {
				return broken
			}
			return nil
		}
	}
	cfg.createSegment = func(p string) (segmentFile, error) {
		f, err := createSegment(p)
		return &faultyFile{segmentFile: f, sync: note("sync")}, err
	}
	cfg.wrapHeads = func(f slotFile) slotFile { return &faultyHead{slotFile: f, put: note("head")} }
	l := testOpen(t, cfg)
	testAppend(t, l, Record{Event: Executed})
	mu.Lock()
	broken = syscall.EIO
	mu.Unlock()
	if _, err := l.Append(t.Context(), Record{Event: Executed}); !errors.Is(err, ErrPoisoned) {
		t.Errorf("Append() = %v, want poisoned", err)
	}
	_ = l.Close()
	want := []string{"sync", "head", "sync", "head", "sync"} // the chain's own record, one, and the one that failed
	if !slices.Equal(order, want) {
		t.Errorf("order = %v, want %v", order, want)
	}
}

// TestOpenRefuses: a log that could not be written is not opened.
func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	mustWrite(t, file, nil)
	for name, change := range map[string]func(*Config){
		"no key":                 func(c *Config) { c.Key = Key{} },
		"no directory":           func(c *Config) { c.Dir = "" },
		"checkpoints not apart":  func(c *Config) { c.CheckpointDir = c.Dir + "/" },
		"a file in the way":      func(c *Config) { c.Dir = filepath.Join(file, "audit") },
		"a file for checkpoints": func(c *Config) { c.CheckpointDir = file },
		"first sync fails": func(c *Config) {
			c.createSegment = func(p string) (segmentFile, error) {
				f, err := createSegment(p)
				return &faultyFile{segmentFile: f, sync: after(0, syscall.EIO)}, err
			}
		},
	} {
		cfg := testConfig(t)
		change(&cfg)
		if l, err := Open(cfg); err == nil {
			l.Close()
			t.Errorf("Open with %s = nil error", name)
		}
	}
}

// TestAppendRefuses: what is no record, and a log that is closed.
func TestAppendRefuses(t *testing.T) {
	cfg := testConfig(t)
	l := testOpen(t, cfg)
	for name, r := range map[string]Record{
		"no event":       {},
		"a chain record": {Event: Opened},
		"chain block":    {Event: Executed, Chain: &ChainStart{}},
		"bad isolation":  {Event: Executed, Isolation: []byte(`{"a":`)},
		"two values":     {Event: Executed, Isolation: []byte(`{} {}`)},
		"many notes": {Event: Executed, Metadata: Metadata{Notes: func() map[string]string {
			m := map[string]string{}
			for i := range maxNotes + 1 {
				m[fmt.Sprint(i)] = ""
			}
			return m
		}()}},
	} {
		if _, err := l.Append(t.Context(), r); err == nil {
			t.Errorf("Append(%s) = nil error", name)
		}
	}
	if l.Err() != nil {
		t.Errorf("Err() = %v: a bad record must not poison the log", l.Err())
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	if _, err := l.Append(t.Context(), Record{Event: Executed}); !errors.Is(err, ErrClosed) {
		t.Errorf("Append after Close = %v, want ErrClosed", err)
	}
}

// TestAppendContext: a caller that gives up is told that it does not know.
func TestAppendContext(t *testing.T) {
	cfg := testConfig(t)
	gate := make(chan struct{})
	first := true
	cfg.createSegment = func(p string) (segmentFile, error) {
		f, err := createSegment(p)
		return &faultyFile{segmentFile: f, sync: func() error {
			if !first {
				<-gate
			}
			first = false
			return nil
		}}, err
	}
	l := testOpen(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Append(ctx, Record{Event: Executed}); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "may or may not have been written") {
		t.Errorf("Append = %v, want canceled and not known", err)
	}
	close(gate)
	testAppend(t, l, Record{Event: Executed})
}

// TestRotation: a chain over many files, with records of all sizes, is one
// chain.
func TestRotation(t *testing.T) {
	cfg := testConfig(t)
	cfg.SegmentBytes = 4000
	l := testOpen(t, cfg)
	for i := range 40 {
		testAppend(t, l, Record{Event: Executed, CommandLine: strings.Repeat("y", i*50)})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	segments, _ := files(t, cfg)
	if len(segments) < 8 {
		t.Errorf("%d segments, want several", len(segments))
	}
	for _, s := range segments {
		if info, err := os.Stat(s); err != nil || info.Size() > 4000 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", s, info, err)
		}
	}
	if rep := only(t, cfg); rep.State != Whole || rep.Records != 41 {
		t.Errorf("Verify = %v", rep)
	}
	if got := collect(t, cfg.Dir, Filter{}); len(got) != 41 || got[40].Record.Seq != 40 {
		t.Errorf("Query gives %d records, want 41 in order", len(got))
	}
	if err := os.Remove(segments[2]); err != nil {
		t.Fatal(err)
	}
	if rep := only(t, cfg); rep.State != MissingFile || rep.File != segments[2] {
		t.Errorf("a file in the middle removed: %v", rep)
	}
}

// TestHeadBecomesDurable: without further records, the newest head is synced
// after the interval.
func TestHeadBecomesDurable(t *testing.T) {
	cfg := testConfig(t)
	synctest.Test(t, func(t *testing.T) {
		var syncs atomic.Int64
		cfg.SyncInterval = time.Minute
		cfg.wrapHeads = func(f slotFile) slotFile {
			return &faultyHead{slotFile: f, sync: func() error { syncs.Add(1); return nil }}
		}
		l, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if n := syncs.Load(); n != 0 {
			t.Errorf("%d syncs of the head after 59 s, want 0", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := syncs.Load(); n != 1 {
			t.Errorf("%d syncs of the head after 61 s, want 1", n)
		}
	})
}

// TestAnnounce: what is announced is durable at once, and signed by the next append,
// or by itself after a moment.
func TestAnnounce(t *testing.T) {
	cfg := testConfig(t)
	synctest.Test(t, func(t *testing.T) {
		var heads, synced atomic.Int64
		cfg.SyncInterval = time.Minute
		cfg.wrapHeads = func(f slotFile) slotFile {
			return &faultyHead{slotFile: f, put: func() error { heads.Add(1); return nil }}
		}
		cfg.createSegment = func(p string) (segmentFile, error) {
			f, err := createSegment(p)
			return &faultyFile{segmentFile: f, sync: func() error { synced.Add(1); return nil }}, err
		}
		l, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		check := func(when string, records, signed, wantHeads, wantSyncs int64) {
			t.Helper()
			if rep := only(t, cfg); !rep.State.OK() || rep.Records != records || rep.Signed != signed {
				t.Errorf("%s: %v, want %d records, %d signed", when, rep, records, signed)
			}
			if h, s := heads.Load(), synced.Load(); h != wantHeads || s != wantSyncs {
				t.Errorf("%s: %d heads and %d syncs, want %d and %d", when, h, s, wantHeads, wantSyncs)
			}
		}
		announce := func() {
			t.Helper()
			if _, err := l.Announce(t.Context(), Record{Event: Started}); err != nil {
				t.Fatal(err)
			}
		}
		check("opened", 1, 1, 1, 1)
		announce()
		check("announced", 2, 1, 1, 2)
		testAppend(t, l, Record{Event: Executed})
		check("and ended", 3, 3, 2, 3)
		time.Sleep(time.Second)
		synctest.Wait()
		check("a second later", 3, 3, 2, 3)
		announce()
		time.Sleep(signWithin - time.Millisecond)
		synctest.Wait()
		check("announced and waiting", 4, 3, 2, 4)
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		check("announced for a while", 4, 4, 3, 4)
		announce()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if rep := only(t, cfg); rep.State != Whole || rep.Signed != 5 {
			t.Errorf("closed after an announcement: %v, want whole with 5 signed", rep)
		}
	})
}

// TestAnnounceBeforeRotation: what is announced is signed before the chain goes on in
// another file.
func TestAnnounceBeforeRotation(t *testing.T) {
	cfg := testConfig(t)
	cfg.SegmentBytes = 1
	l := testOpen(t, cfg)
	for range 3 {
		if _, err := l.Announce(t.Context(), Record{Event: Started}); err != nil {
			t.Fatal(err)
		}
	}
	if rep := only(t, cfg); !rep.State.OK() || rep.Records != 4 || rep.Signed < 3 {
		t.Errorf("Verify = %v, want 4 records, 3 signed", rep)
	}
}

// TestAnnouncedStays: a record that was announced stays when the next one cannot be
// written: what it announces may have happened.
func TestAnnouncedStays(t *testing.T) {
	cfg := testConfig(t)
	var disk tightDisk
	disk.put(&cfg, true, true, true)
	l := testOpen(t, cfg)
	id, err := l.Announce(t.Context(), Record{Event: Started, EffectID: "begun"})
	if err != nil {
		t.Fatal(err)
	}
	disk.full.Store(true)
	if _, err := l.Append(t.Context(), Record{Event: Executed}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Append = %v, want no room", err)
	}
	disk.full.Store(false)
	testAppend(t, l, Record{Event: Executed})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if lost, _ := missing(t, cfg.Dir, map[ID]string{id: "begun"}); len(lost) != 0 {
		t.Errorf("lost %v", lost)
	}
	if rep := only(t, cfg); rep.State != Whole {
		t.Errorf("Verify = %v, want whole", rep)
	}
}

// TestClockSetBack: time never runs backwards in a chain, and the record says
// what the clock said.
func TestClockSetBack(t *testing.T) {
	cfg := testConfig(t)
	now := seedClock()
	cfg.now = func() time.Time { return now }
	l := testOpen(t, cfg)
	now = now.Add(-time.Hour)
	testAppend(t, l, Record{Event: Executed})
	got := collect(t, cfg.Dir, Filter{Event: string(Executed)})[0].Record
	if want := seedClock().Truncate(time.Millisecond); !got.Timestamp.Equal(want) || got.Clock == nil || !got.Clock.Equal(want.Add(-time.Hour)) {
		t.Errorf("timestamp %v, clock %v; want %v and an hour less", got.Timestamp, got.Clock, want)
	}
}

// TestViewTrouble: a view that cannot be written fails no call, is counted,
// says so in itself when it works again, and is set aside when too long.
func TestViewTrouble(t *testing.T) {
	cfg := testConfig(t)
	cfg.ViewDir = filepath.Join(t.TempDir(), "logs")
	mustWrite(t, cfg.ViewDir, nil) // a file where the directory should be
	l := testOpen(t, cfg)
	testAppend(t, l, seedRecord())
	waitFor(t, func() bool { return l.Views().Lost == 3 }) // the first record in one view, the second in two
	if h := l.Views(); h.Err == nil || h.Written != 0 {
		t.Errorf("Views() = %+v, want an error", h)
	}
	if err := os.Remove(cfg.ViewDir); err != nil {
		t.Fatal(err)
	}
	testAppend(t, l, seedRecord())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := string(mustRead(t, filepath.Join(cfg.ViewDir, "ken.log"))); strings.Count(got, "\n") != 2 || !strings.Contains(got, `"event": "view_lines_lost", "lost": 2}`) {
		t.Errorf("ken.log = %q, want a line about 2 lost ones and a record", got)
	}
}

func TestViewRotation(t *testing.T) {
	cfg := testConfig(t)
	cfg.ViewDir = filepath.Join(t.TempDir(), "logs")
	cfg.ViewBytes = 1000
	if err := os.MkdirAll(cfg.ViewDir, 0o700); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(cfg.ViewDir, "security.log"), []byte("half a li"))
	l := testOpen(t, cfg)
	for range 30 {
		r := seedRecord()
		r.Event = Violation
		testAppend(t, l, r)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if h := l.Views(); h.Lost != 0 || h.Err != nil {
		t.Errorf("Views() = %+v", h)
	}
	all, err := filepath.Glob(filepath.Join(cfg.ViewDir, "security.log*"))
	if err != nil || len(all) != keptViews+1 {
		t.Errorf("views = %v, %v, want %d", all, err, keptViews+1)
	}
	for _, path := range all {
		if info, err := os.Stat(path); err != nil || info.Size() > 2000 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}

// waitFor waits a short while for something that another goroutine does.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen within 10 s")
		}
	}
}
