package audit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
)

// backPiece is how much of a segment is read at a time, from its end.
const backPiece = 32 << 10

// A backward reads the lines of one chain from the newest to the oldest.
type backward struct {
	dir   string
	files chainFiles
	bound string // lines after this time are passed over; "": none
	index int    // of the segment in files, that is read or is next
	path  string
	f     *os.File
	buf   []byte // lines of f not yet given, each with its newline
	pos   int64  // where buf begins in f

	// The line at hand, valid until next; or what is wrong with it.
	line   []byte
	offset int64
	err    error
	at     string // its time; where it has none, or one that cannot be, of the line after
	after  int64  // the number of the line after it, as far as isBefore has looked
}

// newBackward places a reader at the end of a chain; nil where it has no line up
// to bound. Nothing is open before next is called.
func newBackward(dir string, c chainFiles, bound string) *backward {
	if bound != "" && chainTime(c.name) > bound {
		return nil
	}
	b := &backward{dir: dir, files: c, bound: bound, after: math.MaxInt64}
	for b.index = len(c.segments) - 1; b.index >= 0; b.index-- {
		line, end := lastLine(b.segment())
		if end == 0 {
			continue // begun a moment ago, or unreadable: next says so
		}
		at, ok := lineTime(line)
		if !ok {
			at = "9" // of no time: it is looked at first
		}
		if b.at = at; bound != "" && at > bound {
			b.at = bound
		}
		break
	}
	b.index = len(c.segments) - 1
	return b
}

func (b *backward) segment() string {
	return filepath.Join(b.dir, segmentName(b.files.name, b.files.segments[b.index]))
}

// compare orders by time and then by chain, as [Query] does.
func (b *backward) compare(o *backward) int {
	return cmp.Or(cmp.Compare(b.at, o.at), cmp.Compare(b.files.name, o.files.name))
}

// isBefore reports whether the line at hand comes before a place.
func (b *backward) isBefore(s mark) bool {
	if c := cmp.Or(cmp.Compare(b.at, s.at), cmp.Compare(b.files.name, s.chain)); c != 0 {
		return c < 0
	}
	seq, _, ok := links(b.line)
	if !ok {
		return b.after <= s.seq
	}
	b.after = seq
	return seq < s.seq
}

func (b *backward) close() {
	if b.f != nil {
		_ = b.f.Close()
		b.f, b.buf = nil, nil
	}
}

// next goes one line back. It gives false after the oldest, with nothing open.
func (b *backward) next() bool {
	for {
		if b.f == nil {
			if b.index < 0 {
				return false
			}
			if err := b.begin(); err != nil {
				b.close()
				b.index--
				b.line, b.offset, b.err = nil, 0, fmt.Errorf("read audit chain: %w", err)
				return true
			}
		}
		line, offset, err := b.back()
		if err == io.EOF {
			b.close()
			b.index--
			continue
		}
		b.line, b.offset, b.err = line, offset, nil
		if err != nil {
			b.line, b.err = nil, fmt.Errorf("%s: byte %d: %w; run audit verify", b.path, offset, err)
			if !errors.Is(err, errTooLong) {
				b.close()
				b.index--
			}
			return true
		}
		at, ok := lineTime(line)
		if ok && b.bound != "" && at > b.bound {
			continue
		}
		if ok && (b.at == "" || at < b.at) {
			b.at = at // times in a chain never run backwards
		}
		return true
	}
}

// begin opens a segment and finds where to start in it.
func (b *backward) begin() error {
	b.path = b.segment()
	f, err := os.Open(b.path)
	if err != nil {
		return err
	}
	b.f, b.buf = f, nil
	if _, b.pos = lastLine(b.path); b.bound != "" {
		b.pos = afterTime(f, b.pos, b.bound)
	}
	return nil
}

