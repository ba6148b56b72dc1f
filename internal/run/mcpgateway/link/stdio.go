package link

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"ken/internal/untrusted"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	readRoom  = 32 << 10 // bytes read ahead from a server
	keptRoom  = 1 << 20  // a line buffer above this is not kept for the next line
	edgeRoom  = 512      // bytes kept of each end of a line that is too long
	writeRoom = 64       // messages on their way to a server
	batchRoom = 10_000   // messages in one batch

	// skipRoom is how many times the longest message is skipped while the end of a
	// line that is too long is looked for.
	skipRoom = 4

	noiseSamples = 3
	noiseRunes   = 160
)

// stdio is an [mcp.Connection] over the pipes of a process: one message on a
// line. Lines that are no messages are counted and skipped. A line that is too
// long is skipped without being held, and the request that it answers fails. So
// does one whose answer is nested too deeply.
type stdio struct {
	proc Process
	r    *bufio.Reader
	max  int64

	// Used by Read only.
	begun bool
	rest  bool // the rest of a line that was too long comes next
	buf   []byte
	queue []jsonrpc.Message

	out     chan []byte
	queued  atomic.Int64    // messages in out, or taken from it and not yet written
	writing sync.Mutex      // held while a message is written
	direct  syscall.RawConn // to write without the goroutine of out; nil: there is no such way

	closed chan struct{}
	broken chan struct{} // closed when the server takes no more
	once   sync.Once

	mu      sync.Mutex
	skipped int
	samples []string
}

func newStdio(proc Process, limit int64) *stdio {
	s := &stdio{
		proc:   proc,
		r:      bufio.NewReaderSize(proc.Stdout(), readRoom),
		max:    limit,
		out:    make(chan []byte, writeRoom),
		closed: make(chan struct{}),
		broken: make(chan struct{}),
	}
	s.direct = directPipe(proc.Stdin())
	go s.write()
	return s
}

// SessionID is empty: pipes have no sessions.
func (s *stdio) SessionID() string { return "" }

// Read returns the next message. Close, which ends the process, ends it.
func (s *stdio) Read(context.Context) (jsonrpc.Message, error) {
	for {
		if len(s.queue) > 0 {
			msg := s.queue[0]
			s.queue = s.queue[1:]
			return msg, nil
		}
		line, over, err := s.line()
		switch {
		case over != nil:
			return over.response(), nil
		case len(line) > 0:
			if msg := s.decode(line); msg != nil {
				return msg, nil
			}
		}
		if err != nil {
			select {
			case <-s.closed:
				return nil, io.EOF
			default:
				return nil, err
			}
		}
	}
}

// line reads one line without its end. It is good until the next call.
func (s *stdio) line() ([]byte, *oversized, error) {
	for s.rest {
		_, err := s.r.ReadSlice('\n')
		if s.rest = errors.Is(err, bufio.ErrBufferFull); err != nil && !s.rest {
			return nil, nil, err
		}
	}
	if cap(s.buf) > keptRoom {
		s.buf = nil
	}
	s.buf = s.buf[:0]
	for {
		chunk, err := s.r.ReadSlice('\n')
		if int64(len(s.buf)+len(chunk)) > s.max {
			return s.skip(chunk, err)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			s.buf = append(s.buf, chunk...)
			continue
		}
		if len(s.buf) > 0 {
			s.buf = append(s.buf, chunk...)
			chunk = s.buf
		}
		return s.trim(chunk), nil, err
	}
}

// skip skips a line that is too long and keeps its two ends. It returns as soon as
// the beginning tells which request the line answers, because the end may never
// come. Without that it looks for the end, as far as skipRoom says.
func (s *stdio) skip(chunk []byte, err error) ([]byte, *oversized, error) {
	over := &oversized{limit: s.max, size: int64(len(s.buf))}
	over.add(s.buf)
	s.buf = nil
	for first := true; ; first = false {
		over.size += int64(len(chunk))
		over.add(chunk)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, over, err
		}
		if first && over.id().IsValid() || over.size > skipRoom*s.max {
			s.rest, over.more = true, true
			return nil, over, nil
		}
		chunk, err = s.r.ReadSlice('\n')
	}
}

