package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ken/internal/testkit"
)

// A tightDisk is a disk that may be full.
type tightDisk struct{ full atomic.Bool }

func (d *tightDisk) room() error {
	if d.full.Load() {
		return syscall.ENOSPC
	}
	return nil
}

// put puts the files of a log on d, some of them.
func (d *tightDisk) put(cfg *Config, segments, names, heads bool) {
	var f faults
	if segments {
		f.write, f.sync = d.room, d.room
	}
	if names {
		f.create = d.room
	}
	if heads {
		f.head, f.headSync = d.room, d.room
	}
	f.put(cfg)
}

// TestRoomAgain: whichever file finds no room, and however often, the log goes
// on by itself when there is some. Nothing acknowledged is lost, nothing
// refused is there, and every time is told in the chain.
func TestRoomAgain(t *testing.T) {
	testkit.CI(t, "writes a hundred logs")
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		home := testkit.Must(os.MkdirTemp(dir, ""))(rt)
		defer os.RemoveAll(home)
		cfg := Config{Dir: home + "/a", CheckpointDir: home + "/c", Key: testKey(t), CheckpointEvery: rapid.IntRange(1, 8).Draw(rt, "every")}
		cfg.SegmentBytes = rapid.SampledFrom([]int64{1, 3000, 1 << 20}).Draw(rt, "segment bytes")
		var disk tightDisk
		disk.put(&cfg, rapid.Bool().Draw(rt, "segments"), rapid.Bool().Draw(rt, "names"), rapid.Bool().Draw(rt, "heads"))
		l := testkit.Must(Open(cfg))(rt)
		acks, refused := map[ID]string{}, map[string]bool{}
		gaps, inGap := 0, false
		for i := range rapid.IntRange(1, 30).Draw(rt, "steps") {
			disk.full.Store(rapid.IntRange(0, 2).Draw(rt, "full") == 0)
			records := make([]Record, rapid.IntRange(1, 3).Draw(rt, "records"))
			for j := range records {
				records[j] = Record{Event: Executed, EffectID: fmt.Sprintf("%d-%d", i, j)}
			}
			write := l.Append
			if rapid.Bool().Draw(rt, "announced") {
				write = l.Announce
			}
			id, err := write(context.Background(), records...)
			if err == nil {
				acks[id], inGap = records[0].EffectID, false
				continue
			}
			if !disk.full.Load() || !errors.Is(err, ErrPoisoned) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "no space") {
				rt.Fatalf("Append or Announce = %v with full = %v", err, disk.full.Load())
			}
			if !inGap {
				gaps++
			}
			inGap = true
			for _, r := range records {
				refused[r.EffectID] = true
			}
		}
		disk.full.Store(false)
		if err := l.Close(); err != nil {
			rt.Fatalf("Close() = %v, want nil: there is room", err)
		}
		told := 0
		for e, err := range Query(cfg.Dir, Filter{}) {
			switch {
			case err != nil:
				rt.Fatal(err)
			case e.Record.Event == Resumed:
				told++
			case refused[e.Record.EffectID]:
				rt.Errorf("%s was refused and is in the trail", e.Record.EffectID)
			case acks[e.ID] == e.Record.EffectID:
				delete(acks, e.ID)
			}
		}
		if len(acks) != 0 || told != gaps {
			rt.Errorf("lost %v; %d gaps told, want %d", acks, told, gaps)
		}
		rep, err := Verify(cfg.Dir, cfg.CheckpointDir, cfg.Key.Public())
		if err != nil || len(rep.Chains) != 1 || rep.Chains[0].State != Whole {
			rt.Errorf("Verify() = %v, %v, want one whole chain", rep, err)
		}
	})
}

