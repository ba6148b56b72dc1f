package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/store"
)

// A Writer takes one result as it comes. It holds about 100 KB whatever is
// written, and Write never fails: a result that cannot be kept does not stop
// what makes it. Writes from several goroutines are kept in some order, each
// in one piece. Every Writer ends with Commit or Abort.
type Writer struct {
	store *Store
	scope Scope
	about About

	mu    sync.Mutex
	dir   *os.Root
	part  string // name of the file that is being written
	file  *os.File
	buf   []byte // until the file is created
	total counter
	head  counter // of what buf or file holds
	over  bool    // the head is full
	tail  []byte  // the end of what came after it
	fault error   // why the head ended early
	done  bool
	with  *With // nil: the copy that replicas share is written at once
}

// Create begins a result.
func (s *Store) Create(scope Scope, about About) (*Writer, error) {
	dir, err := s.folder(scope, true)
	if err != nil {
		return nil, err
	}
	return &Writer{store: s, scope: scope, about: about, dir: dir}, nil
}

// Write keeps p, or counts it. It always takes all of it.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return 0, errors.New("write result: already committed; create a new result")
	}
	n := len(p)
	if !w.over {
		room := w.store.cfg.MaxBytes - tailBytes - gapBytes - w.head.bytes
		first := p
		if int64(len(p)) > room {
			first = p[:cutBefore(p, int(room))]
			w.over = true
		}
		kept := w.keep(first)
		w.head.add(first[:kept])
		w.total.add(first[:kept])
		p = p[kept:]
	}
	if len(p) > 0 {
		w.over = true
		w.total.add(p)
		w.remember(p)
	}
	return n, nil
}

// cutBefore returns the last place at or before n that does not part a
// character.
func cutBefore(p []byte, n int) int {
	for i := n; i > max(0, n-utf8.UTFMax); i-- {
		if i == len(p) || utf8.RuneStart(p[i]) {
			return i
		}
	}
	return n
}

// keep adds to the head and says how much of p it took.
func (w *Writer) keep(p []byte) int {
	if w.file == nil && len(w.buf)+len(p) <= inline {
		w.buf = append(w.buf, p...)
		return len(p)
	}
	if w.file == nil {
		if err := w.openPart(); err != nil {
			w.fault = err
			return 0
		}
	}
	n, err := w.file.Write(p)
	if err != nil {
		w.fault = err
	}
	return n
}

func (w *Writer) openPart() error {
	handle, _ := w.store.newHandle()
	w.part = handle + ".part"
	f, err := w.create(w.part)
	if err != nil {
		return err
	}
	if _, err := f.Write(w.buf); err != nil {
		f.Close()
		w.dir.Remove(w.part)
		return err
	}
	w.file, w.buf = f, nil
	return nil
}

// create makes a file in the scope's folder. A sweep takes a folder away when
// nothing is in it; then it is made again.
func (w *Writer) create(name string) (*os.File, error) {
	f, err := w.dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	for tries := 0; errors.Is(err, fs.ErrNotExist) && tries < 3; tries++ {
		dir, err2 := w.store.folder(w.scope, true)
		if err2 != nil {
			return nil, err2
		}
		w.dir.Close()
		w.dir = dir
		f, err = w.dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	}
	return f, err
}

// remember holds the last bytes of what is too much.
func (w *Writer) remember(p []byte) {
	if len(p) >= tailBytes {
		w.tail = append(w.tail[:0], p[len(p)-tailBytes:]...)
		return
	}
	if len(w.tail)+len(p) > 2*tailBytes {
		w.tail = w.tail[:copy(w.tail, w.tail[len(w.tail)-tailBytes:])]
	}
	w.tail = append(w.tail, p...)
}

// Abort forgets what was written. After Commit it does nothing.
func (w *Writer) Abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.done {
		w.discard()
	}
}

func (w *Writer) discard() {
	w.done = true
	if w.file != nil {
		w.file.Close()
		w.dir.Remove(w.part)
	}
	w.dir.Close()
}