func (s *stdio) trim(line []byte) []byte {
	if !s.begun {
		s.begun = true
		line = bytes.TrimPrefix(line, []byte("\uFEFF"))
	}
	return bytes.TrimSpace(line)
}

// decode returns the message on a line, the first of a batch, or nil for noise.
func (s *stdio) decode(line []byte) jsonrpc.Message {
	switch line[0] {
	case '{':
		return s.message(line)
	case '[':
		// Protocol 2025-03-26 had batches. Each message is answered by itself.
		var batch []json.RawMessage
		err := json.Unmarshal(line, &batch)
		if len(batch) > batchRoom {
			err = fmt.Errorf("a batch has %d messages, the limit is %d", len(batch), batchRoom)
		}
		if tooDeep(err) || len(batch) > batchRoom {
			s.note(line)
			return &jsonrpc.Response{Error: &unreadable{err}}
		}
		for _, raw := range batch {
			if msg := s.message(raw); msg != nil {
				s.queue = append(s.queue, msg)
			}
		}
		if len(s.queue) > 0 {
			msg := s.queue[0]
			s.queue = s.queue[1:]
			return msg
		}
		if len(batch) > 0 {
			return nil // each was noted
		}
	}
	s.note(line)
	return nil
}

// message decodes one message, and counts as noise what is none. In the place of
// one that is nested too deeply it returns an error for the request that the
// message answers.
func (s *stdio) message(data []byte) jsonrpc.Message {
	msg, err := decodeMessage(data)
	if err == nil {
		return msg
	}
	s.note(data)
	if tooDeep(err) {
		return &jsonrpc.Response{ID: idIn(data), Error: &unreadable{err}}
	}
	return nil
}

func (s *stdio) note(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skipped++
	if len(s.samples) < noiseSamples {
		s.samples = append(s.samples, untrusted.Line(string(line[:min(len(line), 4*noiseRunes)]), noiseRunes))
	}
}

func (s *stdio) noise() (int, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b bytes.Buffer
	for i, line := range s.samples {
		if i > 0 {
			b.WriteString(" | ")
		}
		b.WriteString(line)
	}
	return s.skipped, b.String()
}

// writeRooms are buffers of messages that were written at once.
var writeRooms = sync.Pool{New: func() any { return new([]byte) }}

// Write writes a message if the server's input takes it now. Otherwise it hands it
// to the goroutine that writes, behind those that wait. A server that does not
// read its input blocks that goroutine and, once there are writeRoom messages
// waiting, each Write until its ctx is over.
func (s *stdio) Write(ctx context.Context, msg jsonrpc.Message) error {
	room := writeRooms.Get().(*[]byte)
	data, own := encodeOwn((*room)[:0], msg)
	var err error
	if !own {
		data, err = jsonrpc.EncodeMessage(msg)
	}
	if err != nil {
		return err
	}
	select {
	case <-s.broken:
		return io.ErrClosedPipe
	default:
	}
	data = append(data, '\n')
	if s.writeNow(data) {
		if own {
			*room = data // at most wholeWrite
		}
		writeRooms.Put(room)
		return nil
	}
	s.queued.Add(1)
	select {
	case s.out <- data:
		return nil
	case <-s.broken:
		err = io.ErrClosedPipe
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.closed:
		err = io.ErrClosedPipe
	}
	s.queued.Add(-1)
	return err
}

// writeNow writes a message that the pipe takes as a whole at once, which saves
// waking the goroutine that waits for a slow server. It reports false if it has
// written nothing: others wait, the pipe is full, or the message is too long for
// that.
func (s *stdio) writeNow(data []byte) bool {
	if s.direct == nil || len(data) > wholeWrite || !s.writing.TryLock() {
		return false
	}
	defer s.writing.Unlock()
	if s.queued.Load() > 0 {
		return false
	}
	return writeWhole(s.direct, data)
}