// TestRoomAgainTogether: many callers at once, some of whom meet the full disk.
// Each of them knows how its own record fared.
func TestRoomAgainTogether(t *testing.T) {
	cfg := testConfig(t)
	var disk tightDisk
	disk.put(&cfg, true, true, true)
	l := testOpen(t, cfg)
	var mu sync.Mutex
	acks, refused := map[ID]string{}, 0
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 60 {
				if w == 0 {
					disk.full.Store(i%3 == 1)
				}
				effect := fmt.Sprintf("%d-%d", w, i)
				id, err := l.Append(t.Context(), Record{Event: Executed, EffectID: effect})
				mu.Lock()
				if err == nil {
					acks[id] = effect
				} else {
					refused++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	disk.full.Store(false)
	testClose(t, l)
	n := len(acks)
	if lost, _ := missing(t, cfg.Dir, acks); len(lost) != 0 || refused == 0 {
		t.Errorf("lost %d of %d, refused %d; want none and some", len(lost), n, refused)
	}
	wantChain(t, cfg, Whole)
	said := 0
	for _, e := range collect(t, cfg.Dir, Filter{Event: string(Resumed)}) {
		var n int
		if _, err := fmt.Sscan(e.Record.Metadata.Notes["refused"], &n); err != nil {
			t.Error(err)
		}
		said += n
	}
	if said != refused {
		t.Errorf("the trail says that %d were refused, want %d", said, refused)
	}
}

// TestRoomFollowed: a follower that saw torn ends, one after the other, goes on
// with what replaced them.
func TestRoomFollowed(t *testing.T) {
	cfg := testConfig(t)
	cfg.SyncInterval = time.Hour
	var disk tightDisk
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// Nothing torn is taken back before the follower has seen it.
	caught := make(chan struct{}, 100)
	var refused atomic.Int64
	faults{write: disk.room, headSync: func() error {
		if disk.full.Load() {
			<-caught
			refused.Add(1)
		}
		return nil
	}}.put(&cfg)
	l := testOpen(t, cfg)
	seen := make(chan string, 100)
	begun := make(chan struct{})
	go func() {
		defer close(seen)
		for e, err := range Tail(ctx, cfg.Dir, Filter{Since: seedClock()}) {
			if err != nil {
				t.Error(err)
				continue
			}
			if e.Record.Event == Opened {
				close(begun)
				continue
			}
			if e.Record.EffectID == "lost 0" {
				caught <- struct{}{}
			}
			seen <- string(e.Record.Event) + " " + e.Record.EffectID
		}
	}()
	<-begun
	testAppend(t, l, Record{Event: Executed, EffectID: "one"})
	var lost []Record
	for i := range 6 {
		lost = append(lost, Record{Event: Executed, EffectID: fmt.Sprint("lost ", i)})
	}
	disk.full.Store(true)
	for range 2 {
		if _, err := l.Append(t.Context(), lost...); err == nil {
			t.Fatal("Append() = nil on a full disk")
		}
	}
	testkit.Wait(t, "two refused appends", func() bool { return refused.Load() == 2 })
	disk.full.Store(false)
	testAppend(t, l, Record{Event: Executed, EffectID: "two"})
	first, last, before := "", "", "" // a follower may see what is not acknowledged between them
	for got := range seen {
		first, before, last = cmp.Or(first, got), last, got
		if got == string(Executed)+" two" {
			cancel()
		}
	}
	if want := string(Executed) + " one"; first != want {
		t.Errorf("Tail begins with %q, want %q", first, want)
	}
	if before != string(Resumed)+" " || last != string(Executed)+" two" {
		t.Errorf("Tail ends with %q and %q, want what was acknowledged", before, last)
	}
}

// TestOpenWithoutRoom: a chain whose first record found no room has none, even
// where there is some when it is given up.
func TestOpenWithoutRoom(t *testing.T) {
	cfg := testConfig(t)
	var full atomic.Int64
	cfg.createSegment = func(p string) (segmentFile, error) {
		f, err := createSegment(p)
		return &faultyFile{f, faults{sync: func() error {
			if full.Add(1) == 1 {
				return &fs.PathError{Op: "sync", Path: p, Err: syscall.ENOSPC}
			}
			return nil
		}}}, err
	}
	_, err := Open(cfg)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("Open() = %v, want ENOSPC", err)
	}
	for _, once := range []string{cfg.Dir, "no space left", "no call runs until it can be recorded"} {
		if n := strings.Count(err.Error(), once); n != 1 {
			t.Errorf("Open() = %v, which says %q %d times, want once", err, once, n)
		}
	}
	if got := collect(t, cfg.Dir, Filter{}); len(got) != 0 {
		t.Errorf("the chain begins with %s, want no record", got[0].Record.Event)
	}
	if rep := only(t, cfg); rep.State != OpenDied || rep.Records != 0 {
		t.Errorf("Verify() = %v, want died while opening", rep)
	}
}

// A forgetfulHead is a file of heads on a disk that has no room once, when it
// must make good what it took: what was written behind the first slot since the
// sync before is zeros then.
type forgetfulHead struct {
	slotFile
	full *atomic.Bool
	at   []int64
}

func (f *forgetfulHead) WriteAt(b []byte, off int64) (int, error) {
	if off > 0 {
		f.at = append(f.at, off)
	}
	return f.slotFile.WriteAt(b, off)
}

func (f *forgetfulHead) Sync() error {
	at := f.at
	f.at = nil
	if len(at) == 0 || !f.full.CompareAndSwap(true, false) {
		return f.slotFile.Sync()
	}
	for _, off := range at {
		if _, err := f.slotFile.WriteAt(make([]byte, slotSize), off); err != nil {
			return err
		}
	}
	return syscall.ENOSPC
}

// TestRoomForHistory: a head of the history that found no room when it was
// synced is written again in its place, whatever the disk made of it.
func TestRoomForHistory(t *testing.T) {
	cfg := testConfig(t)
	cfg.CheckpointEvery = 2
	var full atomic.Bool
	cfg.wrapHeads = func(f slotFile) slotFile { return &forgetfulHead{slotFile: f, full: &full} }
	l := testOpen(t, cfg)
	testAppend(t, l, ran)
	full.Store(true)
	testAppend(t, l, ran)
	testAppend(t, l, ran) // kept, and lost
	testkit.Wait(t, "a full disk that was met", func() bool { return !full.Load() })
	testAppend(t, l, ran)
	testClose(t, l)
	wantChain(t, cfg, Whole)
}