// Commit makes the result readable, under a new handle, as the last of its
// session. Without it nothing of the result is seen by anyone.
func (w *Writer) Commit(failed bool, meta map[string]string) (Entry, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return Entry{}, errors.New("commit result: already committed; create a new result")
	}
	e, err := w.commit(failed, meta)
	if err != nil {
		w.discard()
		return Entry{}, refuse(capability.Unavailable, "keep result", err, "make room in "+w.store.cfg.Dir+" and see that it is writable")
	}
	if w.store.cfg.Shared != nil {
		if err := w.store.share(w.scope, e.Handle, w.with); err != nil {
			w.dir.Remove(e.Handle)
			w.discard()
			return Entry{}, refuse(capability.Unavailable, "keep result", err, "results are kept in the store that replicas share; see that it can be written")
		}
	}
	if w.store.made.Load()%pruneEach == 0 {
		w.store.prune(w.dir)
		_ = w.store.unshare(w.scope, w.store.cfg.PerSession, "") // what is left expires
	}
	w.done = true
	w.dir.Close()
	w.store.due(e.Kept.Bytes)
	return e, nil
}

func (w *Writer) commit(failed bool, meta map[string]string) (Entry, error) {
	e := Entry{About: w.about, Failed: failed, Meta: meta}
	if err := w.finishText(&e); err != nil {
		return e, err
	}
	w.total.finish()
	e.Bytes, e.Chars, e.Lines, e.Binary = w.total.bytes, w.total.chars, w.total.lines(), w.total.binary
	e.Spilled = e.Chars > Whole
	// The newest handle is the last result, so it is made last.
	e.Handle, e.Made = w.store.newHandle()
	h := header{Version: headerVersion, Entry: e, Apart: w.file != nil}
	line, err := json.Marshal(h)
	if err != nil {
		return e, err
	}
	if len(line) >= headerLimit {
		return e, fmt.Errorf("description has %d bytes, more than %d", len(line), headerLimit)
	}
	if w.file != nil {
		if err := w.file.Close(); err != nil {
			return e, err
		}
		if err := w.dir.Rename(w.part, e.Handle+".text"); err != nil {
			return e, err
		}
		w.part = e.Handle + ".text" // for discard
	}
	return e, w.describe(e.Handle, append(append(line, '\n'), w.buf...))
}

// describe writes the file that makes a result exist. It is written at once
// and its length is in it, so that a reader takes all of it or nothing.
func (w *Writer) describe(handle string, data []byte) error {
	f, err := w.create(handle)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err != nil {
		w.dir.Remove(handle)
	}
	return err
}

// finishText puts the end after the head, with a line between them that says
// what is missing.
func (w *Writer) finishText(e *Entry) error {
	tail := w.tail
	if cut := len(tail) - tailBytes; cut > 0 {
		tail = tail[cut:]
	}
	if w.total.bytes-w.head.bytes > int64(len(tail)) { // something is missing between them
		for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
	}
	e.Lost = w.total.bytes - w.head.bytes - int64(len(tail))
	if e.Lost > 0 {
		e.Note = fmt.Sprintf("only the first %d and the last %d bytes were kept", w.head.bytes, len(tail))
		if w.fault != nil {
			e.Note += "; " + w.fault.Error()
		}
		gap := fmt.Sprintf("\n[%d bytes in %d lines were not kept here]\n",
			e.Lost, w.total.newlines-w.head.newlines-int64(bytes.Count(tail, []byte{'\n'})))
		tail = append([]byte(gap), tail...)
	}
	if n := w.keepRest(tail); n < len(tail) {
		// The disk takes no more: keep the head, and say so.
		e.Lost = w.total.bytes - w.head.bytes
		e.Note = fmt.Sprintf("only the first %d bytes were kept; %v", w.head.bytes, w.fault)
	} else {
		w.head.add(tail)
	}
	w.head.finish()
	e.Kept = Extent{Bytes: w.head.bytes, Chars: w.head.chars, Lines: w.head.lines()}
	return nil
}

