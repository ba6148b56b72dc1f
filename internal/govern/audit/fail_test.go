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
	"ken/internal/testkit"
)

// faults makes steps of a log fail: creating, writing and syncing a segment, and
// writing and syncing a head. What is nil works.
type faults struct{ create, write, sync, head, headSync func() error }

// errShort makes a write take a part and not say so.
var errShort = errors.New("short write")

func (f faults) put(cfg *Config) {
	cfg.createSegment = func(p string) (segmentFile, error) {
		if err := try(f.create); err != nil {
			return nil, err
		}
		s, err := createSegment(p)
		return &faultyFile{s, f}, err
	}
	cfg.wrapHeads = func(s slotFile) slotFile { return &faultyHead{s, f} }
}

func try(step func() error) error {
	if step == nil {
		return nil
	}
	return step()
}

type faultyFile struct {
	segmentFile
	faults faults
}

func (f *faultyFile) Write(b []byte) (int, error) {
	err := try(f.faults.write)
	if err == nil {
		return f.segmentFile.Write(b)
	}
	n, _ := f.segmentFile.Write(b[:len(b)/2]) // a full disk takes a part
	if err == errShort {
		err = nil
	}
	return n, err
}

func (f *faultyFile) Sync() error {
	if err := try(f.faults.sync); err != nil {
		return err
	}
	return f.segmentFile.Sync()
}

type faultyHead struct {
	slotFile
	faults faults
}

func (f *faultyHead) WriteAt(b []byte, off int64) (int, error) {
	if err := try(f.faults.head); err != nil {
		return 0, err
	}
	return f.slotFile.WriteAt(b, off)
}

func (f *faultyHead) Sync() error {
	if err := try(f.faults.headSync); err != nil {
		return err
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
		name   string
		cause  error
		faults faults
	}{
		{"full disk", syscall.ENOSPC, faults{write: after(good, syscall.ENOSPC)}},
		{"short write", io.ErrShortWrite, faults{write: after(good, errShort)}},
		{"fsync", syscall.EIO, faults{sync: after(good, syscall.EIO)}},
		{"rotation", syscall.EROFS, faults{create: after(good, syscall.EROFS)}},
		{"checkpoint write", syscall.EDQUOT, faults{head: after(good, syscall.EDQUOT)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := testConfig(t)
			if c.faults.create != nil {
				cfg.SegmentBytes = 1
			}
			c.faults.put(&cfg)
			l := testOpen(t, cfg)
			acks := map[ID]string{}
			for i := range good - 1 {
				effect := fmt.Sprint(i)
				acks[testAppend(t, l, Record{Event: Executed, EffectID: effect})] = effect
			}
			for range 3 {
				_, err := l.Append(t.Context(), ran)
				if !errors.Is(err, ErrPoisoned) || !errors.Is(err, c.cause) || capability.KindOf(err) != capability.Unavailable {
					t.Fatalf("Append = %v, want poisoned by %v", err, c.cause)
				}
			}
			if err := l.Close(); !errors.Is(err, ErrPoisoned) {
				t.Errorf("Close() = %v, want poisoned", err)
			}
			noneLost(t, cfg, acks)
			if rep := only(t, cfg); rep.State != OpenDied || rep.Signed != good {
				t.Errorf("Verify = %v, want died with %d signed", rep, good)
			}
		})
	}
}

// TestKeepFailure: a checkpoint that cannot be made durable stops the log,
// though not the append that it came after.
func TestKeepFailure(t *testing.T) {
	cfg := testConfig(t)
	cfg.CheckpointEvery = 3
	faults{headSync: after(0, syscall.EIO)}.put(&cfg)
	l := testOpen(t, cfg)
	testAppend(t, l, ran)
	testAppend(t, l, ran)
	// The failure comes after the acknowledgement, so the next one may meet it or the one after.
	var err error
	for range 2 {
		if _, err = l.Append(t.Context(), ran); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrPoisoned) || !errors.Is(err, syscall.EIO) {
		t.Errorf("Append = %v, want poisoned by EIO", err)
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
	faults{sync: note("sync"), head: note("head")}.put(&cfg)
	l := testOpen(t, cfg)
	testAppend(t, l, ran)
	mu.Lock()
	broken = syscall.EIO
	mu.Unlock()
	if _, err := l.Append(t.Context(), ran); !errors.Is(err, ErrPoisoned) {
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
			faults{sync: after(0, syscall.EIO)}.put(c)
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
	if _, err := l.Append(t.Context(), ran); !errors.Is(err, ErrClosed) {
		t.Errorf("Append after Close = %v, want ErrClosed", err)
	}
}

// TestAppendContext: a caller that gives up is told that it does not know.
func TestAppendContext(t *testing.T) {
	cfg := testConfig(t)
	gate := make(chan struct{})
	first := true
	faults{sync: func() error {
		if !first {
			<-gate
		}
		first = false
		return nil
	}}.put(&cfg)
	l := testOpen(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Append(ctx, Record{Event: Executed}); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "may or may not have been written") {
		t.Errorf("Append = %v, want canceled and not known", err)
	}
	close(gate)
	testAppend(t, l, ran)
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
	testClose(t, l)
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
	testkit.OK(t, os.Remove(segments[2]))
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
		faults{headSync: func() error { syncs.Add(1); return nil }}.put(&cfg)
		l := testkit.Must(Open(cfg))(t)
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
		faults{head: func() error { heads.Add(1); return nil }, sync: func() error { synced.Add(1); return nil }}.put(&cfg)
		l := testkit.Must(Open(cfg))(t)
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
			testkit.Must(l.Announce(t.Context(), Record{Event: Started}))(t)
		}
		check("opened", 1, 1, 1, 1)
		announce()
		check("announced", 2, 1, 1, 2)
		testAppend(t, l, ran)
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
		testClose(t, l)
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
		testkit.Must(l.Announce(t.Context(), Record{Event: Started}))(t)
	}
	if rep := only(t, cfg); !rep.State.OK() || rep.Records != 4 || rep.Signed < 3 {
		t.Errorf("Verify = %v, want 4 records, 3 signed", rep)
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
	testAppend(t, l, ran)
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
	// The first record is in one view, the second in two.
	testkit.Wait(t, "three lost lines", func() bool { return l.Views().Lost == 3 })
	if h := l.Views(); h.Err == nil || h.Written != 0 {
		t.Errorf("Views() = %+v, want an error", h)
	}
	testkit.OK(t, os.Remove(cfg.ViewDir))
	testAppend(t, l, seedRecord())
	testClose(t, l)
	if got := string(mustRead(t, filepath.Join(cfg.ViewDir, "ken.log"))); strings.Count(got, "\n") != 2 || !strings.Contains(got, `"event": "view_lines_lost", "lost": 2}`) {
		t.Errorf("ken.log = %q, want a line about 2 lost ones and a record", got)
	}
}

func TestViewRotation(t *testing.T) {
	cfg := testConfig(t)
	cfg.ViewDir = filepath.Join(t.TempDir(), "logs")
	cfg.ViewBytes = 1000
	testkit.OK(t, os.MkdirAll(cfg.ViewDir, 0o700))
	mustWrite(t, filepath.Join(cfg.ViewDir, "security.log"), []byte("half a li"))
	l := testOpen(t, cfg)
	for range 30 {
		r := seedRecord()
		r.Event = Violation
		testAppend(t, l, r)
	}
	testClose(t, l)
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
