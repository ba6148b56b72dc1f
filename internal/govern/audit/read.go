package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/mod/sumdb/tlog"
)

var errTooLong = fmt.Errorf("line longer than %d bytes", maxLine)

// A lineReader gives the lines of a segment with their places.
type lineReader struct {
	r   *bufio.Reader
	off int64
	buf []byte
}

func newLineReader(r io.Reader, off int64) *lineReader {
	size := int64(64 << 10)
	if f, ok := r.(*os.File); ok {
		// A trail is mostly of many short files: one for each process.
		if info, err := f.Stat(); err == nil {
			size = min(size, max(0, info.Size()-off)+1) // one more finds the end
		}
	}
	return &lineReader{r: bufio.NewReaderSize(r, int(size)), off: off}
}

// next returns a line without its newline, valid until the next call, and where
// it begins. At the end it gives io.EOF; where the last line has no newline,
// io.ErrUnexpectedEOF with what there is of it. A line that is too long is
// passed over with errTooLong.
func (lr *lineReader) next() (line []byte, start int64, err error) {
	start = lr.off
	lr.buf = lr.buf[:0]
	long := false
	for {
		part, err := lr.r.ReadSlice('\n')
		lr.off += int64(len(part))
		if err == nil && !long && len(lr.buf) == 0 {
			return part[:len(part)-1], start, nil
		}
		if !long {
			lr.buf = append(lr.buf, part...)
			long = len(lr.buf) > maxLine
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == io.EOF && lr.off == start:
			return nil, start, io.EOF
		case err == io.EOF:
			return lr.buf, start, io.ErrUnexpectedEOF
		case err != nil:
			return nil, start, err
		case long:
			return nil, start, errTooLong
		}
		return lr.buf[:len(lr.buf)-1], start, nil
	}
}

// links reads seq and prev, which end every line in one fixed form.
func links(line []byte) (seq int64, prev tlog.Hash, ok bool) {
	const mid, end = `,"prev":"`, `"}`
	const tail = len(mid) + 44 + len(end) // 44: a hash in base64
	if len(line) < tail || line[0] != '{' || string(line[len(line)-len(end):]) != end {
		return 0, prev, false
	}
	rest, link := line[:len(line)-tail], line[len(line)-tail:]
	if string(link[:len(mid)]) != mid {
		return 0, prev, false
	}
	text := string(link[len(mid) : len(mid)+44])
	prev, err := tlog.ParseHash(text)
	if err != nil || prev.String() != text {
		return 0, prev, false
	}
	at := bytes.LastIndex(rest[max(0, len(rest)-32):], []byte(`,"seq":`))
	if at < 0 {
		return 0, prev, false
	}
	digits := string(rest[max(0, len(rest)-32):][at+len(`,"seq":`):])
	seq, err = strconv.ParseInt(digits, 10, 64)
	return seq, prev, err == nil && seq >= 0 && strconv.FormatInt(seq, 10) == digits
}

// An Entry is a record found in a directory of chains.
type Entry struct {
	ID     ID
	File   string
	Offset int64  // of the line in File
	Line   []byte // as it is stored, without newline
	Record Record

	at string // timestamp as text
}

// A cursor reads one chain from segment to segment, and can go on later from
// where it stopped.
type cursor struct {
	dir    string
	files  chainFiles
	filter *matcher
	index  int // in files.segments
	off    int64
	path   string // of f
	f      *os.File
	lines  *lineReader
	past   bool // the filter's end is behind us
}

func (c *cursor) close() {
	if c.f != nil {
		_ = c.f.Close()
		c.f, c.lines = nil, nil
	}
}

// next returns the next entry that the filter lets through, or io.EOF where
// there is none now. Another error is about one line or file; the cursor is
// past it.
func (c *cursor) next() (Entry, error) {
	for !c.past && c.index < len(c.files.segments) {
		if c.f == nil {
			if err := c.open(); err != nil {
				c.index, c.off = c.index+1, 0
				return Entry{}, fmt.Errorf("read audit chain: %w", err)
			}
		}
		line, start, err := c.lines.next()
		switch {
		case err == nil:
			c.off = c.lines.off
		case err == errTooLong:
			c.off = c.lines.off
			return Entry{}, fmt.Errorf("%s: byte %d: %w; run audit verify", c.path, start, err)
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			// An unfinished line is read again from its beginning, should
			// there ever be more of it.
			c.close()
			if c.index == len(c.files.segments)-1 {
				return Entry{}, io.EOF
			}
			c.index, c.off = c.index+1, 0
			continue
		default:
			c.close()
			c.index, c.off = c.index+1, 0
			return Entry{}, fmt.Errorf("read audit chain: %w", err)
		}
		if !c.filter.line(line, &c.past) {
			continue
		}
		r, err := decode(line)
		if err != nil {
			return Entry{}, fmt.Errorf("%s: byte %d: %w; run audit verify", c.path, start, err)
		}
		if !c.filter.record(&r) {
			continue
		}
		return Entry{
			ID: makeID(c.files.name, r.Seq), File: c.path, Offset: start,
			Line: bytes.Clone(line), Record: r, at: formatTime(r.Timestamp),
		}, nil
	}
	c.close()
	return Entry{}, io.EOF
}

// open opens the segment at hand and goes to where the cursor stands in it.
func (c *cursor) open() error {
	c.path = filepath.Join(c.dir, segmentName(c.files.name, c.files.segments[c.index]))
	f, err := os.Open(c.path)
	if err != nil {
		return err
	}
	if _, err := f.Seek(c.off, io.SeekStart); err != nil {
		f.Close()
		return err
	}
	c.f, c.lines = f, newLineReader(f, c.off)
	return nil
}

// lastLine returns the last whole line of a segment and where it ends, newline
// included; nil and 0 where there is none or it cannot be read.
func lastLine(path string) (line []byte, end int64) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0
	}
	for span := int64(4 << 10); ; span *= 8 {
		from := max(0, info.Size()-span)
		buf := make([]byte, info.Size()-from)
		if _, err := f.ReadAt(buf, from); err != nil {
			return nil, 0
		}
		nl := bytes.LastIndexByte(buf, '\n')
		start := bytes.LastIndexByte(buf[:max(nl, 0)], '\n') + 1
		switch {
		case nl >= 0 && (start > 0 || from == 0):
			return buf[start:nl], from + int64(nl) + 1
		case from == 0 || span > 4*maxLine:
			return nil, 0
		}
	}
}