// keepRest adds all of p to the head or nothing.
func (w *Writer) keepRest(p []byte) int {
	if len(p) == 0 {
		return 0
	}
	n := w.keep(p)
	if n < len(p) && w.file != nil {
		if err := w.file.Truncate(w.head.bytes); err != nil {
			w.fault = err
		}
	}
	return n
}

// counter counts bytes, characters and line breaks of a stream.
type counter struct {
	bytes, chars, newlines int64
	rest                   []byte // beginning of a character whose end has not come
	last                   byte
	binary                 bool
}

func (c *counter) add(p []byte) {
	if len(p) == 0 {
		return
	}
	c.bytes += int64(len(p))
	c.newlines += int64(bytes.Count(p, []byte{'\n'}))
	c.last = p[len(p)-1]
	for len(c.rest) > 0 && len(p) > 0 { // finish what was begun
		c.rest, p = append(c.rest, p[0]), p[1:]
		for len(c.rest) > 0 && utf8.FullRune(c.rest) {
			r, size := utf8.DecodeRune(c.rest)
			c.binary = c.binary || r == utf8.RuneError && size == 1
			c.chars++
			c.rest = c.rest[:copy(c.rest, c.rest[size:])]
		}
	}
	if len(p) == 0 {
		return
	}
	whole := wholeRunes(p)
	c.rest = append(c.rest, p[whole:]...)
	p = p[:whole]
	chars, valid := countRunes(p)
	c.chars += chars
	c.binary = c.binary || !valid || bytes.IndexByte(p, 0) >= 0
}

// countRunes counts characters, a byte that is not UTF-8 as one. It does what
// utf8.RuneCount does without the copy that one makes of all but ASCII.
func countRunes(p []byte) (n int64, valid bool) {
	if valid = utf8.Valid(p); valid {
		for _, b := range p {
			if utf8.RuneStart(b) {
				n++
			}
		}
		return n, true
	}
	for len(p) > 0 {
		_, size := utf8.DecodeRune(p)
		p = p[size:]
		n++
	}
	return n, false
}

func runeCount(p []byte) int64 {
	n, _ := countRunes(p)
	return n
}

// wholeRunes returns the length of p without a character whose end is missing.
func wholeRunes(p []byte) int {
	for i := 1; i <= min(utf8.UTFMax-1, len(p)); i++ {
		if b := p[len(p)-i]; utf8.RuneStart(b) {
			if !utf8.FullRune(p[len(p)-i:]) {
				return len(p) - i
			}
			break
		}
	}
	return len(p)
}

// finish counts what never became a character.
func (c *counter) finish() {
	if len(c.rest) > 0 {
		c.chars += runeCount(c.rest)
		c.binary, c.rest = true, nil
	}
}

func (c *counter) lines() int64 {
	if c.bytes > 0 && c.last != '\n' {
		return c.newlines + 1
	}
	return c.newlines
}

// Keep stores a text that is at hand.
func (s *Store) Keep(scope Scope, about About, text []byte, failed bool, meta map[string]string) (Entry, error) {
	w, err := s.Create(scope, about)
	if err != nil {
		return Entry{}, err
	}
	w.Write(text) // never fails
	return w.Commit(failed, meta)
}

// A With is a batch for a store in which the caller writes something else as well.
type With struct {
	Store *store.Store
	Batch store.Batch
}

// KeepWith is like Keep. If the copy that replicas share belongs in the same store and
// is small, it is added to the caller's batch, and other replicas can read the result
// once the batch was applied.
func (s *Store) KeepWith(with *With, scope Scope, about About, text []byte, failed bool, meta map[string]string) (Entry, error) {
	w, err := s.Create(scope, about)
	if err != nil {
		return Entry{}, err
	}
	w.with = with
	w.Write(text) // never fails
	return w.Commit(failed, meta)
}

// Expires says when an entry of this Store can no longer be read.
func (s *Store) Expires(e Entry) time.Time { return e.Made.Add(s.cfg.Keep) }
