package outcome

import (
	"errors"
	"hash/maphash"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"
)

// A tail reads what was added to a log's files since it last read.
type tail struct {
	dir string
	at  map[uint64]int64 // file to the end of what was read of it
}

func newTail(dir string) tail { return tail{dir, map[uint64]int64{}} }

// read calls fn for each new event, and names the files whose events no longer
// count because they are gone. Of a file that it sees for the first time it
// reads only what is about since or later. A line without an end is left for
// the next time, a bad one is passed over.
func (t *tail) read(since time.Time, fn func(file uint64, e Event)) (gone []uint64, err error) {
	files, err := logFiles(t.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, readError(t.dir, err)
	}
	for file := range maps.Keys(t.at) {
		if !slices.Contains(files, file) {
			gone = append(gone, file)
			delete(t.at, file)
		}
	}
	var errs []error
	for _, file := range files {
		shrunk, err := t.readFile(file, since, fn)
		if shrunk {
			gone = append(gone, file)
			delete(t.at, file)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, readError(logPath(t.dir, file), err))
		}
	}
	return gone, errors.Join(errs...)
}

// readFile reads one file's new events. A file that became shorter is another
// file: what was read of it is to be forgotten, and it is read the next time.
func (t *tail) readFile(file uint64, since time.Time, fn func(uint64, Event)) (shrunk bool, err error) {
	path := logPath(t.dir, file)
	at, known := t.at[file]
	if known {
		info, err := os.Stat(path)
		if err != nil || info.Size() <= at {
			return err == nil && info.Size() < at, err
		}
		since = time.Time{}
	}
	lines, err := openLines(path, since)
	if err != nil {
		return false, err
	}
	defer lines.close()
	if known {
		if err := lines.seek(at); err != nil {
			return false, err
		}
	}
	for {
		t.at[file] = lines.at
		line, err := lines.next()
		var e Event
		if err == nil {
			err = decodeHead(line, &e)
		}
		switch {
		case errors.Is(err, errUnfinished), err == io.EOF:
			return false, nil
		case errors.Is(err, errLine):
		case err != nil:
			return false, err
		default:
			fn(file, e)
		}
	}
}

// A window counts the turns of a span of time that ends now.
type window struct {
	span time.Duration
	seed maphash.Seed

	all       []turn // by time
	lo, hi    int    // all[lo:hi] is within the span; behind hi is the future
	triggered int
	sessions  map[uint64]int // hash to turns within the span
}

type turn struct {
	at        int64 // nanoseconds since 1970
	session   uint64
	file      uint64
	triggered bool
}

func newWindow(span time.Duration) window {
	return window{span: span, seed: maphash.MakeSeed(), sessions: map[uint64]int{}}
}

func (w *window) turns() int { return w.hi - w.lo }

func (w *window) from() time.Time {
	if w.lo == w.hi {
		return time.Time{}
	}
	return time.Unix(0, w.all[w.lo].at).UTC()
}

// add puts a turn in its place; advance counts it.
func (w *window) add(file uint64, e Event) {
	t := turn{e.Time.UnixNano(), maphash.String(w.seed, e.Session), file, e.Triggered > 0}
	// Lines come nearly in order, so the place is near the end.
	i := len(w.all)
	for i > 0 && w.all[i-1].at > t.at {
		i--
	}
	w.all = slices.Insert(w.all, i, t)
	switch {
	case i < w.lo:
		w.lo++
		w.hi++
	case i < w.hi:
		w.hi++
		w.count(t, 1)
	}
}

// advance moves the span so that it ends at now.
func (w *window) advance(now time.Time) {
	for end := now.UnixNano(); w.hi < len(w.all) && w.all[w.hi].at <= end; w.hi++ {
		w.count(w.all[w.hi], 1)
	}
	for begin := now.Add(-w.span).UnixNano(); w.lo < w.hi && w.all[w.lo].at <= begin; w.lo++ {
		w.count(w.all[w.lo], -1)
	}
	if w.lo > 1024 && w.lo > len(w.all)/2 {
		w.all = slices.Delete(w.all, 0, w.lo)
		w.hi -= w.lo
		w.lo = 0
	}
}

func (w *window) count(t turn, by int) {
	if t.triggered {
		w.triggered += by
	}
	if w.sessions[t.session] += by; w.sessions[t.session] == 0 {
		delete(w.sessions, t.session)
	}
}

// forget drops the turns of files that are gone, as a restart would.
func (w *window) forget(files []uint64) {
	if len(files) == 0 {
		return
	}
	kept := slices.DeleteFunc(w.all, func(t turn) bool { return slices.Contains(files, t.file) })
	w.clear()
	w.all = kept
}

func (w *window) clear() {
	w.all, w.lo, w.hi, w.triggered = nil, 0, 0, 0
	clear(w.sessions)
}
