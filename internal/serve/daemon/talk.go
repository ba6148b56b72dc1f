package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"ken/internal/duration"
	"ken/internal/serve/shim"
)

// talk greets a caller, hears its hello, and does what it asks.
func (s *server) talk(ctx context.Context, conn net.Conn, full bool) error {
	// One deadline for it all: who drips bytes gets no longer.
	if err := conn.SetDeadline(time.Now().Add(s.cfg.Hello)); err != nil {
		return err
	}
	if err := send(conn, s.greeting(full)); err != nil || full {
		return err
	}
	hello, rest, err := hear(conn)
	switch {
	case errors.Is(err, io.EOF):
		return nil // it only looked
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("missing hello within %s", duration.Text(s.cfg.Hello))
	case err != nil:
		_ = send(conn, shim.Reply{Error: err.Error()}) // what went wrong is logged here
		return err
	}
	if hello.Do == shim.DoRetire {
		s.cfg.Log.Info("no more clients of ken mcp are accepted: a newer or older ken, or ken mcp --stop, asked for it", "process", hello.PID)
		s.retire()
		return send(conn, shim.Reply{OK: true})
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	return s.serve(ctx, hello, &opening{Conn: conn, r: io.MultiReader(bytes.NewReader(rest), conn)})
}

// serve hands a client to the handler.
func (s *server) serve(ctx context.Context, hello shim.Hello, conn *opening) error {
	s.mu.Lock()
	s.served++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.served--
		s.mu.Unlock()
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := s.call(ctx, hello, conn)
	conn.finish(err)
	return err
}

// call keeps a panic to the client that it was about.
func (s *server) call(ctx context.Context, hello shim.Hello, conn net.Conn) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log.Error("serving a client panicked", "panic", p, "stack", string(debug.Stack()))
			err = errors.New("something went wrong inside; the daemon's log says more")
		}
	}()
	return s.handle(ctx, hello, conn)
}

// hear reads a hello, and no more than its bound. What came behind it is rest.
func hear(conn net.Conn) (hello shim.Hello, rest []byte, err error) {
	r := bufio.NewReader(io.LimitReader(conn, shim.MaxHello))
	line, err := r.ReadBytes('\n')
	switch {
	case err == io.EOF && len(line) == shim.MaxHello:
		return hello, nil, fmt.Errorf("read the hello: it is longer than %d bytes", shim.MaxHello)
	case err == io.EOF && len(line) > 0:
		return hello, nil, fmt.Errorf("read the hello: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return hello, nil, err
	}
	// The reader's buffer goes with it.
	rest, err = r.Peek(r.Buffered())
	if err != nil {
		return hello, nil, err
	}
	if err := json.Unmarshal(line, &hello); err != nil {
		return hello, nil, errors.New("read the hello: it is no JSON of the kind that ken mcp writes")
	}
	switch {
	case hello.Do == shim.DoRetire: // of whatever version: the newest one is to win
	case hello.V != shim.Protocol:
		return hello, nil, fmt.Errorf("read the hello: it is of version %d, and this daemon speaks %d; use one build of ken everywhere", hello.V, shim.Protocol)
	case hello.Do != shim.DoServe:
		return hello, nil, fmt.Errorf("read the hello: it asks for %.20q, and this daemon knows serve and retire", hello.Do)
	case !filepath.IsAbs(hello.Dir):
		return hello, nil, errors.New("read the hello: its working directory is not absolute")
	}
	return hello, rest, nil
}

func send(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// An opening is a connection whose first byte written says that the client is
// served: the reply goes with it.
type opening struct {
	net.Conn
	r io.Reader

	mu     sync.Mutex
	opened bool
}

func (o *opening) Read(b []byte) (int, error) { return o.r.Read(b) }

func (o *opening) Write(b []byte) (int, error) {
	o.mu.Lock()
	if o.opened {
		o.mu.Unlock()
		return o.Conn.Write(b)
	}
	// Others wait, so that nothing overtakes the reply.
	defer o.mu.Unlock()
	o.opened = true
	const reply = `{"ok":true}` + "\n"
	n, err := o.Conn.Write(append([]byte(reply), b...))
	return max(0, n-len(reply)), err
}

// finish sends the reply if nothing was written yet.
func (o *opening) finish(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.opened {
		return
	}
	o.opened = true
	reply := shim.Reply{OK: err == nil}
	if err != nil {
		reply.Error = clip(err.Error())
	}
	// A client that does not read must not hold the end up.
	if o.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
		_ = send(o.Conn, reply) // the client is gone
	}
}

// clip keeps a message within what a reply can carry, escapes included.
func clip(s string) string {
	const most = shim.MaxReply / 8
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