func (s *stdio) write() {
	in := s.proc.Stdin()
	for {
		select {
		case data := <-s.out:
			s.writing.Lock()
			_, err := in.Write(data)
			s.writing.Unlock()
			s.queued.Add(-1)
			if err != nil {
				// The server closed its input. What it wrote before is still
				// read, so the connection is left to end by itself.
				close(s.broken)
				return
			}
		case <-s.closed:
			return
		}
	}
}

// Close ends the process. Reads end with its output.
func (s *stdio) Close() error {
	var err error
	s.once.Do(func() {
		close(s.closed)
		_ = s.proc.Stdin().Close()
		err = s.proc.Close()
		if c, ok := s.proc.Stdout().(io.Closer); ok {
			// Something that left the tree may hold the other end.
			_ = c.Close()
		}
	})
	return err
}

// oversized is the error of a request whose answer was too long to take. It
// keeps the ends of the line, since the number of the request is in one.
type oversized struct {
	limit, size int64
	more        bool // it is longer than size
	head, tail  []byte
}

func (o *oversized) Error() string {
	longer := ""
	if o.more {
		longer = "more than "
	}
	return fmt.Sprintf("the server sent a message of %s%d bytes, the limit is %d", longer, o.size, o.limit)
}

func (o *oversized) add(b []byte) {
	if room := edgeRoom - len(o.head); room > 0 {
		o.head = append(o.head, b[:min(room, len(b))]...)
	}
	if len(b) > edgeRoom {
		b = b[len(b)-edgeRoom:]
	}
	o.tail = append(o.tail, b...)
	if len(o.tail) > edgeRoom {
		o.tail = o.tail[len(o.tail)-edgeRoom:]
	}
}

// response is the answer that stands in for the line. Its ID is invalid when
// the line does not tell whom it answers.
func (o *oversized) response() *jsonrpc.Response {
	return &jsonrpc.Response{ID: o.id(), Error: o}
}

func (o *oversized) id() jsonrpc.ID { return idAt(o.head, o.tail) }

// idIn returns the number of the request that a message answers, from its two
// ends.
func idIn(message []byte) jsonrpc.ID {
	return idAt(message[:min(len(message), edgeRoom)], message[max(0, len(message)-edgeRoom):])
}

func idAt(head, tail []byte) jsonrpc.ID {
	for _, at := range []struct {
		pattern *regexp.Regexp
		text    []byte
	}{{headID(), head}, {tailID(), bytes.TrimSpace(tail)}} {
		m := at.pattern.FindSubmatch(at.text)
		if m == nil {
			continue
		}
		var v any
		if json.Unmarshal(m[1], &v) == nil {
			if id, err := jsonrpc.MakeID(v); err == nil {
				return id
			}
		}
	}
	return jsonrpc.ID{}
}

// The id of a request is a member of the outermost object: a number of the SDK's,
// or a text of Ken's own. These find it as the first or second member, or as the
// last or last but one.
var (
	headID = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15}|"ken-[0-9a-z]{1,13}")\s*,\s*"(?:jsonrpc|result|error)"`)
	})
	tailID = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\}\s*,(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,)?\s*"id"\s*:\s*(\d{1,15}|"ken-[0-9a-z]{1,13}")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}$`)
	})
)

// unreadable is the error of a request whose answer is too deep, or in too large a
// batch, to be read.
type unreadable struct{ cause error }

func (u *unreadable) Error() string {
	if tooDeep(u.cause) {
		return "the server sent a message that is nested too deeply"
	}
	return "the server sent a message that cannot be parsed: " + untrusted.Line(u.cause.Error(), messageRunes)
}

func (u *unreadable) Unwrap() error { return u.cause }

// tooDeep reports whether the decoder gave up at its limit of 10,000 levels. It
// has no error of its own for that.
func tooDeep(err error) bool {
	e, ok := errors.AsType[*json.SyntaxError](err)
	return ok && strings.Contains(e.Error(), "max depth")
}

// standsIn reports whether an error was put in the place of a message that was
// not taken.
func standsIn(err error) bool {
	_, over := errors.AsType[*oversized](err)
	_, bad := errors.AsType[*unreadable](err)
	return over || bad
}