// back returns the line that ends where the last one began; io.EOF where that is
// the beginning of the segment.
func (b *backward) back() (line []byte, offset int64, err error) {
	long := false
	for piece := int64(backPiece); ; piece *= 2 {
		if n := len(b.buf); n > 0 {
			if i := bytes.LastIndexByte(b.buf[:n-1], '\n'); i >= 0 || b.pos == 0 {
				line, offset = b.buf[i+1:n-1], b.pos+int64(i)+1
				b.buf = b.buf[:i+1]
				if long || len(line) > maxLine {
					return nil, offset, errTooLong
				}
				return line, offset, nil
			}
		}
		if b.pos == 0 {
			return nil, 0, io.EOF
		}
		if len(b.buf) > maxLine+1 {
			// This line is not needed: only where it begins counts.
			long, piece, b.buf = true, backPiece, []byte("\n")
		}
		piece = min(piece, b.pos)
		more := make([]byte, piece, piece+int64(len(b.buf)))
		if _, err := b.f.ReadAt(more, b.pos-piece); err != nil {
			return nil, b.pos - piece, err
		}
		b.buf, b.pos = append(more, b.buf...), b.pos-piece
	}
}

// afterTime returns the beginning of a line of f before end, so that all lines
// from there on are of after a time. It need not be the first such.
func afterTime(f io.ReaderAt, end int64, bound string) int64 {
	return halve(f, end, func(start int64) (after, ok bool) {
		head := make([]byte, 64)
		n, _ := f.ReadAt(head, start)
		at, ok := lineTime(head[:n])
		return at > bound, ok
	})
}

// halve looks for the place from which on after is true. It ends near it and
// never before it, or early where ok is false.
func halve(f io.ReaderAt, end int64, after func(start int64) (after, ok bool)) int64 {
	low, high := int64(0), end
	for high-low > backPiece {
		mid := low + (high-low)/2
		start := lineAfter(f, mid, high)
		if start < 0 {
			break
		}
		yes, ok := after(start)
		switch {
		case !ok:
			return high
		case yes:
			high = start
		default:
			low = start
		}
	}
	return high
}

// lineAfter returns where the first line begins after a place and before end, or
// -1.
func lineAfter(f io.ReaderAt, from, end int64) int64 {
	buf := make([]byte, 4<<10)
	for from < end {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), end-from)], from)
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			if start := from + int64(i) + 1; start < end {
				return start
			}
			return -1
		}
		if err != nil {
			return -1
		}
		from += int64(n)
	}
	return -1
}

// findIn looks for a record in one segment; the zero Entry is none.
func findIn(path, chain string, seq int64) (Entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return Entry{}, fmt.Errorf("read audit chain: %w", err)
	}
	defer f.Close()
	_, end := lastLine(path)
	number := func(start int64) (int64, bool) {
		line, _, err := newLineReader(io.NewSectionReader(f, start, end-start), start).next()
		n, _, ok := links(line)
		return n, ok && err == nil
	}
	if first, ok := number(0); end == 0 || ok && first > seq {
		return Entry{}, nil
	}
	end = halve(f, end, func(start int64) (after, ok bool) {
		n, ok := number(start)
		return n > seq, ok
	})
	b := &backward{f: f, pos: end}
	for {
		line, offset, err := b.back()
		if err == io.EOF {
			return Entry{}, nil
		}
		if err != nil && !errors.Is(err, errTooLong) {
			return Entry{}, fmt.Errorf("read audit chain: %w", err)
		}
		n, _, ok := links(line)
		if !ok {
			continue // what is wrong with others is not asked
		}
		if n < seq {
			return Entry{}, nil
		}
		if n == seq {
			r, err := decode(line)
			if err != nil {
				return Entry{}, fmt.Errorf("%s: byte %d: %w; run audit verify", path, offset, err)
			}
			return Entry{ID: makeID(chain, seq), File: path, Offset: offset, Line: bytes.Clone(line), Record: r, at: formatTime(r.Timestamp)}, nil
		}
	}
}
