// Package devtools speaks the DevTools protocol with a browser over two pipes:
// JSON messages, each ended by a zero byte.
package devtools

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// mostMessage bounds one message of a browser: what a page makes it say is
// untrusted.
const mostMessage = 64 << 20

// ErrGone says that the browser has ended, or no longer speaks.
var ErrGone = errors.New("the browser has ended")

// An Error is what the browser answered instead of a result.
type Error struct {
	Method  string `json:"-"`
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Method + ": " + e.Message }

// An Event is what the browser says unasked.
type Event struct {
	Session string // of the page; empty: of the browser
	Method  string
	Params  json.RawMessage
}

// A Conn is a connection to a browser. It is safe for concurrent use.
type Conn struct {
	out     io.WriteCloser
	on      func(*Conn, Event)
	done    chan struct{} // closed when nothing more is read
	writing sync.Mutex

	mu      sync.Mutex
	next    int64
	waiting map[int64]chan message
	over    bool
}

type message struct {
	ID      int64           `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// New makes a connection of what a browser writes and reads. It owns both and
// closes them at the end. The function on is given each event in turn; it must
// not block, and calls only from another goroutine.
func New(in io.ReadCloser, out io.WriteCloser, on func(*Conn, Event)) *Conn {
	c := &Conn{out: out, on: on, done: make(chan struct{}), waiting: map[int64]chan message{}}
	go c.read(in)
	return c
}

// Done is closed when the browser says nothing more.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Close ends the connection, upon which the browser ends too.
func (c *Conn) Close() error { return c.out.Close() }

func (c *Conn) read(in io.ReadCloser) {
	defer in.Close()
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		m, err := next(r)
		if err != nil {
			break
		}
		if m.ID == 0 {
			c.on(c, Event{Session: m.Session, Method: m.Method, Params: m.Params})
			continue
		}
		c.mu.Lock()
		reply := c.waiting[m.ID]
		delete(c.waiting, m.ID)
		c.mu.Unlock()
		if reply != nil {
			reply <- m // it has room for one
		}
	}
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	close(c.done)
}

// next reads one message.
func next(r *bufio.Reader) (message, error) {
	var text []byte
	for {
		piece, err := r.ReadSlice(0)
		if len(text)+len(piece) > mostMessage {
			return message{}, fmt.Errorf("the browser sent a message of more than %d bytes", mostMessage)
		}
		text = append(text, piece...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return message{}, err
		}
	}
	var m message
	err := json.Unmarshal(text[:len(text)-1], &m)
	return m, err
}

// Call calls a method of a page, or of the browser where session is empty, and
// reads the answer into result unless that is nil.
func (c *Conn) Call(ctx context.Context, session, method string, params, result any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	if params == nil {
		raw = nil
	}
	reply := make(chan message, 1)
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return ErrGone
	}
	c.next++
	id := c.next
	c.waiting[id] = reply
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}()
	text, err := json.Marshal(message{ID: id, Session: session, Method: method, Params: raw})
	if err != nil {
		return err
	}
	if err := c.write(append(text, 0)); err != nil {
		return ErrGone
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.done:
		return ErrGone
	case m := <-reply:
		if m.Error != nil {
			m.Error.Method = method
			return m.Error
		}
		if result == nil {
			return nil
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			return fmt.Errorf("%s: read the answer: %w", method, err)
		}
		return nil
	}
}

func (c *Conn) write(text []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(text)
	return err
}
