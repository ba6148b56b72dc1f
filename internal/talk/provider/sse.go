package provider

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// ErrEventSize is an event, or a line of one, that is larger than allowed.
var ErrEventSize = errors.New("a server-sent event is too large")

// mostEvent is the bound of an event where none is given.
const mostEvent = 16 << 20

// An Event is one server-sent event that has data.
type Event struct {
	Name string // of its event field; empty: it has none
	Data []byte // the data lines joined by newlines; valid until the next event
}

// Events reads server-sent events to the end of r. Lines may end with LF, CRLF
// or CR, and a byte order mark at the start is skipped; comments, ids and retry
// fields are passed over, and so is an event without data.
//
// No event has more than most bytes of data and no line is longer (zero: 16
// MiB); past that the error is [ErrEventSize]. An end within a line is
// [io.ErrUnexpectedEOF]; an end after a whole line gives the event, because
// some servers leave out the last empty line. Errors of r are passed on. An
// error is the last thing yielded.
func Events(r io.Reader, most int) iter.Seq2[Event, error] {
	if most <= 0 {
		most = mostEvent
	}
	return func(yield func(Event, error) bool) {
		p := parser{most: most, first: true}
		buf := make([]byte, 16<<10)
		for {
			n, err := r.Read(buf)
			for rest := buf[:n]; len(rest) > 0; {
				var full bool
				var bad error
				rest, full, bad = p.take(rest)
				if bad != nil {
					yield(Event{}, bad)
					return
				}
				if full && !p.flush(yield) {
					return
				}
			}
			if err == nil {
				continue
			}
			switch {
			case err != io.EOF:
				yield(Event{}, err)
			case len(p.line) > 0:
				yield(Event{}, io.ErrUnexpectedEOF)
			default:
				p.flush(yield)
			}
			return
		}
	}
}

// A parser is what is known of the event that is being read.
type parser struct {
	most   int
	first  bool   // no line has been seen
	skipLF bool   // the last line ended with CR; an LF now is part of that end
	line   []byte // the start of a line that goes on in the next piece
	known  string // the last name; most streams repeat a few
	name   string
	has    bool // there was a data line
	data   []byte
}

// take reads up to the end of the next line, and says whether that line ended
// an event. It gives what is left of the piece.
func (p *parser) take(piece []byte) (rest []byte, full bool, err error) {
	if p.skipLF {
		p.skipLF = false
		if piece[0] == '\n' {
			return piece[1:], false, nil
		}
	}
	line, rest, whole := p.cut(piece)
	// The name of the field and a byte order mark are not counted.
	if len(p.line)+len(line) > p.most+16 {
		return nil, false, fmt.Errorf("%w: a line of more than %d bytes", ErrEventSize, p.most)
	}
	if !whole {
		p.line = append(p.line, line...)
		return rest, false, nil
	}
	if len(p.line) > 0 {
		p.line = append(p.line, line...)
		line = p.line
	}
	if p.first {
		p.first = false
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	full = len(line) == 0
	err = p.field(line)
	p.line = p.line[:0]
	return rest, full, err
}

// cut parts a piece at the first end of a line.
func (p *parser) cut(piece []byte) (line, rest []byte, whole bool) {
	end := bytes.IndexAny(piece, "\r\n")
	if end < 0 {
		return piece, nil, false
	}
	p.skipLF = piece[end] == '\r'
	return piece[:end], piece[end+1:], true
}

// field takes one line that is not empty.
func (p *parser) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if p.has {
			p.data = append(p.data, '\n')
		}
		p.has = true
		if len(p.data)+len(value) > p.most {
			return fmt.Errorf("%w: more than %d bytes of data", ErrEventSize, p.most)
		}
		p.data = append(p.data, value...)
	case "event":
		if p.known != string(value) {
			p.known = string(value)
		}
		p.name = p.known
	}
	return nil
}

// flush yields the event that was read, if it has data, and starts the next.
func (p *parser) flush(yield func(Event, error) bool) bool {
	event, has := Event{Name: p.name, Data: p.data}, p.has && len(p.data) > 0
	p.name, p.has, p.data = "", false, p.data[:0]
	return !has || yield(event, nil)
}
