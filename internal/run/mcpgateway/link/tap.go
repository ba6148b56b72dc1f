package link

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// openRoom bounds how many questions of a server may be open.
const openRoom = 256

// errMany answers a question over openRoom.
func errMany() error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("more than %d requests are open", openRoom)}
}

// tap stands between the SDK and what carries the messages. It takes the
// answers to calls as they are, before they are decoded into fewer fields than
// they have; and it takes questions and notifications, for which the SDK keeps
// a queue without a bound.
type tap struct {
	mcp.Connection // set by Connect
	l              *Link
	dial           mcp.Transport // makes Connection, where that is not set
	hangUp         context.CancelFunc

	mu    sync.Mutex
	calls map[jsonrpc.ID]*pendingCall       // requests to the server; nil for those that are no calls
	open  map[jsonrpc.ID]context.CancelFunc // requests of the server

	// Of what is sent past the SDK.
	waits  map[jsonrpc.ID]chan<- *jsonrpc.Response
	serial uint64
	triple string        // who asks, as members of "_meta"
	over   chan struct{} // closed when nothing more is read
	ended  sync.Once

	queue []jsonrpc.Message // used by Read only
}

func newTap(l *Link, conn *stdio) *tap {
	t := &tap{
		l: l, calls: make(map[jsonrpc.ID]*pendingCall), open: make(map[jsonrpc.ID]context.CancelFunc),
		waits: make(map[jsonrpc.ID]chan<- *jsonrpc.Response), over: make(chan struct{}),
	}
	if conn != nil {
		t.Connection = conn
	}
	return t
}

// Connect implements [mcp.Transport].
func (t *tap) Connect(ctx context.Context) (mcp.Connection, error) {
	if t.Connection == nil {
		// The SDK's stream would end with ctx, which is for connecting only.
		streaming, cancel := context.WithCancel(context.WithoutCancel(ctx))
		stop := context.AfterFunc(ctx, cancel)
		conn, err := t.dial.Connect(streaming)
		if err == nil && !stop() {
			err = ctx.Err()
			_ = conn.Close()
		}
		if err != nil {
			cancel()
			return nil, err
		}
		t.mu.Lock()
		t.Connection, t.hangUp = conn, cancel
		t.mu.Unlock()
	}
	return t, nil
}

// Close may come before Connect.
func (t *tap) Close() error {
	t.mu.Lock()
	conn := t.Connection
	if t.hangUp != nil {
		t.hangUp()
	}
	for _, cancel := range t.open {
		cancel()
	}
	t.mu.Unlock()
	if conn == nil {
		return nil
	}
	return conn.Close()
}

func (t *tap) Write(ctx context.Context, msg jsonrpc.Message) error {
	if req, ok := msg.(*jsonrpc.Request); ok {
		t.sent(req)
	}
	return t.Connection.Write(ctx, msg)
}

func (t *tap) sent(req *jsonrpc.Request) {
	if !req.IsCall() {
		if req.Method == "notifications/cancelled" {
			t.forget(req.Params)
		}
		return
	}
	if req.Method == "subscriptions/listen" {
		return // it stays open, and its answer means nothing
	}
	t.introduced(req.Params)
	f := t.l.pending.of(req.Params)
	t.mu.Lock()
	t.calls[req.ID] = f
	t.mu.Unlock()
}

func (t *tap) forget(params json.RawMessage) {
	if id, ok := cancelledID(params); ok {
		t.mu.Lock()
		delete(t.calls, id)
		t.mu.Unlock()
	}
}

func cancelledID(params json.RawMessage) (jsonrpc.ID, bool) {
	var p struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return jsonrpc.ID{}, false
	}
	id, err := jsonrpc.MakeID(p.RequestID)
	return id, err == nil && id.IsValid()
}

func (t *tap) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if len(t.queue) > 0 {
			msg := t.queue[0]
			t.queue = t.queue[1:]
			return msg, nil
		}
		msg, err := t.Connection.Read(ctx)
		if err != nil {
			t.ended.Do(func() { close(t.over) })
			return nil, err
		}
		switch m := msg.(type) {
		case *jsonrpc.Response:
			t.answered(m)
		case *jsonrpc.Request:
			if m = t.asked(ctx, m); m != nil {
				t.queue = append(t.queue, m)
			}
		}
	}
}

// answered queues the SDK's copy of an answer, empty where it is kept for a
// call, and for an answer without a request one to each that may have been meant.
func (t *tap) answered(m *jsonrpc.Response) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !m.ID.IsValid() && standsIn(m.Error) {
		for id := range t.calls {
			t.queue = append(t.queue, &jsonrpc.Response{ID: id, Error: m.Error})
		}
		clear(t.calls)
		for _, wait := range t.waits {
			wait <- m
		}
		clear(t.waits)
		return
	}
	if wait, ok := t.waits[m.ID]; ok {
		delete(t.waits, m.ID) // once: there is room for one
		wait <- m
		return
	}
	f, ok := t.calls[m.ID]
	if !ok {
		return // cancelled, or never asked for
	}
	delete(t.calls, m.ID)
	if f != nil && m.Error == nil && len(m.Result) > 0 {
		f.keep(m)
	}
	t.queue = append(t.queue, m)
}

// emptyResult is a result of any method to the SDK's decoder.
var emptyResult = json.RawMessage("{}")

// asked takes a request or a notification of the server, or gives back what the
// SDK shall handle.
func (t *tap) asked(ctx context.Context, m *jsonrpc.Request) *jsonrpc.Request {
	if !m.IsCall() {
		if m.Method == "notifications/cancelled" {
			t.withdrawn(m.Params)
			return nil
		}
		return t.l.notified(m)
	}
	switch m.Method {
	case "elicitation/create", "sampling/createMessage", "roots/list":
	case "ping":
		t.reply(ctx, &jsonrpc.Response{ID: m.ID, Result: emptyResult})
		return nil
	default:
		t.reply(ctx, &jsonrpc.Response{ID: m.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found"}})
		return nil
	}
	qctx, cancel := context.WithCancel(ctx)
	t.mu.Lock()
	_, twice := t.open[m.ID]
	full := len(t.open) >= openRoom
	if !full && !twice {
		t.open[m.ID] = cancel
	}
	t.mu.Unlock()
	if full || twice {
		cancel()
		t.reply(ctx, &jsonrpc.Response{ID: m.ID, Error: errMany()})
		return nil
	}
	go t.answer(qctx, cancel, m)
	return nil
}

func (t *tap) withdrawn(params json.RawMessage) {
	if id, ok := cancelledID(params); ok {
		t.mu.Lock()
		if cancel, ok := t.open[id]; ok {
			cancel()
		}
		t.mu.Unlock()
	}
}

func (t *tap) answer(ctx context.Context, cancel context.CancelFunc, m *jsonrpc.Request) {
	defer cancel()
	res, err := t.l.ask(ctx, m.Method, m.Params)
	t.mu.Lock()
	delete(t.open, m.ID)
	t.mu.Unlock()
	answer := &jsonrpc.Response{ID: m.ID, Result: res, Error: err}
	sending, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer stop()
	_ = t.Connection.Write(sending, answer)
}

// reply answers in the goroutine that reads: a server that floods with requests
// waits for its own answers.
func (t *tap) reply(ctx context.Context, answer *jsonrpc.Response) {
	_ = t.Connection.Write(ctx, answer)
}
