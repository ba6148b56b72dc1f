package outcome

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"time"

	"ken/capability"
)

// A BadLine is a line of the log that cannot be read, such as one that a crash
// left half-written. Reading goes on behind it.
type BadLine struct {
	Path   string
	Offset int64 // of its first byte
	Err    error
}

func (b *BadLine) Error() string {
	return fmt.Sprintf("read outcome log %s, byte %d: %v; the line is skipped", b.Path, b.Offset, b.Err)
}

func (b *BadLine) Unwrap() error { return b.Err }

// disorder is how far lines may be out of order when a time is looked up: they
// are written just after the clock was read.
const disorder = time.Hour

// Events streams what happened at since or later, oldest file first, in the
// order of writing; a zero since means everything. Lines and files that cannot
// be read come as errors, a *[BadLine] for a line, and the stream goes on. What
// is written while it is read may or may not be part of it.
func (l *Log) Events(since time.Time) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		l.Flush()
		files, err := logFiles(l.dir)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				yield(Event{}, readError(l.dir, err))
			}
			return
		}
		for _, seq := range files {
			if !eventsOf(logPath(l.dir, seq), since, yield) {
				return
			}
		}
	}
}

func eventsOf(path string, since time.Time, yield func(Event, error) bool) (more bool) {
	lines, err := openLines(path, since)
	if errors.Is(err, fs.ErrNotExist) {
		return true // removed since it was listed, as the oldest
	}
	if err != nil {
		return yield(Event{}, readError(path, err))
	}
	defer lines.close()
	for {
		at := lines.at
		line, err := lines.next()
		if err == io.EOF {
			return true
		}
		var e Event
		if err == nil {
			err = decode(line, &e)
		}
		switch {
		case errors.Is(err, errLine):
			if !yield(Event{}, &BadLine{path, at, err}) {
				return false
			}
		case err != nil:
			return yield(Event{}, readError(path, err))
		case e.Time.Before(since):
		case !yield(e, nil):
			return false
		}
	}
}

func readError(path string, err error) error {
	return &capability.Error{
		Kind: capability.Unavailable, Op: "read outcome log", Target: path, Err: err,
		Fix: "make it readable or remove it; numbers and priors are without it",
	}
}

// errLine marks what is wrong with a line and not with its file.
var (
	errLine       = errors.New("not an event")
	errUnfinished = fmt.Errorf("%w: it is not finished", errLine)
)

// lines reads a file line by line. Empty ones are passed over.
type lines struct {
	f  *os.File
	r  *bufio.Reader
	at int64 // of the line that next returns
}

// openLines begins at a line that stands before everything at since or later.
func openLines(path string, since time.Time) (*lines, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	l := &lines{f: f, r: bufio.NewReaderSize(nil, maxLine)}
	if !since.IsZero() {
		err = l.seekTime(since.Add(-disorder))
	} else {
		err = l.seek(0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

func (l *lines) close() { l.f.Close() }

func (l *lines) seek(at int64) error {
	_, err := l.f.Seek(at, io.SeekStart)
	l.r.Reset(l.f)
	l.at = at
	return err
}

// next returns a line without its end, valid until the next call. Its error is
// io.EOF, an errLine for this line only, or the file's.
func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.r.ReadSlice('\n')
		l.at += int64(len(line))
		switch {
		case err == bufio.ErrBufferFull:
			return nil, l.skipRest()
		case err == io.EOF && len(line) > 0:
			return nil, errUnfinished
		case err != nil:
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

func (l *lines) skipRest() error {
	for {
		line, err := l.r.ReadSlice('\n')
		l.at += int64(len(line))
		switch {
		case err == bufio.ErrBufferFull:
		case err == nil || err == io.EOF:
			return fmt.Errorf("%w: it is longer than %d bytes", errLine, maxLine)
		default:
			return err
		}
	}
}

// seekTime finds by halving a line before which everything is older than since.
func (l *lines) seekTime(since time.Time) error {
	info, err := l.f.Stat()
	if err != nil {
		return err
	}
	lo, hi := int64(0), info.Size() // the line at lo is older, or lo is 0
	for hi-lo > maxLine {
		mid := lo + (hi-lo)/2
		at, t, err := l.timeAfter(mid, hi)
		switch {
		case err != nil:
			return err
		case t.IsZero() || !t.Before(since):
			hi = mid
		default:
			lo = at
		}
	}
	return l.seek(lo)
}

// timeAfter returns the first readable line that begins between from and to, and
// its time; the zero time when there is none.
func (l *lines) timeAfter(from, to int64) (at int64, t time.Time, err error) {
	if err := l.seek(from); err != nil {
		return 0, t, err
	}
	l.next() // the rest of a line, whatever it holds
	for l.at < to {
		at := l.at
		line, err := l.next()
		if err == io.EOF {
			break
		}
		if err != nil && !errors.Is(err, errLine) {
			return 0, t, err
		}
		var head Event
		if err == nil && decodeHead(line, &head) == nil {
			return at, head.Time, nil
		}
	}
	return 0, t, nil
}
